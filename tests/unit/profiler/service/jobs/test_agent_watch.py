"""Which agents count as silent, and what becomes of their jobs."""

from __future__ import annotations

from pathlib import Path

from profiler.protocol.job import JobReport, JobState
from profiler.service.agents.agent_registry import KnownAgent
from profiler.service.aggregator import Aggregator
from profiler.service.jobs.agent_watch import AgentWatch, silent_agents
from profiler.service.jobs.single_jobs import order_single_job
from profiler.store.records import SessionState
from support.aggregators import START_NS, SettableClock, aggregator_in, attach_order, hello

SECOND = 10**9


def test_silence_is_counted_from_when_the_aggregator_began_to_listen() -> None:
    agents = [KnownAgent("early", hello(), 10), KnownAgent("late", hello(), 100)]
    assert silent_agents(agents, now_ns=120, since_ns=0, patience_ns=50) == ("early",)
    assert silent_agents(agents, now_ns=120, since_ns=80, patience_ns=50) == ()
    assert silent_agents(agents, now_ns=150, since_ns=80, patience_ns=50) == ("early",)
    assert silent_agents(agents, now_ns=151, since_ns=80, patience_ns=50) == ("early", "late")


def running_job(aggregator: Aggregator) -> str:
    aggregator.agents.greet("host1", hello(), aggregator.clock_ns())
    job = order_single_job(aggregator, aggregator.agents.agents()[0], attach_order())
    aggregator.jobs.report("host1", job.order.id, JobReport(JobState.RUNNING), aggregator.clock_ns())
    return job.order.id


def test_jobs_of_an_agent_that_fell_silent_are_lost_and_their_session_ends(tmp_path: Path) -> None:
    clock = SettableClock()
    aggregator = aggregator_in(tmp_path, clock)
    watch = AgentWatch(aggregator, hello_s=10, monotonic_ns=clock)
    job = running_job(aggregator)
    clock.pass_s(30)
    assert watch.look() == ()
    clock.pass_s(0.001)
    assert watch.look() == (job,)
    assert watch.look() == ()
    stored = aggregator.jobs.job(job)
    assert stored is not None
    assert stored.report == JobReport(JobState.LOST, "host1 has not been heard for 3 x 10 s")
    assert [session.state for session in aggregator.store.sessions()] == [SessionState.INTERRUPTED]


def test_an_agent_that_is_heard_keeps_its_jobs(tmp_path: Path) -> None:
    clock = SettableClock()
    aggregator = aggregator_in(tmp_path, clock)
    watch = AgentWatch(aggregator, hello_s=10, monotonic_ns=clock)
    running_job(aggregator)
    for _ in range(5):
        clock.pass_s(29)
        aggregator.agents.heard("host1", clock.now_ns)
        assert watch.look() == ()


def test_a_restart_of_the_aggregator_loses_nobody(tmp_path: Path) -> None:
    clock = SettableClock()
    job = running_job(aggregator_in(tmp_path, clock))
    clock.pass_s(86_400)
    watch = AgentWatch(aggregator_in(tmp_path, clock), hello_s=10, monotonic_ns=clock)
    clock.pass_s(29)
    assert watch.look() == ()
    clock.pass_s(2)
    assert watch.look() == (job,)


def test_a_clock_that_is_set_loses_nobody(tmp_path: Path) -> None:
    clock, monotonic = SettableClock(), SettableClock(5)
    aggregator = aggregator_in(tmp_path, clock)
    watch = AgentWatch(aggregator, hello_s=10, monotonic_ns=monotonic)
    job = running_job(aggregator)
    clock.pass_s(3600)
    monotonic.pass_s(10)
    assert watch.look() == ()
    for each in (clock, monotonic):
        each.pass_s(31)
    assert watch.look() == (job,)
    assert clock.now_ns == START_NS + 3631 * SECOND
