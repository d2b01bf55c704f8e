"""Errors as pages: what is wrong and the way out, never how it came about."""

from __future__ import annotations

import logging
from http import HTTPStatus
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from profiler.errors import StoreError
from profiler.service.api.problems import problem_answer
from profiler.service.pages.analysis.analyses import AnalysisBusy, AnalysisRefused, AnalysisTooLong
from profiler.service.pages.links import with_query
from profiler.service.pages.login.visitor import LoginNeeded, NotAllowed, known_visitor
from profiler.service.pages.rendering import PageRenderer

LOG = logging.getLogger("slotscope.serve")
_BUSY = "As many analyses are being worked out as this server allows. Try again in a moment."
_TOO_LONG = (
    "The analysis took longer than a page may. `slotscope report` and `compare` on the server's host have no such limit."
)
_STORE = "The server cannot use its store now; its log says why. Try again later."
_FAULT = "Something went wrong here; the server's log says what."
_RETRY_S = {"retry-after": "5"}


def add_error_pages(app: FastAPI, renderer: PageRenderer) -> None:
    """Every error of the application becomes a page."""

    async def page(request: Request, status: int, message: str, headers: dict[str, str] | None = None) -> Response:
        try:
            await run_in_threadpool(known_visitor, request)  # for the navigation
        except StoreError as error:
            LOG.error("%s", error)
        response = renderer.page(
            request, "error.html", status, title=HTTPStatus(status).phrase, message=message, status_code=status
        )
        response.headers.update(headers or {})
        return response

    async def known(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if "text/html" not in request.headers.get("accept", ""):
            return problem_answer(error)  # a program, that looked for something else
        message = "There is no such page." if error.status_code == HTTPStatus.NOT_FOUND else str(error.detail)
        return await page(request, error.status_code, message, dict(error.headers or {}))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return await page(request, 400, f"The address is not one of a page: {error.errors()[0]['loc'][-1]} cannot be that.")

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, AnalysisRefused)
        return await page(request, 400 if error.is_question_wrong else 422, str(error))

    async def login(request: Request, error: Exception) -> Response:
        query = request.scope["query_string"].decode("latin-1")
        after = quote(request.scope["path"]) + (f"?{query}" if query else "")
        return RedirectResponse(with_query("/login", after=after if request.method == "GET" else ""), 303)

    async def not_allowed(request: Request, error: Exception) -> Response:
        return await page(request, 403, str(error))

    async def busy(request: Request, error: Exception) -> Response:
        return await page(request, 503, _BUSY, _RETRY_S)

    async def too_long(request: Request, error: Exception) -> Response:
        return await page(request, 503, _TOO_LONG)

    async def unusable_store(request: Request, error: Exception) -> Response:
        LOG.error("%s", error)
        return await page(request, 503, _STORE, _RETRY_S)

    async def fault(request: Request, error: Exception) -> Response:
        return await page(request, 500, _FAULT)

    app.add_exception_handler(HTTPException, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(AnalysisRefused, refused)
    app.add_exception_handler(LoginNeeded, login)
    app.add_exception_handler(NotAllowed, not_allowed)
    app.add_exception_handler(AnalysisBusy, busy)
    app.add_exception_handler(AnalysisTooLong, too_long)
    app.add_exception_handler(StoreError, unusable_store)
    app.add_exception_handler(Exception, fault)
