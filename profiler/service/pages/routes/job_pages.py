"""Jobs of all agents, and one of them, which operators may cancel."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from profiler.protocol.job import JobState
from profiler.service.aggregator import Aggregator
from profiler.service.jobs.single_jobs import end_single_job
from profiler.service.pages.links import job_link
from profiler.service.pages.login.forms import check_form_token, read_form
from profiler.service.pages.login.visitor import CurrentOperator, CurrentVisitor
from profiler.service.pages.rendering import PageRenderer
from profiler.service.pages.views.job_view import JobFilter, job_rows, state_counts
from profiler.service.pages.views.paging import page_of

_ROWS = 50


def job_pages(aggregator: Aggregator, renderer: PageRenderer) -> APIRouter:
    router = APIRouter()

    def cancelled(job: str, by: str) -> None:
        aggregator.jobs.cancel(job, f"cancelled by {by}", aggregator.clock_ns())
        found = aggregator.jobs.job(job)
        if found is None:
            raise HTTPException(404)
        end_single_job(aggregator, found)

    @router.get("/jobs")
    def jobs(
        request: Request, visitor: CurrentVisitor, agent: str = "", session: str = "", state: str = "", page: int = 1
    ) -> Response:
        found = aggregator.jobs.jobs()
        rows = job_rows(found, JobFilter(agent, session, state))
        return renderer.page(
            request,
            "jobs.html",
            title="Jobs",
            page=page_of(rows, page, _ROWS),
            counts=state_counts(found),
            chosen=JobFilter(agent, session, state),
            agents=sorted({job.agent for job in found}),
            states=[each.value for each in JobState],
            is_live=any(row.can_be_cancelled for row in rows),
        )

    @router.get("/jobs/{job}")
    def job(request: Request, visitor: CurrentVisitor, job: str) -> Response:
        found = aggregator.jobs.job(job)
        if found is None:
            raise HTTPException(404)
        (row,) = job_rows([found], JobFilter())
        return renderer.page(
            request, "job.html", title=f"Job: {row.what}", job=row, order=found.order, is_live=row.can_be_cancelled
        )

    @router.post("/jobs/{job}/cancel")
    async def cancel(request: Request, visitor: CurrentOperator, job: str) -> Response:
        check_form_token(visitor, await read_form(request))
        await run_in_threadpool(cancelled, job, visitor.name)
        return RedirectResponse(job_link(job), 303)

    return router
