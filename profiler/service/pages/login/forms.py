"""Forms that change something: read within limits, and only from pages of this server."""

from __future__ import annotations

from urllib.parse import parse_qsl

from fastapi import Request

from profiler.service.pages.login.page_sessions import is_form_token
from profiler.service.pages.login.visitor import NotAllowed, Visitor

_LARGEST_FORM_BYTES = 16 << 10
_MOST_FIELDS = 20


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form of this server's own pages.  ``NotAllowed`` for one from elsewhere, or too large."""
    check_origin(request)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM_BYTES:
            raise NotAllowed("The form is too large.")
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise NotAllowed("The form cannot be read.") from None


def check_origin(request: Request) -> None:
    """Browsers say from which site a form was sent; one that says nothing is none.  ``NotAllowed``."""
    _, _, origin = request.headers.get("origin", "").partition("://")
    if not origin or origin.lower() != request.headers.get("host", "").lower():
        raise NotAllowed("The form was not sent from a page of this server.")


def check_form_token(visitor: Visitor, form: dict[str, str]) -> None:
    """``NotAllowed`` when the form is not one of this session."""
    if not is_form_token(visitor.identifier, form.get("form_token", "")):
        raise NotAllowed("The page is out of date: go back, load it again, and repeat.")
