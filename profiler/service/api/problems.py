"""Errors as ``application/problem+json`` (RFC 9457): every answer that is an error has this one form."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from profiler.errors import StoreError
from profiler.model.quick_dataclass import dataclass
from profiler.service.service_log import LOG

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class ProblemBody:
    """``title``: the kind of problem.  ``detail``: what is wrong with this request, and the way out.  ``type``: always
    "about:blank", ``status`` says enough."""

    title: str
    status: int
    detail: str = ""
    type: str = "about:blank"


class Problem(HTTPException):
    """Raised by routes and dependencies; becomes the answer."""

    def __init__(self, status: int, title: str, detail: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)
        self.title = title


def problem_answer(problem: HTTPException) -> JSONResponse:
    """The answer for an error, in parts of the application that cannot raise it."""
    phrase = HTTPStatus(problem.status_code).phrase
    detail = "" if problem.detail == phrase else str(problem.detail)
    body = {
        "title": getattr(problem, "title", phrase),
        "status": problem.status_code,
        "detail": detail,
        "type": "about:blank",
    }
    return JSONResponse(body, problem.status_code, problem.headers, MEDIA_TYPE)


def unusable_store(error: StoreError) -> JSONResponse:
    """The message goes to the log only: it names paths of this machine."""
    LOG.error("%s", error)
    detail = "the aggregator cannot use its store now, its log says why; try again later"
    return problem_answer(Problem(503, "Store not usable", detail, {"Retry-After": "10"}))


def described(problems: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """For ``responses=`` of a route: the problems of its own.  Those that every route can have are added to the description by
    ``openapi.describe``."""
    return {status: {"description": what} for status, what in problems.items()}


def add_problem_answers(app: FastAPI) -> None:
    """Every error of the application is answered as a problem."""
    app.add_exception_handler(HTTPException, _known_problem)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(StoreError, _unusable_store)
    app.add_exception_handler(ClientDisconnect, _incomplete_request)
    app.add_exception_handler(Exception, _fault)


async def _known_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        error.headers = {"Allow": _allowed_methods(request)} if _allowed_methods(request) else error.headers
    return problem_answer(error)


def _allowed_methods(request: Request) -> str:
    """Of all routes of this path; the error knows those of one only.  "" when the path is not described."""
    path = getattr(request.scope.get("route"), "path", "")
    described_path = request.app.openapi()["paths"].get(path, {})
    return ", ".join(sorted(method.upper() for method in described_path))


async def _invalid_request(_: Request, error: Exception) -> JSONResponse:
    """Names the first field that is wrong.  What was sent is not repeated: it can be long, and it can be a secret."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    message = f"{place}: {first['msg']}".encode("utf-8", "replace").decode()
    return problem_answer(Problem(422, "Invalid request", message))


async def _unusable_store(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StoreError)
    return unusable_store(error)


async def _incomplete_request(*_: object) -> JSONResponse:
    """Whoever is killed in the middle of a request is no fault of the aggregator; nobody reads the answer."""
    return problem_answer(Problem(400, "Incomplete request", "the connection ended before the whole body was here"))


async def _fault(_: Request, error: Exception) -> JSONResponse:
    return problem_answer(Problem(500, "Internal error", f"{type(error).__name__}; the aggregator's log says where"))
