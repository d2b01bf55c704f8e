"""JSON in and out: the same reading of values as on the agents' side, exact to the type, and nothing that could not be kept or
answered.  FastAPI describes the values in the OpenAPI document; pydantic's own conversions ("12" for 12) are not wanted.

    OfferBody: TypeAlias = Annotated[UploadOffer, read_as(UploadOffer)]
"""

from __future__ import annotations

import json
import math
from typing import Any, TypeVar

from pydantic import BeforeValidator
from starlette.responses import Response

from profiler.codec.json_values import Json, from_json, to_json

_LARGEST_INTEGER = (1 << 63) - 1
Value = TypeVar("Value")


def read_as(kind: type[Value]) -> BeforeValidator:
    """To annotate the body of a route with; what does not fit is answered with 422."""

    def read(json_value: Any) -> Value:
        check_json(json_value)
        return from_json(kind, json_value)

    return BeforeValidator(read)


def check_json(value: Json) -> None:
    """``ValueError`` for what Python's parser takes and JSON, UTF-8, or a 64-bit integer cannot hold."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str):
            _check_text(item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise ValueError("a number is not finite")
        elif isinstance(item, int) and abs(item) > _LARGEST_INTEGER:
            raise ValueError("an integer is beyond 64 bits")


def answer(value: object, status: int = 200) -> Response:
    """The answer that holds a value of ours.  Texts out of captures need not be UTF-8: everything is written in ASCII."""
    headers = {"Cache-Control": "no-store"}
    return Response(json.dumps(to_json(value)), status, headers, "application/json")


def _check_text(text: str) -> None:
    if "\0" in text:
        raise ValueError("a text holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text holds half of a surrogate pair") from None
