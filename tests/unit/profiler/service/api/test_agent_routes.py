"""What an agent asks and is answered, by the values of the protocol."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.codec.json_values import from_json, to_json
from profiler.protocol.addresses import CLOCK, HELLO, JOB_REPORT, JOBS
from profiler.protocol.clock import ClockReading
from profiler.protocol.hello import PROTOCOL_VERSION, Welcome
from profiler.protocol.job import JobList, JobReport, JobState
from profiler.service.access.token_registry import Scope
from profiler.service.aggregator import Aggregator
from profiler.service.api.settings import ServiceSettings
from support.aggregators import START_NS, AskedApp, SettableClock, add_token, aggregator_in, asked, attach_order, hello


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def aggregator(tmp_path: Path, clock: SettableClock) -> Aggregator:
    return aggregator_in(tmp_path, clock)


@pytest.fixture
def agent(aggregator: Aggregator) -> AskedApp:
    return asked(aggregator, ServiceSettings(hello_s=7)).with_token(add_token(aggregator, "host1", Scope.AGENT))


def report_path(job: str) -> str:
    return JOB_REPORT.format(job=job)


def test_a_hello_is_kept_under_the_name_of_the_token(agent: AskedApp, aggregator: Aggregator) -> None:
    answered = agent.post(HELLO, to_json(hello()))
    assert from_json(Welcome, answered.json()) == Welcome(PROTOCOL_VERSION, agent="host1", hello_s=7)
    (known,) = aggregator.agents.agents()
    assert (known.name, known.hello, known.heard_ns) == ("host1", hello(), START_NS)


def test_one_token_on_two_hosts(agent: AskedApp, aggregator: Aggregator, clock: SettableClock) -> None:
    """Both would do the same jobs, and windows of one node would be of either host.  A host that was renamed, or took the
    place of another, is taken as soon as the other has fallen silent: after three times 7 s."""
    first, second = hello(), hello(host=replace(hello().host, hostname="copy-of-host1"))
    assert agent.post(HELLO, to_json(first)).status_code == 200
    clock.pass_s(20)
    refused = agent.post(HELLO, to_json(second))
    assert (refused.status_code, refused.json()["title"]) == (409, "Another host has this token")
    assert "host1" in refused.json()["detail"]
    assert aggregator.agents.agents()[0].hello == first
    assert agent.post(HELLO, to_json(first)).status_code == 200
    clock.pass_s(22)
    assert agent.post(HELLO, to_json(second)).status_code == 200
    assert aggregator.agents.agents()[0].hello == second


@pytest.mark.parametrize(("version", "whose"), [(PROTOCOL_VERSION - 1, "agent"), (PROTOCOL_VERSION + 1, "aggregator")])
def test_another_version_is_refused_before_anything_else_is_read(agent: AskedApp, version: int, whose: str) -> None:
    answered = agent.post(HELLO, {"protocol": version, "a": "field of another version"})
    assert answered.status_code == 409
    assert answered.json()["detail"].endswith(f"upgrade slotscope of the {whose}")


def test_the_clock_is_the_aggregators(agent: AskedApp, clock: SettableClock) -> None:
    clock.pass_s(1.5)
    assert from_json(ClockReading, agent.get(CLOCK).json()) == ClockReading(START_NS + 1_500_000_000)


def test_a_job_from_order_to_end(agent: AskedApp, aggregator: Aggregator, clock: SettableClock) -> None:
    agent.post(HELLO, to_json(hello()))
    aggregator.jobs.add("host1", attach_order("j1"), START_NS)
    aggregator.jobs.add("host2", attach_order("j2"), START_NS)
    clock.pass_s(5)
    assert from_json(JobList, agent.get(JOBS).json()) == JobList((attach_order("j1"),))
    assert aggregator.agents.agents()[0].heard_ns == START_NS + 5 * 10**9
    for state in (JobState.ACCEPTED, JobState.READY, JobState.RUNNING):
        assert agent.post(report_path("j1"), to_json(JobReport(state))).status_code == 204
        assert [order.id for order in from_json(JobList, agent.get(JOBS).json()).orders] == ["j1"]
    assert agent.post(report_path("j1"), to_json(JobReport(JobState.DONE, captures=("ab",)))).status_code == 204
    assert agent.get(JOBS).json() == {"orders": [], "cancelled": []}


def test_a_cancelled_job_is_among_those_to_end(agent: AskedApp, aggregator: Aggregator) -> None:
    aggregator.jobs.add("host1", attach_order("j1"), START_NS)
    agent.post(report_path("j1"), to_json(JobReport(JobState.RUNNING)))
    aggregator.jobs.cancel("j1", "", START_NS)
    assert agent.get(f"{JOBS}?wait=30").json() == {"orders": [], "cancelled": ["j1"]}


def test_a_new_order_is_answered_at_once_and_its_absence_after_the_wait(agent: AskedApp, aggregator: Aggregator) -> None:
    aggregator.jobs.add("host1", attach_order("j1"), START_NS)
    assert len(agent.get(f"{JOBS}?wait=30").json()["orders"]) == 1
    agent.post(report_path("j1"), to_json(JobReport(JobState.RUNNING)))
    answered = agent.get(f"{JOBS}?wait=0.2")
    assert len(answered.json()["orders"]) == 1
    assert answered.elapsed.total_seconds() >= 0.2


@pytest.mark.parametrize("wait", ["-1", "31", "nan", "inf", "x"])
def test_waits_that_are_not_possible(agent: AskedApp, wait: str) -> None:
    assert agent.get(f"{JOBS}?wait={wait}").status_code == 422


@pytest.mark.parametrize("job", ["j2", "nothing", "..%2Fj1", "%00", "é"])
def test_jobs_of_others_and_none_look_alike(agent: AskedApp, aggregator: Aggregator, job: str) -> None:
    aggregator.jobs.add("host2", attach_order("j2"), START_NS)
    answered = agent.post(report_path(job), to_json(JobReport(JobState.DONE)))
    assert answered.status_code == 404
    stored = aggregator.jobs.job("j2")
    assert stored is not None
    assert stored.report.state is JobState.WAITING


@pytest.mark.parametrize("state", [JobState.WAITING, JobState.LOST])
def test_an_agent_cannot_report_what_the_aggregator_judges(agent: AskedApp, aggregator: Aggregator, state: JobState) -> None:
    aggregator.jobs.add("host1", attach_order("j1"), START_NS)
    assert agent.post(report_path("j1"), to_json(JobReport(state))).status_code == 422


HOSTILE_BODIES = {
    "not JSON": b"{",
    "not an object": b"[]",
    "an unknown field": b'{"state": "done", "x": 1}',
    "no state": b"{}",
    "a state of none": b'{"state": "finished"}',
    "a number as text": b'{"state": "done", "begun_at_ns": "1"}',
    "a fraction of a nanosecond": b'{"state": "done", "begun_at_ns": 1.5}',
    "not a number": b'{"state": "done", "begun_at_ns": NaN}',
    "beyond 64 bits": b'{"state": "done", "begun_at_ns": 9223372036854775808}',
    "half of a pair": b'{"state": "done", "detail": "\\ud800"}',
    "NUL": b'{"state": "done", "detail": "a\\u0000b"}',
    "not UTF-8": b'{"state": "done", "detail": "\xff"}',
    "too many digits": b'{"state": "done", "begun_at_ns": ' + b"9" * 10_000 + b"}",
    "nested deeply": b'{"state": "done", "captures": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "empty": b"",
}


@pytest.mark.parametrize("body", HOSTILE_BODIES.values(), ids=HOSTILE_BODIES.keys())
def test_bodies_that_are_no_report(agent: AskedApp, aggregator: Aggregator, body: bytes) -> None:
    aggregator.jobs.add("host1", attach_order("j1"), START_NS)
    answered = agent.send("POST", report_path("j1"), content=body, headers={"Content-Type": "application/json"})
    assert answered.status_code in (400, 422)
    assert answered.headers["content-type"] == "application/problem+json"
    stored = aggregator.jobs.job("j1")
    assert stored is not None
    assert stored.report == JobReport(JobState.WAITING)


def test_a_problem_says_which_field(agent: AskedApp) -> None:
    said: dict[str, Any] = json.loads(json.dumps(to_json(hello())))
    said["limits"]["cpu_percent"] = "all"
    problem = agent.post(HELLO, said).json()
    assert problem["status"] == 422
    assert "AgentHello.limits.cpu_percent: expected float, found 'all'" in problem["detail"]
