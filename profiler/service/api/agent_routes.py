"""What agents call: hello, the clock, their jobs, reports about them."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Query, Request
from pydantic import BeforeValidator
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from profiler.protocol.addresses import CLOCK, HELLO, JOB_REPORT, JOBS
from profiler.protocol.clock import ClockReading
from profiler.protocol.hello import PROTOCOL_VERSION, AgentHello, Welcome, version_problem
from profiler.protocol.job import JobList, JobReport, JobState
from profiler.service.access.authorization import AgentName
from profiler.service.agents.known_hosts import patience_ns_of
from profiler.service.aggregator import Aggregator
from profiler.service.api.json_bodies import answer, read_as
from profiler.service.api.problems import Problem, described
from profiler.service.api.settings import ServiceSettings
from profiler.service.api.stopping import is_stopping
from profiler.service.jobs.single_jobs import end_single_job

_LONGEST_WAIT_S = 30.0
# Jobs are also put on the board by other processes, so it is looked at instead of being waited for.
_LOOK_EVERY_S = 0.5


def _check_protocol(body: Any) -> Any:
    """Before anything else of a hello is read: another version's may look different."""
    version = body.get("protocol") if isinstance(body, dict) else None
    if isinstance(version, int) and (problem := version_problem(version)):
        raise Problem(409, "Another version of the protocol", problem)
    return body


_ReportBody: TypeAlias = Annotated[JobReport, read_as(JobReport)]
# The last one is applied first.
_HelloBody: TypeAlias = Annotated[AgentHello, read_as(AgentHello), BeforeValidator(_check_protocol)]
_Wait: TypeAlias = Annotated[float, Query(ge=0, le=_LONGEST_WAIT_S, description="Seconds to wait for something to do.")]


def agent_routes(aggregator: Aggregator, settings: ServiceSettings) -> APIRouter:
    router = APIRouter(tags=["agents"])

    @router.post(
        HELLO,
        response_model=Welcome,
        responses=described({409: "Another version of the protocol, or another host with this token"}),
    )
    def hello(agent: AgentName, body: _HelloBody) -> Response:
        """What the agent says of itself, at its start and then every `hello_s` seconds."""
        now_ns = aggregator.clock_ns()
        _check_host(aggregator, agent, body, now_ns - patience_ns_of(settings.hello_s))
        aggregator.agents.greet(agent, body, now_ns)
        return answer(Welcome(PROTOCOL_VERSION, agent, settings.hello_s))

    @router.get(CLOCK, response_model=ClockReading)
    async def clock(agent: AgentName) -> Response:
        """The aggregator's clock, to be held against the agent's."""
        return answer(ClockReading(aggregator.clock_ns()))

    @router.get(JOBS, response_model=JobList)
    async def jobs(request: Request, agent: AgentName, wait: _Wait = 0.0) -> Response:
        """Every job of the agent that is not final.  With `wait` the answer comes when one is new or to be ended, or then."""
        await run_in_threadpool(aggregator.agents.heard, agent, aggregator.clock_ns())
        until = time.monotonic() + min(wait, settings.longest_wait_s)
        while True:
            listed, is_news = await run_in_threadpool(_jobs_of, aggregator, agent)
            if is_news or time.monotonic() >= until or is_stopping(request.app) or await request.is_disconnected():
                return answer(listed)
            await asyncio.sleep(min(_LOOK_EVERY_S, max(0.0, until - time.monotonic())))

    @router.post(JOB_REPORT, status_code=204, response_class=Response, responses=described({404: "Not a job of this agent"}))
    def report(agent: AgentName, job: str, body: _ReportBody) -> None:
        """How far a job is.  Once it is final, reports change nothing and are accepted all the same."""
        now_ns = aggregator.clock_ns()
        aggregator.agents.heard(agent, now_ns)
        if body.state in (JobState.WAITING, JobState.LOST):
            raise Problem(422, "Invalid request", f"a job is {body.state} by the aggregator's judgement only")
        if not aggregator.jobs.report(agent, job, body, now_ns):
            raise Problem(404, "No such job", "this agent has no job of this ID")
        stored = aggregator.jobs.job(job)
        if stored is not None and stored.report.state.is_final:
            end_single_job(aggregator, stored)

    return router


def _check_host(aggregator: Aggregator, agent: str, hello: AgentHello, heard_since_ns: int) -> None:
    """``Problem`` 409 when another host under this token is there: both would do the same jobs."""
    known = next((each for each in aggregator.agents.agents() if each.name == agent), None)
    if known is None or known.heard_ns < heard_since_ns or known.hello.host.hostname == hello.host.hostname:
        return
    detail = (
        f"host {known.hello.host.hostname} is agent {agent}: make a token for each host (`slotscope token create`); one that "
        "takes its place is let in when it has been silent for a while"
    )
    raise Problem(409, "Another host has this token", detail)


def _jobs_of(aggregator: Aggregator, agent: str) -> tuple[JobList, bool]:
    """The agent's list, and whether something of it is new to the agent.  ``StoreError``."""
    jobs = aggregator.jobs.jobs(agent=agent, only_open=True)
    listed = JobList(tuple(job.order for job in jobs), aggregator.jobs.to_end(agent))
    return listed, bool(listed.cancelled) or any(job.report.state is JobState.WAITING for job in jobs)
