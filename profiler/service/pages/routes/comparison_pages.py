"""A comparison of two selections, chosen in a form."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from profiler.model.analysis_choices import DIMENSIONS, VIEWS
from profiler.service.aggregator import Aggregator
from profiler.service.pages.analysis.analyses import Analyses, AnalysisRefused
from profiler.service.pages.analysis.analysis_order import Content
from profiler.service.pages.links import with_query
from profiler.service.pages.login.visitor import CurrentVisitor
from profiler.service.pages.rendering import PageRenderer
from profiler.service.pages.routes.answers import SUFFIXES, Piece, Question, file, piece, question, refusal, selected
from profiler.service.pages.routes.table_choice import ROW_COUNTS, ChosenTable, TableChoice
from profiler.store.store import Store

_SUGGESTIONS = 200


def _units(per: str = "1") -> float:
    try:
        value = float(per)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and 1e-9 < value < 1e15):
        raise HTTPException(400, "The units of work in a run are a number above 0.")
    return value


UnitsOfWork: TypeAlias = Annotated[float, Depends(_units)]


def comparison_pages(aggregator: Aggregator, renderer: PageRenderer, analyses: Analyses) -> APIRouter:
    router = APIRouter()
    store = aggregator.store

    @router.get("/compare")
    async def compare(
        request: Request,
        visitor: CurrentVisitor,
        choice: ChosenTable,
        per: UnitsOfWork,
        baseline: str = "",
        candidate: str = "",
    ) -> Response:
        baseline, candidate = baseline.strip(), candidate.strip()
        shown = await _compared(analyses, store, (baseline, candidate), choice, per)
        fields = {"baseline": baseline, "candidate": candidate, "per": f"{per:g}", **choice.fields}
        return renderer.page(
            request,
            "compare.html",
            shown.status if shown else 200,
            title="Comparison" if shown else "Compare",
            baseline=baseline,
            candidate=candidate,
            per=f"{per:g}",
            piece=shown,
            choice=choice,
            dimensions=DIMENSIONS,
            views=VIEWS,
            row_counts=ROW_COUNTS,
            suggestions=await run_in_threadpool(_suggestions, store),
            downloads={suffix: with_query(f"/compare/comparison.{suffix}", **fields) for suffix in SUFFIXES},
        )

    @router.get("/compare/comparison.{suffix}")
    async def kept(
        visitor: CurrentVisitor, choice: ChosenTable, per: UnitsOfWork, suffix: str, baseline: str, candidate: str
    ) -> Response:
        stem = f"{candidate}-against-{baseline}"
        return await file(analyses, await _asked(store, (baseline.strip(), candidate.strip()), choice, per), suffix, stem)

    return router


async def _asked(store: Store, names: tuple[str, str], choice: TableChoice, per: float) -> Question:
    return question(Content.COMPARISON, store, await selected(store, names), choice, per)


async def _compared(analyses: Analyses, store: Store, names: tuple[str, str], choice: TableChoice, per: float) -> Piece | None:
    """``names``: of baseline and candidate.  None while nothing has been asked for."""
    if not any(names):
        return None
    try:
        if not all(names):
            raise AnalysisRefused("Name both: what is compared, and with what.", is_question_wrong=True)
        return await piece(analyses, await _asked(store, names, choice, per))
    except AnalysisRefused as error:
        return refusal(error)


def _suggestions(store: Store) -> list[str]:
    """Selectors of the latest arms."""
    arms = dict.fromkeys(f"{run.key.session}/{run.summary.variant}" for run in reversed(store.runs()))
    return list(arms)[:_SUGGESTIONS]
