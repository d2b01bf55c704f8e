"""Where the time of one arm went."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from profiler.model.analysis_choices import DIMENSIONS, VIEWS
from profiler.service.aggregator import Aggregator
from profiler.service.pages.analysis.analyses import Analyses, AnalysisRefused
from profiler.service.pages.analysis.analysis_order import Content
from profiler.service.pages.links import arm_link, with_query
from profiler.service.pages.login.visitor import CurrentVisitor
from profiler.service.pages.rendering import PageRenderer
from profiler.service.pages.routes.answers import SUFFIXES, Question, file, piece, question, refusal, selected
from profiler.service.pages.routes.table_choice import ROW_COUNTS, ChosenTable, TableChoice


def report_pages(aggregator: Aggregator, renderer: PageRenderer, analyses: Analyses) -> APIRouter:
    router = APIRouter()
    store = aggregator.store

    async def asked(session: str, variant: str, choice: TableChoice) -> Question:
        found = await selected(store, [f"session:{session}/{variant}"])
        return question(Content.REPORT, store, found, choice)

    @router.get("/captures/{session}/{variant}")
    async def report(request: Request, visitor: CurrentVisitor, session: str, variant: str, choice: ChosenTable) -> Response:
        try:
            shown = await piece(analyses, await asked(session, variant, choice))
        except AnalysisRefused as error:
            shown = refusal(error)
        address = arm_link(session, variant)
        return renderer.page(
            request,
            "report.html",
            shown.status,
            title=f"{variant} of session {session}",
            session=session,
            variant=variant,
            piece=shown,
            choice=choice,
            dimensions=DIMENSIONS,
            views=VIEWS,
            row_counts=ROW_COUNTS,
            downloads={suffix: with_query(f"{address}/report.{suffix}", **choice.fields) for suffix in SUFFIXES},
        )

    @router.get("/captures/{session}/{variant}/report.{suffix}")
    async def kept(visitor: CurrentVisitor, session: str, variant: str, suffix: str, choice: ChosenTable) -> Response:
        return await file(analyses, await asked(session, variant, choice), suffix, f"{session}-{variant}")

    return router
