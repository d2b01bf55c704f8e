"""What readers see and operators order."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.codec.json_values import from_json, to_json
from profiler.protocol.job import JobKind, JobReport, JobState
from profiler.service.access.token_registry import Scope
from profiler.service.agents.known_hosts import Host, Hosts
from profiler.service.aggregator import Aggregator
from profiler.service.api.answers import JobSubmission
from profiler.service.api.settings import ServiceSettings
from profiler.service.jobs.job_board import StoredJob
from profiler.store.records import SessionStart, SessionState
from support.aggregators import START_NS, AskedApp, SettableClock, add_token, aggregator_in, asked, attach_order, hello


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def aggregator(tmp_path: Path, clock: SettableClock) -> Aggregator:
    opened = aggregator_in(tmp_path, clock)
    opened.agents.greet("host1", hello(), START_NS)
    return opened


@pytest.fixture
def operator(aggregator: Aggregator) -> AskedApp:
    return asked(aggregator, ServiceSettings(hello_s=10)).with_token(add_token(aggregator, "alice", Scope.OPERATOR))


def submission(agent: str = "host1", **changed: object) -> object:
    return to_json(JobSubmission(agent, attach_order(**changed)))  # type: ignore[arg-type]


def test_hosts_with_what_they_said_and_whether_they_are_silent(operator: AskedApp, clock: SettableClock) -> None:
    for passed_s, is_silent in ((0, False), (30, False), (0.001, True)):
        clock.pass_s(passed_s)
        answered = operator.get("/api/v1/hosts").json()
        assert from_json(Hosts, answered) == Hosts((Host("host1", is_silent, START_NS, hello()),))


def test_an_order_becomes_a_job_with_a_session_of_its_own(operator: AskedApp, aggregator: Aggregator) -> None:
    answered = operator.post("/api/v1/jobs", submission(variant="fat"))
    assert answered.status_code == 201
    job = from_json(StoredJob, answered.json())
    assert (job.agent, job.order.variant, job.report.state, job.ordered_ns) == ("host1", "fat", JobState.WAITING, START_NS)
    assert len(job.order.id) == 32
    (session,) = aggregator.store.sessions()
    assert (session.name, session.start.hostname, session.state) == (job.order.session, "host1", SessionState.RECORDING)
    assert session.start.started_at == "2025-06-15T15:06:40+00:00"
    assert from_json(StoredJob, operator.get(f"/api/v1/jobs/{job.order.id}").json()) == job


@pytest.mark.parametrize(
    ("report", "state"),
    [
        (JobState.DONE, SessionState.FINISHED),
        (JobState.FAILED, SessionState.INTERRUPTED),
        (JobState.RUNNING, SessionState.RECORDING),
    ],
)
def test_the_session_ends_with_the_job(
    operator: AskedApp, aggregator: Aggregator, report: JobState, state: SessionState
) -> None:
    job = operator.post("/api/v1/jobs", submission()).json()["order"]["id"]
    agent = operator.with_token(add_token(aggregator, "host1", Scope.AGENT))
    assert agent.post(f"/api/v1/agent/jobs/{job}/report", to_json(JobReport(report))).status_code == 204
    assert [session.state for session in aggregator.store.sessions()] == [state]


def test_sessions_of_experiments_are_not_ended_with_a_job(operator: AskedApp, aggregator: Aggregator) -> None:
    session = aggregator.store.begin_session(SessionStart("2026-01-01T00:00:00+00:00", "h", (), 0, has_rounds=True))
    aggregator.jobs.add("host1", attach_order("j1", session=session), START_NS)
    assert operator.post("/api/v1/jobs/j1/cancel").json()["report"]["state"] == "cancelled"
    assert [each.state for each in aggregator.store.sessions()] == [SessionState.RECORDING]


def test_a_cancelled_job_says_by_whom(operator: AskedApp) -> None:
    job = operator.post("/api/v1/jobs", submission()).json()["order"]["id"]
    for _ in range(2):
        answered = operator.post(f"/api/v1/jobs/{job}/cancel")
        assert answered.status_code == 200
        assert answered.json()["report"] == {
            "state": "cancelled", "detail": "cancelled by alice", "begun_at_ns": 0, "captures": []
        }  # fmt: skip
    assert operator.post("/api/v1/jobs/nothing/cancel").status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        (submission(agent="host2"), 404, "no agent of this name"),
        (submission(name="other"), 409, "it offers node"),
        (submission(kind=JobKind.RUN, name="skip-slots", variant="none"), 409, "base, fat"),
        (submission(job="mine"), 422, "leave them empty"),
        (submission(session="20260101-000000-abcd"), 422, "leave them empty"),
        (submission(variant="../../x"), 422, "variant name"),
        ({"agent": "host1", "order": {"kind": "attach", "command": ["sh", "-c", "id"]}}, 422, "unknown field 'command'"),
    ],
)
def test_orders_that_are_refused(operator: AskedApp, aggregator: Aggregator, body: object, status: int, named: str) -> None:
    answered = operator.post("/api/v1/jobs", body)
    assert (answered.status_code, aggregator.jobs.jobs(), aggregator.store.sessions()) == (status, (), ())
    assert named in answered.json()["detail"]


def test_jobs_of_a_session_and_only_the_newest(operator: AskedApp, aggregator: Aggregator) -> None:
    for number in range(3):
        aggregator.jobs.add("host1", attach_order(f"j{number}", session=f"s{number % 2}"), START_NS)

    def ids(query: str) -> list[str]:
        return [job["order"]["id"] for job in operator.get(f"/api/v1/jobs{query}").json()["jobs"]]

    assert ids("") == ["j0", "j1", "j2"]
    assert ids("?session=s0") == ["j0", "j2"]
    assert ids("?newest=2") == ["j1", "j2"]
    assert ids("?agent=host2") == []


def test_names_that_are_not_utf8_come_through_as_escapes(operator: AskedApp, aggregator: Aggregator) -> None:
    start = SessionStart("2026-01-01T00:00:00+00:00", "h", ("/bin/\udcff",), 0, has_rounds=False)
    name = aggregator.store.begin_session(start)
    answered = operator.get(f"/api/v1/sessions/{name}")
    assert answered.status_code == 200
    assert answered.json()["session"]["start"]["command"] == ["/bin/\udcff"]
    assert answered.json()["captures"] == []
    assert operator.get("/api/v1/sessions/none").status_code == 404
    assert [each["name"] for each in operator.get("/api/v1/sessions").json()["sessions"]] == [name]
