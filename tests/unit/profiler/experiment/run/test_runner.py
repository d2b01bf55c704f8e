"""Sessions with an executor that only pretends: what is kept, marked, left out, and when a session stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import CaptureError, UsageError
from profiler.experiment.plan.recording_plan import Arm, ProfilePolicy, RecordPlan
from profiler.experiment.plan.schedule import Schedule, ScheduledRun, make_schedule
from profiler.experiment.run.preparation import Preparation, PreparedArm
from profiler.experiment.run.progress import FinishedRun, SessionSummary
from profiler.experiment.run.runner import SessionSetup, record_session
from profiler.experiment.run.workplace import Workplace
from profiler.model.capture import Capture
from profiler.model.run import RunMode
from profiler.store.records import SessionState, StoredRun
from profiler.store.sqlite_catalog import SqliteCatalog
from profiler.store.store import Store, open_store
from support.sample_captures import plain_capture, run_info, two_stack_capture

PLAN = RecordPlan(("true",), (Arm("base", ("true",)), Arm("tuned", ("true",))), seed=42, runs=3)
NEW_SESSION = SessionSetup()
Script = Callable[[ScheduledRun, str], str]


@dataclass
class FakeExecutor:
    """``script`` says how a run fails ("" = well) or raises."""

    script: Script
    directory: Path
    executed: list[tuple[ScheduledRun, str]] = field(default_factory=list)

    def execute(self, session: str, scheduled: ScheduledRun, arm: PreparedArm) -> Capture:
        self.executed.append((scheduled, arm.name))
        failure = self.script(scheduled, arm.name)
        info = run_info(session, arm.name, scheduled.round, scheduled.mode, scheduled.position)
        is_disturbed = failure.startswith("busy")
        outcome = replace(info.outcome, output_tail="one\nlast words\n")
        outcome = replace(outcome, disturbance=failure) if is_disturbed else replace(outcome, failure=failure)
        info = replace(info, outcome=outcome)
        if scheduled.mode is RunMode.PLAIN:
            return plain_capture(info)
        self.raw_recording.write_bytes(b"raw")
        return two_stack_capture(replace(info, perf=replace(info.perf, perf_command=("perf",))))

    @property
    def raw_recording(self) -> Path:
        return self.directory / "perf.data"


@dataclass
class Notes:
    """Progress, written down."""

    lines: list[str] = field(default_factory=list)
    summaries: list[SessionSummary] = field(default_factory=list)

    def session_started(self, session: str, preparation: Preparation, schedule: Schedule) -> None:
        self.lines.append(f"start {len(schedule)}")

    def run_started(self, scheduled: ScheduledRun, variant: str) -> None:
        self.lines.append(f"run {variant} {scheduled.mode} {scheduled.round}")

    def run_finished(self, run: FinishedRun) -> None:
        self.lines.append(f"done {run.variant} {run.outcome.failure or run.samples}")

    def session_ended(self, summary: SessionSummary) -> None:
        self.summaries.append(summary)


@dataclass
class Stage:
    store: Store
    notes: Notes
    executors: list[FakeExecutor]

    def record(self, plan: RecordPlan, script: Script = lambda *_: "", setup: SessionSetup = NEW_SESSION) -> SessionSummary:
        def make(preparation: Preparation, place: Workplace) -> FakeExecutor:
            self.executors.append(FakeExecutor(script, place.directory))
            return self.executors[-1]

        return record_session(plan, self.store, self.notes, make, setup)

    def stored(self) -> list[tuple[str, str, int, str]]:
        return [(s.variant, str(s.mode), s.round, s.failure) for s in (run.summary for run in self.store.runs())]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr("profiler.experiment.run.preparation.perf_version", lambda: "6.1")
    return Stage(open_store(tmp_path / "store", create=True), Notes(), [])


def expected_runs(plan: RecordPlan) -> list[tuple[str, str, int, str]]:
    schedule = make_schedule(len(plan.arms), plan.runs, plan.warmup, plan.profile, plan.seed)
    return [(plan.arms[run.arm].label, str(run.mode), run.round, "") for runs in schedule.rounds for run in runs]


def test_whole_session_in_the_scheduled_order(stage: Stage) -> None:
    summary = stage.record(PLAN)
    assert stage.stored() == expected_runs(PLAN)
    assert len(summary.runs) == 12
    assert (summary.finished_rounds, summary.state) == (3, SessionState.FINISHED)
    (session,) = stage.store.sessions()
    assert (session.name, session.state, session.start.seed) == (summary.session, SessionState.FINISHED, 42)
    assert all(run.round_complete for run in stage.store.runs())
    assert stage.notes.lines[0] == "start 12"
    assert stage.notes.summaries == [summary]
    assert list((stage.store.directory / "tmp").iterdir()) == []


def test_warmups_are_run_but_not_kept(stage: Stage) -> None:
    stage.record(replace(PLAN, warmup=2, profile=ProfilePolicy.NONE))
    assert stage.notes.lines[1:9:2] == ["run base plain -1", "run tuned plain -1"] * 2
    assert len(stage.executors[0].executed) == 4 + 6
    assert stage.stored() == expected_runs(replace(PLAN, profile=ProfilePolicy.NONE))


def test_later_failure_is_kept_and_marked_and_the_session_goes_on(stage: Stage) -> None:
    summary = stage.record(PLAN, lambda run, name: "exit code 3" if (run.round, name) == (1, "tuned") else "")
    assert [entry for entry in stage.stored() if entry[3]] == [
        ("tuned", "plain", 1, "exit code 3"),
        ("tuned", "profiled", 1, "exit code 3"),
    ]
    assert len(stage.stored()) == 12
    assert summary.state is SessionState.FINISHED


def test_first_failure_of_an_arm_stops_the_session(stage: Stage) -> None:
    with pytest.raises(CaptureError, match="tuned: the first run failed: exit code 3; its last line: last words; nothing more"):
        stage.record(PLAN, lambda _, name: "exit code 3" if name == "tuned" else "")
    assert [entry[3] for entry in stage.stored() if entry[0] == "tuned"] == ["exit code 3"]
    assert len(stage.stored()) <= 2
    assert stage.store.sessions()[0].state is SessionState.INTERRUPTED
    assert stage.notes.summaries[0].finished_rounds == 0
    assert not any(run.round_complete for run in stage.store.runs())


def test_failing_warmup_stops_the_session_with_nothing_kept(stage: Stage) -> None:
    with pytest.raises(CaptureError, match="the first run failed"):
        stage.record(replace(PLAN, warmup=1), lambda *_: "killed by SIGSEGV")
    assert stage.stored() == []


def test_interrupt_keeps_finished_rounds_and_marks_the_unfinished(stage: Stage) -> None:
    def interrupt(run: ScheduledRun, _: str) -> str:
        if run.position == 6:  # the third of four in the second round
            raise KeyboardInterrupt
        return ""

    with pytest.raises(KeyboardInterrupt):
        stage.record(PLAN, interrupt)
    assert stage.stored() == expected_runs(PLAN)[:6]
    assert [run.round_complete for run in stage.store.runs()] == [True] * 4 + [False] * 2
    (session,) = stage.store.sessions()
    assert (session.state, session.finished_rounds) == (SessionState.INTERRUPTED, 1)
    assert stage.notes.summaries[0].finished_rounds == 1
    assert list((stage.store.directory / "tmp").iterdir()) == []


@pytest.mark.parametrize("is_counted", [False, True])
def test_interrupt_while_the_first_run_is_filed_keeps_what_was_filed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, is_counted: bool
) -> None:
    """An agent looks into such a session, and sends what it finds."""
    add_run = SqliteCatalog.add_run

    def interrupt(*arguments: Any) -> StoredRun:
        if is_counted:
            add_run(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(SqliteCatalog, "add_run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stage.record(PLAN)
    assert len(list((stage.store.directory / "captures").glob("*/*.capture"))) == 1
    assert stage.stored() == (expected_runs(PLAN)[:1] if is_counted else [])
    assert [session.state for session in stage.store.sessions()] == [SessionState.INTERRUPTED]


def test_interrupt_before_anything_was_filed_leaves_no_session(stage: Stage) -> None:
    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage.record(PLAN, interrupt)
    assert stage.store.sessions() == ()


class FailsAtTimes:
    """A script of which run, as (arm, mode, round), fails how often and how."""

    def __init__(self, failures: dict[tuple[str, str, int], int], failure: str = "exit code 3") -> None:
        self._left = dict(failures)
        self._failure = failure

    def __call__(self, run: ScheduledRun, name: str) -> str:
        key = (name, str(run.mode), run.round)
        self._left[key] = self._left.get(key, 0) - 1
        return self._failure if self._left[key] >= 0 else ""


def test_failed_runs_are_made_again_within_the_budget(stage: Stage) -> None:
    script = FailsAtTimes({("tuned", "plain", 1): 2, ("base", "profiled", 1): 1, ("base", "plain", 2): 1})
    stage.record(replace(PLAN, retries=3), script)
    stored = stage.stored()
    assert len([entry for entry in stored if entry[3]]) == 4
    valid = [entry for entry in stored if not entry[3]]
    # Both runs of round 1 that failed and the second failure took the three retries; the last failure is only marked.
    assert sorted(valid) == sorted(set(expected_runs(PLAN)) - {("base", "plain", 2, "")})
    assert [run.summary.position for run in stage.store.runs()] == list(range(len(stored)))


def test_a_first_run_that_was_disturbed_may_fail_once(stage: Stage) -> None:
    """It has failed by itself once only: that may be an accident."""
    answers = iter(["busy", "exit code 3", ""])
    plan = replace(PLAN, profile=ProfilePolicy.NONE, retries=5)
    stage.record(plan, lambda run, name: next(answers, "") if name == "tuned" and run.round == 0 else "")
    assert [failure for arm, _, number, failure in stage.stored() if (arm, number) == ("tuned", 0)] == [
        "disturbed: busy", "exit code 3", ""
    ]  # fmt: skip


def test_a_first_run_that_fails_twice_stops_the_session(stage: Stage) -> None:
    with pytest.raises(CaptureError, match="tuned: the first run failed"):
        stage.record(replace(PLAN, retries=9), FailsAtTimes({("tuned", "plain", 0): 99}))
    assert [entry[3] for entry in stage.stored() if entry[0] == "tuned" and entry[1] == "plain"] == ["exit code 3"] * 2


def test_disturbed_runs_are_repeated_while_there_are_retries_and_then_kept(stage: Stage) -> None:
    stage.record(replace(PLAN, retries=2), FailsAtTimes({("tuned", "plain", 0): 99}, "busy neighbours"))
    of_run = [
        run for run in stage.store.runs() if (run.summary.variant, run.summary.mode, run.summary.round) == ("tuned", "plain", 0)
    ]
    assert [run.summary.failure for run in of_run] == ["disturbed: busy neighbours"] * 2 + [""]
    assert [stage.store.load(run).info.outcome.disturbance for run in of_run] == ["busy neighbours"] * 3
    assert stage.store.sessions()[0].state is SessionState.FINISHED


@pytest.mark.parametrize("retries", range(1, 12))
def test_no_run_is_lost_to_retries_that_others_took(stage: Stage, retries: int) -> None:
    """Everything is disturbed all the time: each run counts in the end, whichever of them the retries went to."""
    stage.record(replace(PLAN, retries=retries), lambda *_: "busy neighbours")
    kept = [run.summary for run in stage.store.runs()]
    valid = [(run.variant, run.mode, run.round) for run in kept if not run.failure]
    assert sorted(valid) == sorted({(run.variant, run.mode, run.round) for run in kept})
    assert len(kept) == 12 + retries


def test_disturbances_are_only_noted_without_retries(stage: Stage) -> None:
    stage.record(PLAN, lambda *_: "busy neighbours")
    assert stage.stored() == expected_runs(PLAN)


@pytest.mark.parametrize("position", range(13))
def test_resumed_session_repeats_nothing_that_finished(stage: Stage, position: int) -> None:
    """Stopped before every run in turn, and taken up again."""

    def stop(run: ScheduledRun, _: str) -> str:
        if run.position == position:
            raise KeyboardInterrupt
        return ""

    document = (("experiment.json", b"{}"),)
    if position < 12:
        with pytest.raises(KeyboardInterrupt):
            stage.record(PLAN, stop, SessionSetup(documents=document))
    else:
        stage.record(PLAN, stop, SessionSetup(documents=document))
    (session,) = stage.store.sessions()
    summary = stage.record(PLAN, setup=SessionSetup(resumed=session.name, documents=document))
    assert stage.stored() == expected_runs(PLAN)
    assert len(stage.executors[1].executed) == 12 - position
    assert summary.state is SessionState.FINISHED
    assert [run.round_complete for run in stage.store.runs()] == [True] * 12
    assert [run.summary.position for run in stage.store.runs()] == list(range(12))
    assert stage.store.document(session.name, "experiment.json") == b"{}"
    assert stage.store.document(session.name, "other.json") is None


def test_resumed_session_keeps_its_budget_of_retries(stage: Stage) -> None:
    def fail_then_stop(run: ScheduledRun, name: str) -> str:
        if run.round == 2:
            raise KeyboardInterrupt
        return "exit code 3" if (name, str(run.mode), run.round) == ("tuned", "plain", 1) else ""

    with pytest.raises(KeyboardInterrupt):
        stage.record(replace(PLAN, retries=2), fail_then_stop)
    (session,) = stage.store.sessions()
    stage.record(replace(PLAN, retries=2), FailsAtTimes({("tuned", "plain", 1): 1}), SessionSetup(resumed=session.name))
    # Three tries took both retries; the session when resumed tries the run that it lacks once.
    assert [entry[3] for entry in stage.stored() if entry[:3] == ("tuned", "plain", 1)] == ["exit code 3"] * 4


@pytest.mark.parametrize("retries", range(1, 8))
@pytest.mark.parametrize("position", range(1, 12))
def test_no_disturbed_run_is_lost_to_a_resume(stage: Stage, position: int, retries: int) -> None:
    """Everything is disturbed, and the session is stopped before one of the tries: each run still counts in the end."""

    def stop(run: ScheduledRun, _: str) -> str:
        if run.position == position:
            raise KeyboardInterrupt
        return "busy neighbours"

    plan = replace(PLAN, retries=retries)
    with pytest.raises(KeyboardInterrupt):
        stage.record(plan, stop, SessionSetup(documents=(("experiment.json", b"{}"),)))
    (session,) = stage.store.sessions()
    stage.record(plan, lambda *_: "busy neighbours", SessionSetup(resumed=session.name))
    kept = [run.summary for run in stage.store.runs()]
    valid = [(run.variant, run.mode, run.round) for run in kept if not run.failure]
    assert sorted(valid) == sorted({(run.variant, run.mode, run.round) for run in kept})
    assert len(kept) == 12 + retries


def test_nothing_is_recorded_for_a_plan_that_cannot_work(stage: Stage) -> None:
    with pytest.raises(CaptureError, match="no-such-program"):
        stage.record(replace(PLAN, arms=(Arm("base", ("no-such-program",)),)))
    with pytest.raises(UsageError, match="--cpus: CPU 9999"):
        stage.record(replace(PLAN, cpus=frozenset({9999})))
    with pytest.raises(UsageError, match=r"--input nothing\.ssz: No such file"):
        stage.record(replace(PLAN, inputs=(Path("nothing.ssz"),)))
    with pytest.raises(CaptureError, match="no-such-command: not found in PATH"):
        stage.record(replace(PLAN, before=("no-such-command",)))
    assert stage.store.sessions() == ()


def test_raw_recordings_are_kept_on_request(stage: Stage) -> None:
    stage.record(replace(PLAN, runs=1, keep_raw=True))
    names = sorted(path.name for path in (stage.store.directory / "captures").glob("*/*.perf.data"))
    assert [name.partition("-")[2] for name in names] in (
        ["base-profiled.perf.data", "tuned-profiled.perf.data"],
        ["tuned-profiled.perf.data", "base-profiled.perf.data"],
    )


def test_phase_is_checked_once_on_the_first_profiled_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def check(capture: Capture, phase: str, _: object) -> None:
        asked.append((str(capture.info.identity.mode), phase))

    monkeypatch.setattr("profiler.experiment.run.runner.check_phase", check)
    stage.record(replace(PLAN, phase="^phase::"))
    assert asked == [("profiled", "^phase::")]
