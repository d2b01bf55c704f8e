"""Jobs on the board: who may report, what stays, what an agent is told to end."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from profiler.errors import StoreError
from profiler.protocol.job import JobReport, JobState
from profiler.service.jobs.job_board import JobBoard
from profiler.service.jobs.sqlite_jobs import JobQuery
from support.aggregators import aggregator_in, attach_order, hello


@pytest.fixture
def board(tmp_path: Path) -> JobBoard:
    return aggregator_in(tmp_path).jobs


def state_of(board: JobBoard, job: str) -> JobState:
    stored = board.job(job)
    assert stored is not None
    return stored.report.state


def test_an_order_comes_back_as_it_was_given(board: JobBoard) -> None:
    order = attach_order("j1", session="s1", phase="é", round=3)
    board.add("host1", order, 77)
    stored = board.job("j1")
    assert stored is not None
    assert (stored.agent, stored.order, stored.ordered_ns, stored.reported_ns) == ("host1", order, 77, 0)
    assert stored.report == JobReport(JobState.WAITING)


def test_ids_are_unique(board: JobBoard) -> None:
    board.add("host1", attach_order("j1"), 1)
    with pytest.raises(StoreError):
        board.add("host2", attach_order("j1"), 2)


def test_only_the_jobs_own_agent_reports(board: JobBoard) -> None:
    board.add("host1", attach_order("j1"), 1)
    assert not board.report("host2", "j1", JobReport(JobState.DONE), 2)
    assert not board.report("host1", "other", JobReport(JobState.DONE), 2)
    assert state_of(board, "j1") is JobState.WAITING
    assert board.report("host1", "j1", JobReport(JobState.ACCEPTED), 3)
    assert state_of(board, "j1") is JobState.ACCEPTED


@pytest.mark.parametrize("final", [state for state in JobState if state.is_final])
def test_a_final_state_stays(board: JobBoard, final: JobState) -> None:
    board.add("host1", attach_order("j1"), 1)
    board.report("host1", "j1", JobReport(final, "the first", captures=("ab",)), 2)
    assert board.report("host1", "j1", JobReport(JobState.RUNNING, "later"), 3)
    board.cancel("j1", "too late", 4)
    assert board.lose("host1", "too late", 5) == ()
    stored = board.job("j1")
    assert stored is not None
    assert (stored.report, stored.reported_ns) == (JobReport(final, "the first", captures=("ab",)), 2)


def test_jobs_in_the_order_of_their_adding_and_by_what_they_belong_to(board: JobBoard) -> None:
    for number, (agent, session) in enumerate([("b", "s1"), ("a", "s1"), ("a", "s2")]):
        board.add(agent, attach_order(f"j{number}", session=session), number)
    board.report("a", "j1", JobReport(JobState.DONE), 9)
    ids = {
        (): ("j0", "j1", "j2"),
        (("session", "s1"),): ("j0", "j1"),
        (("agent", "a"),): ("j1", "j2"),
        (("agent", "a"), ("only_open", True)): ("j2",),
        (("session", "s3"),): (),
    }
    for selection, expected in ids.items():
        assert tuple(job.order.id for job in board.jobs(**dict(selection))) == expected  # type: ignore[arg-type]


def test_a_cancelled_job_is_told_until_its_agent_has_ended_it(board: JobBoard) -> None:
    board.add("host1", attach_order("j1"), 1)
    board.report("host1", "j1", JobReport(JobState.RUNNING), 2)
    assert board.to_end("host1") == ()
    board.cancel("j1", "cancelled by alice", 3)
    assert board.to_end("host1") == ("j1",)
    assert board.to_end("host2") == ()
    board.report("host1", "j1", JobReport(JobState.RUNNING), 4)
    assert board.to_end("host1") == ("j1",)
    board.report("host1", "j1", JobReport(JobState.CANCELLED), 5)
    assert board.to_end("host1") == ()


def test_a_job_cancelled_before_its_agent_took_it_is_not_told(board: JobBoard) -> None:
    board.add("host1", attach_order("j1"), 1)
    board.cancel("j1", "", 2)
    assert board.to_end("host1") == ()


def test_a_job_cancelled_while_its_agent_took_it_is_told(board: JobBoard) -> None:
    board.add("host1", attach_order("j1"), 1)
    board.cancel("j1", "", 2)
    board.report("host1", "j1", JobReport(JobState.ACCEPTED), 3)
    assert state_of(board, "j1") is JobState.CANCELLED
    assert board.to_end("host1") == ("j1",)


def test_jobs_of_a_silent_agent_are_lost_except_those_it_never_took(board: JobBoard) -> None:
    for number in range(4):
        board.add("host1", attach_order(f"j{number}"), number)
    board.add("host2", attach_order("other"), 9)
    board.report("host2", "other", JobReport(JobState.RUNNING), 10)
    board.report("host1", "j1", JobReport(JobState.RUNNING, begun_at_ns=5), 10)
    board.report("host1", "j2", JobReport(JobState.DONE), 10)
    board.report("host1", "j3", JobReport(JobState.READY), 10)
    assert board.lose("host1", "silent", 11) == ("j1", "j3")
    states = [state_of(board, job) for job in ("j0", "j1", "j2", "j3", "other")]
    assert states == [JobState.WAITING, JobState.LOST, JobState.DONE, JobState.LOST, JobState.RUNNING]
    lost = board.job("j1")
    assert lost is not None
    assert (lost.report.detail, lost.report.begun_at_ns) == ("silent", 5)
    assert board.to_end("host1") == ("j1", "j3")


def test_agents_by_name_with_what_they_said_last(tmp_path: Path) -> None:
    agents = aggregator_in(tmp_path).agents
    agents.heard("b", 1)
    assert agents.agents() == ()
    agents.greet("b", hello(version="1"), 2)
    agents.greet("a", hello(version="1"), 3)
    agents.greet("b", hello(version="2"), 4)
    agents.heard("a", 9)
    again = aggregator_in(tmp_path).agents.agents()
    assert [(agent.name, agent.hello.version, agent.heard_ns) for agent in again] == [("a", "1", 9), ("b", "2", 4)]
    assert again[0].hello == hello(version="1")


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (JobQuery(agent="host1", only_open=True), "jobs_by_agent (agent=? AND is_open=?)"),
        (JobQuery(session="s1"), "jobs_by_session (session=?)"),
    ],
)
def test_what_is_asked_all_the_time_does_not_read_every_job_there_ever_was(tmp_path: Path, query: JobQuery, index: str) -> None:
    """Agents look at their jobs twice a second; SQLite itself says how it would find them."""
    aggregator_in(tmp_path)
    statement, values = query.statement()
    connection = sqlite3.connect(tmp_path / "service.sqlite")
    plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values))
    connection.close()
    assert f"USING INDEX {index}" in plan


def test_the_newest_jobs_come_in_the_order_in_which_they_were_added(board: JobBoard) -> None:
    for number in range(5):
        board.add("host1", attach_order(f"j{number}", session=f"s{number % 2}"), number)
    assert [job.order.id for job in board.jobs(newest=2)] == ["j3", "j4"]
    assert [job.order.id for job in board.jobs("s0", newest=2)] == ["j2", "j4"]
