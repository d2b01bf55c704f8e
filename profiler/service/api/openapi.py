"""The OpenAPI document: what FastAPI finds out by itself, and the problems that every route can answer with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from profiler.service.api.problems import MEDIA_TYPE, ProblemBody

_METHODS = ("get", "put", "post", "delete", "patch")
_ALWAYS = {
    400: "Malformed request",
    429: "Too many requests",
    500: "Internal error",
    503: "The store is not usable now",
}
_WITH_TOKEN = {401: "No valid token", 403: "The token's scope does not allow this"}
_WITH_BODY = {408: "The body came too slowly", 413: "The body is too large"}
_WITH_INPUT = {422: "A parameter or the body is not as described"}
_DESCRIPTION = """What agents and people say to a slotscope aggregator. Every error is `application/problem+json` (RFC 9457)."""


def describe(app: FastAPI, version: str) -> Callable[[], dict[str, Any]]:
    """To be set as ``app.openapi``; made once, when it is asked for first."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title,
                version=version,
                description=_DESCRIPTION,
                routes=app.routes,
                separate_input_output_schemas=False,
            )
            _add_problems(made)
            app.openapi_schema = made
        return app.openapi_schema

    return document


def _add_problems(document: dict[str, Any]) -> None:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = TypeAdapter(ProblemBody).json_schema()
    for path in document["paths"].values():
        for method, operation in path.items():
            if method in _METHODS:
                _add_problems_of(operation)


def _add_problems_of(operation: dict[str, Any]) -> None:
    has_input = bool(operation.get("parameters") or operation.get("requestBody"))
    expected = dict(_ALWAYS)
    expected |= _WITH_TOKEN if operation.get("security") else {}
    expected |= _WITH_BODY if operation.get("requestBody") else {}
    expected |= _WITH_INPUT if has_input else {}
    responses = operation["responses"]
    own = {int(status): answer["description"] for status, answer in responses.items() if status >= "400"}
    for status, description in sorted((own | expected).items()):
        responses[str(status)] = {
            "description": description,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
