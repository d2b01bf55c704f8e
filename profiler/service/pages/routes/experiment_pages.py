"""Experiments: how far each is while it runs, and what it found."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from profiler.experiment.experiment_session import stored_record
from profiler.model.analysis_choices import DIMENSIONS, VIEWS
from profiler.model.experiment import ExperimentRecord
from profiler.model.quick_dataclass import dataclass
from profiler.service.aggregator import Aggregator
from profiler.service.experiments.experiment_progress import ExperimentProgress, experiment_progress
from profiler.service.jobs.job_board import StoredJob
from profiler.service.pages.analysis.analyses import Analyses
from profiler.service.pages.analysis.analysis_order import AnalysisOrder, Content, Format
from profiler.service.pages.links import experiment_link, with_query
from profiler.service.pages.login.forms import check_form_token, read_form
from profiler.service.pages.login.visitor import CurrentOperator, CurrentVisitor
from profiler.service.pages.rendering import PageRenderer
from profiler.service.pages.routes.answers import SUFFIXES, Question, file, piece
from profiler.service.pages.routes.table_choice import ROW_COUNTS, ChosenTable, TableChoice
from profiler.service.pages.views.experiment_view import ExperimentRow, experiment_row, round_progress
from profiler.service.pages.views.paging import page_of
from profiler.store.records import StoredRun, StoredSession
from profiler.store.store import Store

_ROWS = 50


@dataclass(frozen=True, slots=True)
class _Found:
    """``progress``: of one that was submitted here, None for any other in the store."""

    session: StoredSession
    record: ExperimentRecord
    runs: tuple[StoredRun, ...]
    jobs: tuple[StoredJob, ...]
    progress: ExperimentProgress | None

    @property
    def is_running(self) -> bool:
        """Whether more of it is to come from agents."""
        return self.progress is not None and not self.progress.state.is_final


def experiment_pages(aggregator: Aggregator, renderer: PageRenderer, analyses: Analyses) -> APIRouter:
    router = APIRouter()

    @router.get("/experiments")
    def experiments(request: Request, visitor: CurrentVisitor, page: int = 1) -> Response:
        rows = page_of(_experiments(aggregator), page, _ROWS)
        return renderer.page(request, "experiments.html", title="Experiments", page=rows)

    @router.get("/experiments/{session}")
    async def experiment(
        request: Request, visitor: CurrentVisitor, choice: ChosenTable, session: str, so_far: str = ""
    ) -> Response:
        known = await run_in_threadpool(_found, aggregator, session)
        is_shown = not known.is_running or bool(so_far)
        shown = await piece(analyses, _asked(aggregator.store, known, choice)) if is_shown else None
        address = experiment_link(session)
        suffixes = [suffix for suffix in SUFFIXES if SUFFIXES[suffix] is not Format.SPEEDSCOPE]
        return renderer.page(
            request,
            "experiment.html",
            shown.status if shown else 200,
            title=known.record.name,
            experiment=experiment_row(known.session, known.record, known.progress.state if known.progress else None),
            rounds=round_progress(known.jobs),
            progress=known.progress,
            is_running=known.is_running,
            is_live=known.is_running and not is_shown,
            piece=shown,
            choice=choice,
            dimensions=DIMENSIONS,
            views=VIEWS,
            row_counts=ROW_COUNTS,
            downloads={suffix: with_query(f"{address}/result.{suffix}", **choice.fields) for suffix in suffixes},
        )

    @router.post("/experiments/{session}/cancel")
    async def cancel(request: Request, visitor: CurrentOperator, session: str) -> Response:
        check_form_token(visitor, await read_form(request))
        await run_in_threadpool(_ask_end, aggregator, session)
        return RedirectResponse(experiment_link(session), 303)

    @router.get("/experiments/{session}/result.{suffix}")
    async def kept(visitor: CurrentVisitor, choice: ChosenTable, session: str, suffix: str) -> Response:
        if SUFFIXES.get(suffix) is Format.SPEEDSCOPE:
            raise HTTPException(404)
        known = await run_in_threadpool(_found, aggregator, session)
        return await file(analyses, _asked(aggregator.store, known, choice), suffix, f"{known.record.name}-{session}")

    return router


def _experiments(aggregator: Aggregator) -> list[ExperimentRow]:
    """The latest first."""
    store = aggregator.store
    courses = {each.session: each.course.state for each in aggregator.experiments.experiments()}
    records = ((session, stored_record(store, session.name)) for session in reversed(store.sessions()))
    return [experiment_row(session, record, courses.get(session.name)) for session, record in records if record is not None]


def _found(aggregator: Aggregator, name: str) -> _Found:
    """``HTTPException`` 404."""
    store = aggregator.store
    session = next((each for each in store.sessions() if each.name == name), None)
    record = stored_record(store, name) if session is not None else None
    if session is None or record is None:
        raise HTTPException(404)
    submitted, jobs = aggregator.experiments.experiment(name), aggregator.jobs.jobs(session=name)
    by_id = {job.order.id: job for job in jobs}
    progress = experiment_progress(submitted, by_id) if submitted is not None else None
    return _Found(session, record, store.runs(name), jobs, progress)


def _ask_end(aggregator: Aggregator, session: str) -> None:
    """``HTTPException`` 404 for one that is not run over agents."""
    if aggregator.experiments.experiment(session) is None:
        raise HTTPException(404)
    aggregator.experiments.ask_cancel(session)


def _asked(store: Store, experiment: _Found, choice: TableChoice) -> Question:
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
