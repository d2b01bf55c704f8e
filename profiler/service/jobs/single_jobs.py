"""Jobs that an operator orders one by one, outside of experiments.  Each has a session of its own, which ends with it."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime

from profiler.protocol.job import JobOrder, JobState
from profiler.service.agents.agent_registry import KnownAgent
from profiler.service.aggregator import Aggregator
from profiler.service.jobs.job_board import StoredJob
from profiler.store.records import SessionStart, SessionState

_ID_BYTES = 16


def new_job_id() -> str:
    """Not to be guessed; url-safe."""
    return secrets.token_hex(_ID_BYTES)


def order_single_job(aggregator: Aggregator, agent: KnownAgent, order: JobOrder) -> StoredJob:
    """Gives the order its ID and a new session, and puts it on the board.  ``StoreError``."""
    now_ns = aggregator.clock_ns()
    started_at = datetime.fromtimestamp(now_ns // 1_000_000_000, UTC).isoformat(timespec="seconds")
    start = SessionStart(started_at, agent.hello.host.hostname, (), 0, has_rounds=False)
    placed = replace(order, id=new_job_id(), session=aggregator.store.begin_session(start))
    aggregator.jobs.add(agent.name, placed, now_ns)
    job = aggregator.jobs.job(placed.id)
    assert job is not None
    return job


def end_single_job(aggregator: Aggregator, job: StoredJob) -> None:
    """Ends the session of a job that is final; those of experiments (they have rounds) are not touched.  Captures may come
    later all the same.  ``StoreError``."""
    session = next((each for each in aggregator.store.sessions() if each.name == job.order.session), None)
    if session is None or session.start.has_rounds or session.state is not SessionState.RECORDING:
        return
    is_whole = job.report.state is JobState.DONE
    aggregator.store.finish_session(session.name, SessionState.FINISHED if is_whole else SessionState.INTERRUPTED)
