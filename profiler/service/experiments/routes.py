"""Experiments over HTTP: submitted, looked at, cancelled, and what they found."""

from __future__ import annotations

import threading
from pathlib import PurePath
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Query
from starlette.responses import Response

from profiler.errors import AnalysisError, UsageError
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.addresses import EXPERIMENT, EXPERIMENT_CANCEL, EXPERIMENT_RESULT, EXPERIMENTS
from profiler.service.access.authorization import Operator, Reader
from profiler.service.aggregator import Aggregator
from profiler.service.api.json_bodies import answer, read_as
from profiler.service.api.problems import Problem, described
from profiler.service.experiments.experiment_board import SubmittedExperiment
from profiler.service.experiments.experiment_progress import ExperimentProgress, Experiments, experiment_progress
from profiler.service.experiments.experiment_result import ResultFormat, experiment_result
from profiler.service.experiments.submission import checked_plan, submit

_MEDIA_TYPES = {ResultFormat.MARKDOWN: "text/markdown; charset=utf-8", ResultFormat.JSON: "application/json"}
_RESULTS_AT_ONCE = 2
_Newest: TypeAlias = Annotated[int, Query(ge=1, le=1000, description="Only so many, the newest.")]
_UNKNOWN = {404: "No such experiment"}


@dataclass(frozen=True, slots=True)
class PlanSubmission:
    """``plan``: the TOML text.  ``name``: of its file, for messages."""

    plan: str
    name: str = "plan.toml"


_Submission: TypeAlias = Annotated[PlanSubmission, read_as(PlanSubmission)]


def experiment_routes(aggregator: Aggregator) -> APIRouter:
    router = APIRouter(tags=["experiments"])
    _add_submission(router, aggregator)
    _add_progress(router, aggregator)
    _add_result(router, aggregator)
    return router


def _add_submission(router: APIRouter, aggregator: Aggregator) -> None:
    refused = described({409: "The plan cannot be run"})

    @router.post(EXPERIMENTS, response_model=ExperimentProgress, status_code=201, responses=refused)
    def begin(_: Operator, body: _Submission) -> Response:
        """Checks a plan against what the agents offer, and begins it."""
        try:
            plan = checked_plan(body.plan, PurePath(body.name).name or "plan.toml", aggregator.agents)
            begun = submit(plan, aggregator.store, aggregator.experiments, aggregator.clock_ns())
        except UsageError as error:
            raise Problem(409, "The plan cannot be run", str(error)) from None
        return answer(_progress_of(begun, aggregator), 201)


def _add_progress(router: APIRouter, aggregator: Aggregator) -> None:
    @router.get(EXPERIMENTS, response_model=Experiments)
    def experiments(_: Reader, newest: _Newest = 100) -> Response:
        """Experiments over agents, and how far they are."""
        found = aggregator.experiments.experiments()[-newest:]
        return answer(Experiments(tuple(_progress_of(experiment, aggregator) for experiment in found)))

    @router.get(EXPERIMENT, response_model=ExperimentProgress, responses=described(_UNKNOWN))
    def experiment(_: Reader, session: str) -> Response:
        """How far one is, and what it waits for."""
        return answer(_progress_of(_existing(session, aggregator), aggregator))

    @router.post(EXPERIMENT_CANCEL, response_model=ExperimentProgress, responses=described(_UNKNOWN))
    def cancel(_: Operator, session: str) -> Response:
        """Ends an experiment; what it has measured is kept.  Nothing happens to one that has ended."""
        _existing(session, aggregator)
        aggregator.experiments.ask_cancel(session)
        return answer(_progress_of(_existing(session, aggregator), aggregator))


def _add_result(router: APIRouter, aggregator: Aggregator) -> None:
    results = threading.BoundedSemaphore(_RESULTS_AT_ONCE)
    answers = described({**_UNKNOWN, 200: "As `experiment show` has it", 409: "Nothing can be shown yet"})

    @router.get(EXPERIMENT_RESULT, response_class=Response, responses=answers)
    def result(_: Reader, session: str, format: ResultFormat = ResultFormat.MARKDOWN) -> Response:
        """What it found so far."""
        _existing(session, aggregator)
        if not results.acquire(blocking=False):
            raise Problem(429, "Too many results at once", f"{_RESULTS_AT_ONCE} are being made", {"Retry-After": "5"})
        try:
            found = experiment_result(aggregator.store.directory, session, format)
        except AnalysisError as error:
            raise Problem(409, "Nothing can be shown yet", str(error)) from None
        finally:
            results.release()
        return Response(found, media_type=_MEDIA_TYPES[format])


def _progress_of(experiment: SubmittedExperiment, aggregator: Aggregator) -> ExperimentProgress:
    found = ((task.job, aggregator.jobs.job(task.job)) for task in experiment.course.tasks if task.job)
    return experiment_progress(experiment, {identifier: job for identifier, job in found if job is not None})


def _existing(session: str, aggregator: Aggregator) -> SubmittedExperiment:
    experiment = aggregator.experiments.experiment(session)
    if experiment is None:
        raise Problem(404, "No such experiment", "no experiment over agents has this session")
    return experiment
