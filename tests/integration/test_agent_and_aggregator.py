"""`slotscope agent` and `slotscope serve`, both as processes of their own: what is ordered here is recorded there."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.model.run import RunMode
from profiler.protocol.job import JobKind, JobOrder, JobState, OrderedMetric
from profiler.service.aggregator import open_aggregator
from profiler.store.records import SessionStart
from support.agent_process import AgentProcess
from support.one_host import carried_out, one_host
from support.served_aggregator import slotscope

WORKLOAD = f"""
[[workload]]
name = "load"
command = ["{{binary}}", "-c", "print('took 12.5 ms')"]
variants = {{ base = "{sys.executable}" }}
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[AgentProcess]:
    with one_host(tmp_path, WORKLOAD) as it:
        yield it


def test_runs_of_an_ordered_job_are_in_the_aggregators_store(host: AgentProcess, store: Path) -> None:
    aggregator = open_aggregator(store, create=False)
    session = aggregator.store.begin_session(SessionStart("2026-01-02T03:04:05+00:00", "", (), 0, True))
    metric = OrderedMetric("took", "regex:took (.* ms)")
    order = JobOrder(
        "job-1-aaaaaaaaaaaaaaaa",
        JobKind.RUN,
        "load",
        "base",
        session,
        "host1-load",
        0,
        runs=3,
        is_profiled=False,
        metrics=(metric,),
    )
    assert carried_out(aggregator, order).state is JobState.DONE
    deadline = time.monotonic() + 60
    while len(aggregator.store.runs(session)) < 3:
        assert time.monotonic() < deadline, host.log.read_text()
        time.sleep(0.1)
    captures = [aggregator.store.load(run) for run in aggregator.store.runs(session)]
    assert {capture.info.identity.instance for capture in captures} == {"host1-load"}
    assert {(capture.info.identity.variant, capture.info.identity.mode) for capture in captures} == {("base", RunMode.PLAIN)}
    assert [capture.info.outcome.metrics[0].value for capture in captures] == [12.5e6] * 3
    known = aggregator.agents.agents()[0]
    assert known.name == "host1"
    assert [workload.name for workload in known.hello.workloads] == ["load"]
    # Both clocks are this machine's; the answer is given within half of the round trip.
    assert known.hello.clock is not None
    assert abs(known.hello.clock.offset_ns) <= known.hello.clock.error_ns + 1_000_000


def test_what_the_file_does_not_name_comes_back_refused(host: AgentProcess, store: Path) -> None:
    aggregator = open_aggregator(store, create=False)
    order = JobOrder("job-2-aaaaaaaaaaaaaaaa", JobKind.RUN, "other", "base", "s", "i", 0)
    assert carried_out(aggregator, order).state is JobState.REFUSED


def test_a_revoked_token_stops_the_agent_from_asking_often(host: AgentProcess, store: Path) -> None:
    aggregator = open_aggregator(store, create=False)
    deadline = time.monotonic() + 60
    while not aggregator.agents.agents():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert slotscope(store, "token", "revoke", "host1").returncode == 0
    host.wait_for_log("the token is not accepted", 90)
