"""Templates to pages.  Whatever a template shows goes through one place: made printable, then escaped."""

from __future__ import annotations

import importlib.resources

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from profiler.service.pages import links
from profiler.service.pages.login.page_sessions import SESSION_SECONDS, form_token
from profiler.service.pages.login.visitor import COOKIE, Visitor
from reports.html import elements
from reports.plain_text import printable

PACKAGE = "profiler.service.pages"


class PageRenderer:
    """Templates are read once."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader(PACKAGE),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters["name"] = lambda words: Markup(elements.name(words))
        self._environment.filters["shortened"] = _shortened
        self._environment.globals.update({name: getattr(links, name) for name in dir(links) if name.endswith("_link")})
        self._environment.globals["with_query"] = links.with_query

    def page(self, request: Request, template: str, status: int = 200, **values: object) -> HTMLResponse:
        """The visitor, where there is one, keeps their session by its cookie."""
        visitor: Visitor | None = getattr(request.state, "visitor", None)
        token = form_token(visitor.identifier) if visitor is not None else ""
        text = self._environment.get_template(template).render(
            visitor=visitor, form_token=token, here=request.scope["path"], **values
        )
        response = HTMLResponse(text, status)
        if visitor is not None and visitor.is_local and request.cookies.get(COOKIE) != visitor.identifier:
            set_session_cookie(request, response, visitor.identifier)
        return response


def set_session_cookie(request: Request, response: Response, identifier: str) -> None:
    """Out of reach of scripts and of other sites; over TLS only where there is TLS."""
    response.set_cookie(COOKIE, identifier, SESSION_SECONDS, httponly=True, samesite="strict", secure=is_encrypted(request))


def is_encrypted(request: Request) -> bool:
    return bool(request.scope["scheme"] == "https")


def safe_html(piece: bytes) -> Markup:
    """A piece made by ``reports.html``, which is safe already."""
    return Markup(piece.decode())


def static_file(name: str) -> bytes:
    return importlib.resources.files(PACKAGE).joinpath("static", name).read_bytes()


def _shortened(words: object, longest: int = elements.LONGEST_NAME) -> Markup:
    return Markup(elements.text(str(words), longest))


def _shown(value: object) -> object:
    """Jinja escapes what comes out of this, unless it is marked as safe."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
