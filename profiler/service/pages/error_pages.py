"""Errors as pages: what is wrong and the way out, never how it came about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from http import HTTPStatus
from types import MappingProxyType
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from profiler.errors import StoreError
from profiler.model.quick_dataclass import dataclass
from profiler.service.api.problems import problem_answer
from profiler.service.pages.analysis.analyses import AnalysisBusy, AnalysisRefused, AnalysisTooLong
from profiler.service.pages.links import with_query
from profiler.service.pages.login.visitor import LoginNeeded, NotAllowed, known_visitor
from profiler.service.pages.rendering import PageRenderer
from profiler.service.service_log import LOG

_BUSY = "As many analyses are being worked out as this server allows. Try again in a moment."
_TOO_LONG = (
    "The analysis took longer than a page may. `slotscope report` and `compare` on the server's host have no such limit."
)
_STORE = "The server cannot use its store now; its log says why. Try again later."
_FAULT = "Something went wrong here; the server's log says what."
_RETRY_S = MappingProxyType({"retry-after": "5"})


@dataclass(frozen=True, slots=True)
class _Said:
    """``message``: None = the error's own."""

    status: int
    message: str | None
    headers: Mapping[str, str] = field(default_factory=dict)


_SAID: Mapping[type[Exception], _Said] = MappingProxyType(
    {
        NotAllowed: _Said(403, None),
        AnalysisBusy: _Said(503, _BUSY, _RETRY_S),
        AnalysisTooLong: _Said(503, _TOO_LONG),
        StoreError: _Said(503, _STORE, _RETRY_S),
        Exception: _Said(500, _FAULT),
    }
)


def add_error_pages(app: FastAPI, renderer: PageRenderer) -> None:
    """Every error of the application becomes a page."""

    def add(kind: type[Exception], said: Callable[[Request, Exception], _Said]) -> None:
        async def answer(request: Request, error: Exception) -> Response:
            if isinstance(error, HTTPException) and "text/html" not in request.headers.get("accept", ""):
                return problem_answer(error)  # a program, that looked for something else
            return await _page(renderer, request, said(request, error), str(error))

        app.add_exception_handler(kind, answer)

    for kind, fixed in _SAID.items():
        add(kind, _always(fixed))
    add(HTTPException, _known)
    add(RequestValidationError, _invalid)
    add(AnalysisRefused, _refused)
    app.add_exception_handler(LoginNeeded, _to_login)


def _always(said: _Said) -> Callable[[Request, Exception], _Said]:
    return lambda request, error: said


async def _page(renderer: PageRenderer, request: Request, said: _Said, own_message: str) -> Response:
    try:
        await run_in_threadpool(known_visitor, request)  # for the navigation
    except StoreError as error:
        LOG.error("%s", error)
    message = own_message if said.message is None else said.message
    title = HTTPStatus(said.status).phrase
    response = renderer.page(request, "error.html", said.status, title=title, message=message, status_code=said.status)
    response.headers.update(said.headers)
    return response


def _known(request: Request, error: Exception) -> _Said:
    assert isinstance(error, HTTPException)
    message = "There is no such page." if error.status_code == HTTPStatus.NOT_FOUND else str(error.detail)
    return _Said(error.status_code, message, error.headers or {})


def _invalid(request: Request, error: Exception) -> _Said:
    assert isinstance(error, RequestValidationError)
    return _Said(400, f"The address is not one of a page: {error.errors()[0]['loc'][-1]} cannot be that.")


def _refused(request: Request, error: Exception) -> _Said:
    assert isinstance(error, AnalysisRefused)
    return _Said(400 if error.is_question_wrong else 422, None)


async def _to_login(request: Request, error: Exception) -> Response:
    query = request.scope["query_string"].decode("latin-1")
    after = quote(request.scope["path"]) + (f"?{query}" if query else "")
    return RedirectResponse(with_query("/login", after=after if request.method == "GET" else ""), 303)
