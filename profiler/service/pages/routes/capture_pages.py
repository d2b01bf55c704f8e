"""The captures in the store: all arms, the runs of one session, and a run's capture to be kept."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from profiler.service.aggregator import Aggregator
from profiler.service.pages.downloads import download
from profiler.service.pages.login.visitor import CurrentVisitor
from profiler.service.pages.rendering import PageRenderer
from profiler.service.pages.views.capture_view import CaptureFilter, arm_rows, run_rows
from profiler.service.pages.views.paging import page_of
from profiler.store.records import StoredSession

_ARMS = 50
_RUNS = 100


def capture_pages(aggregator: Aggregator, renderer: PageRenderer) -> APIRouter:
    router = APIRouter()
    store = aggregator.store

    def session_named(name: str) -> StoredSession:
        for session in store.sessions():
            if session.name == name:
                return session
        raise HTTPException(404)

    @router.get("/captures")
    def captures(
        request: Request, visitor: CurrentVisitor, variant: str = "", host: str = "", state: str = "", page: int = 1
    ) -> Response:
        chosen = CaptureFilter(variant, host, state)
        every = arm_rows(store.sessions(), store.runs())
        rows = [row for row in every if chosen.admits(row)]
        return renderer.page(
            request,
            "captures.html",
            title="Captures",
            page=page_of(rows, page, _ARMS),
            chosen=chosen,
            variants=sorted({row.variant for row in every}),
            hosts=sorted({host for row in every for host in row.hosts}),
            states=sorted({row.state for row in every}),
        )

    @router.get("/captures/{session}")
    def session(request: Request, visitor: CurrentVisitor, session: str, page: int = 1) -> Response:
        found = session_named(session)
        runs = store.runs(session)
        return renderer.page(
            request,
            "session.html",
            title=f"Session {found.name}",
            session=found,
            arms=arm_rows([found], runs),
            page=page_of(run_rows(runs), page, _RUNS),
        )

    @router.get("/captures/{session}/runs/{number}.capture")
    def capture(visitor: CurrentVisitor, session: str, number: int) -> Response:
        run = next((run for run in store.runs(session) if run.key.number == number), None)
        if run is None:
            raise HTTPException(404)
        stem = f"{session}-{number:04d}-{run.summary.variant}"
        return download(store.blobs.get(run.blob), "application/octet-stream", stem, ".capture")

    return router
