"""What pages show, worked out of values: presence, troubles, states, filters, parts of a list."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.model.experiment import Design, ExperimentRecord, VariantFacts
from profiler.model.fitness import Fitness, FitnessCheck
from profiler.protocol.job import JobKind, JobReport, JobState
from profiler.service.agents.agent_registry import KnownAgent
from profiler.service.jobs.job_board import StoredJob
from profiler.service.pages.views.capture_view import CaptureFilter, arm_rows, run_rows
from profiler.service.pages.views.experiment_view import experiment_row, round_progress
from profiler.service.pages.views.host_view import HostRow, host_rows
from profiler.service.pages.views.job_view import JobFilter, job_rows, order_words, state_counts
from profiler.service.pages.views.paging import page_of
from profiler.service.pages.views.times import ago, moment, span
from profiler.store.records import SessionStart, SessionState
from profiler.store.store import Store, open_store
from support.page_data import SECOND_NS, hello, order
from support.small_captures import small_capture, small_info

NOW_NS = 1_750_000_000 * SECOND_NS


def host(silent_s: float = 0.0, **changed: object) -> HostRow:
    known = KnownAgent("alpha", replace(hello(), **changed), NOW_NS - int(silent_s * SECOND_NS))  # type: ignore[arg-type]
    (row,) = host_rows([known], NOW_NS, hello_s=15.0)
    return row


@pytest.mark.parametrize(("silent_s", "presence"), [(0, "here"), (22, "here"), (23, "late"), (45, "late"), (46, "lost")])
def test_a_host_is_lost_after_three_hellos(silent_s: float, presence: str) -> None:
    assert host(silent_s).presence == presence


def test_what_is_wrong_with_a_host_comes_first() -> None:
    small, missing, fatal = (
        FitnessCheck("host", "a", Fitness.WARNING, "x"),
        FitnessCheck("host", "b", Fitness.MISSING, "x"),
        FitnessCheck("host", "c", Fitness.MISSING, "x", is_fatal=True),
    )
    fine = FitnessCheck("host", "d", Fitness.OK, "x")
    row = host(fitness=(small, fine, missing, fatal))
    assert (row.troubles, row.fitness) == ((fatal, missing, small), "cannot record")
    assert host(fitness=(fine,)).fitness == "fit"
    assert host(fitness=(small, missing)).fitness == "2 remarks"


def test_facts_of_a_host_in_words() -> None:
    row = host()
    assert row.clock == "+1,204.0 ms ± 300.0 µs"
    assert row.spool == "2 files waiting, 3.5 MB"
    assert row.limits == "jobs up to 1 h, up to 4,999 Hz, spool up to 2.1 GB, up to 20 % of one CPU"
    assert row.targets == ("node (swaps between base, fat; metrics)",)
    assert host(clock=None).clock == "not measured"


def test_moments_and_lengths() -> None:
    assert moment(NOW_NS) == "2025-06-15 15:06:40 UTC"  # date -u -d @1750000000
    assert [ago(NOW_NS - int(s * SECOND_NS), NOW_NS) for s in (0, 59.9, 60, 7_200, 200_000)] == [
        *("0 s ago", "59 s ago", "1 min ago", "2 h ago", "2 d ago")
    ]
    assert (ago(0, NOW_NS), moment(0), span(0)) == ("never", "", "0 s")
    assert ago(NOW_NS + SECOND_NS, NOW_NS) == "0 s ago"


def job(number: int, state: JobState, session: str = "", agent: str = "alpha", round_number: int = 0) -> StoredJob:
    made = order(f"job-{number}", session=session, round_number=round_number)
    return StoredJob(agent, made, JobReport(state, f"word {number}"), NOW_NS)


def test_jobs_latest_first_by_filter_and_state() -> None:
    jobs = [
        job(0, JobState.DONE),
        job(1, JobState.RUNNING, "s1"),
        job(2, JobState.RUNNING, "s1", "beta"),
        job(3, JobState.LOST),
    ]
    assert [row.id for row in job_rows(jobs, JobFilter())] == ["job-3", "job-2", "job-1", "job-0"]
    assert [row.id for row in job_rows(jobs, JobFilter(session="s1", agent="alpha"))] == ["job-1"]
    assert [row.id for row in job_rows(jobs, JobFilter(state="lost"))] == ["job-3"]
    assert state_counts(jobs) == ((JobState.RUNNING, 2), (JobState.DONE, 1), (JobState.LOST, 1))
    assert [row.can_be_cancelled for row in job_rows(jobs, JobFilter())] == [False, True, True, False]


def test_orders_in_words() -> None:
    assert order_words(order("j")) == "attach to node (fat): 3 windows of 10 s"
    assert order_words(order("j", JobKind.SWAP)) == "swap node to fat"
    run = replace(order("j", JobKind.RUN), is_profiled=False)
    assert order_words(run) == "run node (fat): 1 run, without a profile"


def test_rounds_of_an_experiment_and_who_fell_out() -> None:
    jobs = [job(0, JobState.DONE), job(1, JobState.DONE, agent="beta")]
    jobs += [job(2, JobState.RUNNING, round_number=1), job(3, JobState.LOST, agent="beta", round_number=1)]
    latest, first = round_progress(jobs)
    assert (latest.round, latest.states, latest.troubles) == (2, "1 running, 1 lost", ("beta: lost, word 3",))
    assert (first.round, first.states, first.troubles) == (1, "2 done", ())


@pytest.mark.parametrize(
    ("number", "rows", "place"),
    [(1, (0, 1, 2), (1, 3)), (3, (6,), (7, 7)), (0, (0, 1, 2), (1, 3)), (99, (6,), (7, 7)), (-5, (0, 1, 2), (1, 3))],
)
def test_parts_of_a_list(number: int, rows: tuple[int, ...], place: tuple[int, int]) -> None:
    page = page_of(range(7), number, 3)
    assert (page.rows, (page.first, page.last), page.pages, page.total) == (rows, place, 3, 7)


def test_an_empty_list_has_one_empty_part() -> None:
    page = page_of((), 1, 3)
    assert (page.rows, page.first, page.last, page.pages) == ((), 0, 0, 1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two sessions: in the first base with a failed run and cand; in the second base, of a round that was cut short."""
    opened = open_store(tmp_path, create=True)
    for hour, names in ((10, ("base", "base", "cand")), (11, ("base",))):
        start = SessionStart(f"2026-12-01T{hour}:00:00+00:00", "node-1", ("epoch", "a b"), 0, has_rounds=True)
        session = opened.begin_session(start)
        for number, name in enumerate(names):
            failure = "exit code 1" if number == 1 else ""
            opened.add(small_capture({"main/work": 50}, small_info(name, 0, session=session, failure=failure)))
        if hour == 10:
            opened.finish_round(session, 0)
            opened.finish_session(session, SessionState.FINISHED)
    return opened


def test_arms_of_a_store(store: Store) -> None:
    newest, base, cand = arm_rows(store.sessions(), store.runs())
    assert [row.variant for row in (newest, base, cand)] == ["base", "base", "cand"]
    assert [row.state for row in (newest, base, cand)] == ["unfinished", "finished", "finished"]
    assert (base.profiled, base.plain, base.failed, base.samples) == (1, 0, 1, 50)
    assert (base.quality, cand.quality) == ("1 run left out", "")
    assert newest.quality == "1 run of a round that was cut short"
    assert base.command == "epoch"
    chosen = CaptureFilter(variant="base", state="finished")
    assert [row for row in (newest, base, cand) if chosen.admits(row)] == [base]
    assert not CaptureFilter(host="elsewhere").admits(base)


def test_runs_of_a_session(store: Store) -> None:
    rows = run_rows(store.runs(store.sessions()[0].name))
    assert [(row.number, row.variant, row.remark) for row in rows] == [
        (0, "base", ""),
        (1, "base", "left out: exit code 1"),
        (2, "cand", ""),
    ]
    assert {(row.wall, row.cpu, row.samples, row.lost) for row in rows} == {("100.0 ms", "90.0 ms", "50", "0")}


def test_an_experiment_in_a_list(store: Store) -> None:
    variants = (VariantFacts("base"), VariantFacts("cand"))
    record = ExperimentRecord("epochs", Design.CROSSOVER, 4, 1, "base", ("epoch",), variants)
    row = experiment_row(store.sessions()[0], record)
    assert (row.name, row.design, row.variants, row.state) == ("epochs", "crossover", ("base", "cand"), "finished")
