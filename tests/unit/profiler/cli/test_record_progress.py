"""What is shown while a session is recorded."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from profiler.cli.record_progress import RecordingLines, time_left_s
from profiler.experiment.plan.recording_plan import Arm, RecordPlan
from profiler.experiment.plan.schedule import Schedule, ScheduledRun, make_schedule
from profiler.experiment.run.preparation import Preparation, PreparedArm, PreparedProgram
from profiler.experiment.run.progress import FinishedRun, SessionSummary
from profiler.model.run import HostFacts, Metric, PerfSettings, ProgramFacts, RunMode, RunOutcome
from profiler.store.records import SessionState
from support.terminal_streams import Clock, Terminal

PLAN = RecordPlan(("prog",), (Arm("base", ("prog",)),), seed=42, runs=2)
SETTINGS = PerfSettings("cpu-clock", 1999, 0, "dwarf", "libc.so.6 does not keep frame pointers", 16384)
PROGRAM = PreparedProgram(("prog",), Path("/opt/prog"), (1, 2, 3), ProgramFacts(debug_info="none"))
ARM = PreparedArm(PLAN.arms[0], PROGRAM, PROGRAM, SETTINGS)
PREPARATION = Preparation(PLAN, (ARM,), HostFacts(), ())
SCHEDULE = make_schedule(1, 2, 0, PLAN.profile, PLAN.seed)
PLAIN, PROFILED = ScheduledRun(0, RunMode.PLAIN, 0, 0), ScheduledRun(0, RunMode.PROFILED, 0, 1)
OUTCOME = RunOutcome(wall_ns=2_500_000_000, user_ns=2_000_000_000, system_ns=400_000_000)


def session(stream: io.StringIO, clock: Clock, schedule: Schedule = SCHEDULE) -> RecordingLines:
    lines = RecordingLines(stream, clock)
    lines.session_started("20260301-100000-abcd", PREPARATION, schedule)
    return lines


def test_what_was_chosen_comes_first() -> None:
    stream = io.StringIO()
    session(stream, Clock())
    first, second = stream.getvalue().splitlines()
    assert first == "session 20260301-100000-abcd: 1 arm, 2 rounds, 4 runs in all, seed 42"
    assert second.startswith("base: cpu-clock at 1999 Hz, call graph dwarf,16384 (libc.so.6 does not keep frame pointers)")
    assert "no debug information" in second


def test_one_line_per_run_with_the_time_that_is_left() -> None:
    stream, clock = io.StringIO(), Clock()
    lines = session(stream, clock)
    clock.now_s += 10
    lines.run_started(PLAIN, "base")
    lines.run_finished(FinishedRun(PLAIN, "base", OUTCOME, 0, 0))
    assert stream.getvalue().splitlines()[2:] == ["round 1/2  base  plain  2,500.0 ms  cpu 2,400.0 ms  (about 30 s left)"]


def test_samples_losses_metrics_and_failures_are_named() -> None:
    stream = io.StringIO()
    lines = session(stream, Clock())
    outcome = RunOutcome(wall_ns=15_000_000_000, failure="exit code 3", metrics=(Metric("rate", 17.0, ""),))
    lines.run_finished(FinishedRun(PROFILED, "base", outcome, 4_321, 12))
    shown = stream.getvalue().splitlines()[-1]
    assert shown.startswith("round 1/2  base  profiled  15.00 s  cpu 0 ns  4,321 samples  rate 17  LOST 12: ")
    assert "FAILED, left out: exit code 3" in shown


def test_session_cut_short_says_what_is_kept() -> None:
    stream = io.StringIO()
    lines = session(stream, Clock())
    run = FinishedRun(PLAIN, "base", OUTCOME, 0, 0)
    lines.session_ended(SessionSummary("S", SessionState.INTERRUPTED, PREPARATION, 0, (run,)))
    assert stream.getvalue().splitlines()[-1] == "session S was cut short: 0 finished rounds and 1 run are kept"
    before = stream.getvalue()
    lines.session_ended(SessionSummary("S", SessionState.FINISHED, PREPARATION, 2, (run,)))
    assert stream.getvalue() == before


def test_terminal_has_a_bar_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream, clock = Terminal(), Clock()
    lines = session(stream, clock)
    clock.now_s += 10
    lines.run_started(PLAIN, "base")
    assert "0/4" in stream.getvalue()
    assert "round 1/2 base plain" in stream.getvalue()
    lines.run_finished(FinishedRun(PLAIN, "base", OUTCOME, 0, 0))
    assert "1/4" in stream.getvalue()
    assert "about 30 s left" in stream.getvalue()
    lines.session_ended(SessionSummary("S", SessionState.FINISHED, PREPARATION, 2, ()))
    assert stream.getvalue().endswith("\x1b[2K") or stream.getvalue().endswith("\x1b[?25h")


@pytest.mark.parametrize(
    ("elapsed_s", "done", "steps", "left_s"),
    [(10, 0, 4, None), (10, 1, 4, 30.0), (10, 4, 5, 2.5), (10, 4, 4, None), (0, 0, 0, None)],
)
def test_time_left(elapsed_s: float, done: int, steps: int, left_s: float | None) -> None:
    assert time_left_s(elapsed_s, done, steps) == left_s
