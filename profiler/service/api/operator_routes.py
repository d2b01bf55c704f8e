"""What an operator asks for: a job, its end."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter
from starlette.responses import Response

from profiler.errors import UsageError
from profiler.protocol.addresses import API
from profiler.protocol.job import JobKind
from profiler.service.access.authorization import Operator
from profiler.service.aggregator import Aggregator
from profiler.service.api.answers import JobSubmission
from profiler.service.api.json_bodies import answer, read_as
from profiler.service.api.problems import Problem, described
from profiler.service.api.reader_routes import existing_job
from profiler.service.experiments.in_use import in_use
from profiler.service.jobs.job_board import StoredJob
from profiler.service.jobs.order_check import refusal_of
from profiler.service.jobs.single_jobs import end_single_job, order_single_job
from profiler.store.records import check_variant_name

_Submission: TypeAlias = Annotated[JobSubmission, read_as(JobSubmission)]
_ORDER_PROBLEMS = described({404: "No such agent", 409: "The agent would refuse the order"})


def operator_routes(aggregator: Aggregator) -> APIRouter:
    router = APIRouter(prefix=API, tags=["operating"])

    @router.post("/jobs", response_model=StoredJob, status_code=201, responses=_ORDER_PROBLEMS)
    def order(_: Operator, body: _Submission) -> Response:
        """Orders one job of one agent.  `id` and `session` of the order are empty; the answer has them."""
        _check_submission(body)
        agent = next((each for each in aggregator.agents.agents() if each.name == body.agent), None)
        if agent is None:
            raise Problem(404, "No such agent", "no agent of this name ever said hello; `slotscope hosts` lists them")
        refusal = refusal_of(body.order, agent.hello, aggregator.clock_ns())
        if refusal:
            raise Problem(409, "The agent would refuse the order", refusal)
        _check_not_measured(aggregator, body)
        return answer(order_single_job(aggregator, agent, body.order), 201)

    @router.post("/jobs/{job}/cancel", response_model=StoredJob, responses=described({404: "No such job"}))
    def cancel(caller: Operator, job: str) -> Response:
        """Ends a job, unless it is final; its agent is told with its next look."""
        existing_job(aggregator, job)
        aggregator.jobs.cancel(job, f"cancelled by {caller.name}", aggregator.clock_ns())
        stored = existing_job(aggregator, job)
        end_single_job(aggregator, stored)
        return answer(stored)

    return router


def _check_not_measured(aggregator: Aggregator, body: JobSubmission) -> None:
    """``Problem`` 409 for a swap in the middle of an experiment."""
    session = in_use(aggregator.experiments.experiments(only_open=True)).get((body.agent, body.order.name), "")
    if session and body.order.kind is JobKind.SWAP:
        detail = f"experiment {session} measures {body.order.name} of agent {body.agent}: wait for its end, or cancel it"
        raise Problem(409, "An experiment measures it", detail)


def _check_submission(body: JobSubmission) -> None:
    """``Problem`` 422."""
    order = body.order
    if order.id or order.session:
        raise Problem(422, "Invalid request", "`id` and `session` are the aggregator's: leave them empty")
    if order.kind is not JobKind.SWAP or order.variant:
        try:
            check_variant_name(order.variant)
        except UsageError as error:
            raise Problem(422, "Invalid request", str(error)) from None
