"""What there is, as JSON: hosts, jobs, sessions, and the captures of a session."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Query
from starlette.responses import Response

from profiler.protocol.addresses import API
from profiler.service.access.authorization import Reader
from profiler.service.agents.known_hosts import Hosts, known_hosts
from profiler.service.aggregator import Aggregator
from profiler.service.api.answers import Jobs, SessionCaptures, Sessions
from profiler.service.api.json_bodies import answer
from profiler.service.api.problems import Problem, described
from profiler.service.api.settings import ServiceSettings
from profiler.service.jobs.job_board import StoredJob

_Newest: TypeAlias = Annotated[int, Query(ge=1, le=10_000, description="Only so many, the newest.")]


def reader_routes(aggregator: Aggregator, settings: ServiceSettings) -> APIRouter:
    router = APIRouter(prefix=API, tags=["reading"])

    @router.get("/hosts", response_model=Hosts)
    def hosts(_: Reader) -> Response:
        """Every agent that ever said hello, by name, with what it said last."""
        return answer(known_hosts(aggregator, settings.hello_s))

    @router.get("/jobs", response_model=Jobs)
    def jobs(_: Reader, session: str = "", agent: str = "", only_open: bool = False, newest: _Newest = 1000) -> Response:
        """Jobs of a session, of an agent, or of all."""
        return answer(Jobs(aggregator.jobs.jobs(session, agent, only_open, newest)))

    @router.get("/jobs/{job}", response_model=StoredJob, responses=described({404: "No such job"}))
    def job(_: Reader, job: str) -> Response:
        """One job, and what was reported of it last."""
        return answer(existing_job(aggregator, job))

    @router.get("/sessions", response_model=Sessions)
    def sessions(_: Reader, newest: _Newest = 1000) -> Response:
        """Sessions in the store."""
        return answer(Sessions(aggregator.store.sessions()[-newest:]))

    @router.get("/sessions/{session}", response_model=SessionCaptures, responses=described({404: "No such session"}))
    def session(_: Reader, session: str) -> Response:
        """One session and its captures."""
        found = next((each for each in aggregator.store.sessions() if each.name == session), None)
        if found is None:
            raise Problem(404, "No such session", "the store has no session of this name")
        return answer(SessionCaptures(found, aggregator.store.runs(session)))

    return router


def existing_job(aggregator: Aggregator, job: str) -> StoredJob:
    """``Problem`` 404."""
    stored = aggregator.jobs.job(job)
    if stored is None:
        raise Problem(404, "No such job", "no job has this ID")
    return stored
