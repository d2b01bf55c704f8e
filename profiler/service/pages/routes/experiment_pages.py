"""Experiments: how far each is while it runs, and what it found."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from profiler.experiment.experiment_session import stored_record
from profiler.model.analysis_choices import DIMENSIONS, VIEWS
from profiler.model.experiment import ExperimentRecord
from profiler.service.aggregator import Aggregator
from profiler.service.job_board import StoredJob
from profiler.service.pages.analysis.analyses import Analyses
from profiler.service.pages.analysis.analysis_order import AnalysisOrder, Content, Format
from profiler.service.pages.links import experiment_link, with_query
from profiler.service.pages.login.visitor import CurrentVisitor
from profiler.service.pages.rendering import PageRenderer
from profiler.service.pages.routes.answers import SUFFIXES, Question, file, piece
from profiler.service.pages.routes.table_choice import ROW_COUNTS, ChosenTable, TableChoice
from profiler.service.pages.views.experiment_view import ExperimentRow, experiment_row, round_progress
from profiler.service.pages.views.paging import page_of
from profiler.store.records import SessionState, StoredRun, StoredSession

_ROWS = 50


@dataclass(frozen=True, slots=True)
class _Found:
    session: StoredSession
    record: ExperimentRecord
    runs: tuple[StoredRun, ...]
    jobs: tuple[StoredJob, ...]

    @property
    def is_running(self) -> bool:
        """Whether more of it is to come: jobs are open, or it was begun here and not ended."""
        is_open = any(not job.report.state.is_final for job in self.jobs)
        return is_open or (bool(self.jobs) and self.session.state is SessionState.RECORDING)


def experiment_pages(aggregator: Aggregator, renderer: PageRenderer, analyses: Analyses) -> APIRouter:
    router = APIRouter()
    store = aggregator.store

    def experiments_of(sessions: tuple[StoredSession, ...]) -> list[ExperimentRow]:
        records = ((session, stored_record(store, session.name)) for session in reversed(sessions))
        return [experiment_row(session, record) for session, record in records if record is not None]

    def found(name: str) -> _Found:
        session = next((each for each in store.sessions() if each.name == name), None)
        record = stored_record(store, name) if session is not None else None
        if session is None or record is None:
            raise HTTPException(404)
        return _Found(session, record, store.runs(name), aggregator.jobs.jobs(session=name))

    def asked(experiment: _Found, choice: TableChoice) -> Question:
        order = AnalysisOrder(
            content=Content.EXPERIMENT,
            format=Format.HTML,
            store=str(store.directory),
            selectors=(experiment.session.name,),
            by=choice.by,
            view=choice.view,
            phase=choice.asked_phase,
            limit=choice.rows,
        )
        return Question(order, tuple(run.blob for run in experiment.runs))

    @router.get("/experiments")
    def experiments(request: Request, visitor: CurrentVisitor, page: int = 1) -> Response:
        rows = page_of(experiments_of(store.sessions()), page, _ROWS)
        return renderer.page(request, "experiments.html", title="Experiments", page=rows)

    @router.get("/experiments/{session}")
    async def experiment(
        request: Request, visitor: CurrentVisitor, choice: ChosenTable, session: str, so_far: str = ""
    ) -> Response:
        known = await run_in_threadpool(found, session)
        is_shown = not known.is_running or bool(so_far)
        shown = await piece(analyses, asked(known, choice)) if is_shown else None
        address = experiment_link(session)
        suffixes = [suffix for suffix in SUFFIXES if SUFFIXES[suffix] is not Format.SPEEDSCOPE]
        return renderer.page(
            request,
            "experiment.html",
            shown.status if shown else 200,
            title=known.record.name,
            experiment=experiment_row(known.session, known.record),
            rounds=round_progress(known.jobs),
            is_running=known.is_running,
            is_live=known.is_running and not is_shown,
            piece=shown,
            choice=choice,
            dimensions=DIMENSIONS,
            views=VIEWS,
            row_counts=ROW_COUNTS,
            downloads={suffix: with_query(f"{address}/result.{suffix}", **choice.fields) for suffix in suffixes},
        )

    @router.get("/experiments/{session}/result.{suffix}")
    async def kept(visitor: CurrentVisitor, choice: ChosenTable, session: str, suffix: str) -> Response:
        if SUFFIXES.get(suffix) is Format.SPEEDSCOPE:
            raise HTTPException(404)
        known = await run_in_threadpool(found, session)
        return await file(analyses, asked(known, choice), suffix, f"{known.record.name}-{session}")

    return router
