"""The hosts, and one of them."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from profiler.service.aggregator import Aggregator
from profiler.service.pages.login.visitor import CurrentVisitor
from profiler.service.pages.rendering import PageRenderer
from profiler.service.pages.views.host_view import HostRow, host_rows


def host_pages(aggregator: Aggregator, renderer: PageRenderer, hello_s: float) -> APIRouter:
    """``hello_s``: how often an agent is to say hello."""
    router = APIRouter()

    def rows() -> tuple[HostRow, ...]:
        return host_rows(aggregator.agents.agents(), aggregator.clock_ns(), hello_s)

    @router.get("/")
    def home(visitor: CurrentVisitor) -> Response:
        return RedirectResponse("/hosts", 303)

    @router.get("/hosts")
    def hosts(request: Request, visitor: CurrentVisitor) -> Response:
        return renderer.page(request, "hosts.html", title="Hosts", hosts=rows())

    @router.get("/hosts/{name}")
    def host(request: Request, visitor: CurrentVisitor, name: str) -> Response:
        found = next((row for row in rows() if row.name == name), None)
        if found is None:
            raise HTTPException(404)
        return renderer.page(request, "host.html", title=f"Host {found.name}", host=found)

    return router
