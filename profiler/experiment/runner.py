"""A recording session from its plan to its captures in the store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from profiler.errors import CaptureError
from profiler.experiment.executor import Executor, ProcessExecutor
from profiler.experiment.phase_check import check_phase
from profiler.experiment.plan import RecordPlan
from profiler.experiment.preparation import Preparation, prepare
from profiler.experiment.progress import FinishedRun, RecordProgress, SessionSummary
from profiler.experiment.schedule import Schedule, ScheduledRun, make_schedule
from profiler.model.capture import Capture
from profiler.model.run import RunMode
from profiler.store.records import SessionStart, SessionState
from profiler.store.store import Store
from symbolize.locate import Locator

ExecutorFactory = Callable[[Preparation, Path, Locator], Executor]


def record_session(
    plan: RecordPlan, store: Store, progress: RecordProgress, make_executor: ExecutorFactory = ProcessExecutor
) -> SessionSummary:
    """Carries the plan out: warm-up runs, then round by round; every run is in the store before the next one begins.

    A session stops when the first run of an arm fails (its metric and the phase included), on an error, and on Ctrl-C: the
    runs so far are kept, the session is marked as interrupted, and the exception passes on.  Later failures only mark their
    run.  ``CaptureError`` also when every run of an arm failed.
    """
    preparation = prepare(plan)
    schedule = make_schedule(len(plan.arms), plan.runs, plan.warmup, plan.profile, plan.seed)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    session = store.begin_session(SessionStart(now, preparation.host.hostname, plan.command, plan.seed, has_rounds=True))
    recording = _Recording(session, preparation, schedule, store, progress)
    progress.session_started(session, preparation, schedule)
    with _ending(recording), store.working_directory() as directory:
        locator = Locator()
        recording.run_all(make_executor(preparation, directory, locator), locator)
    return recording.summary(SessionState.FINISHED)


@contextlib.contextmanager
def _ending(recording: _Recording) -> Iterator[None]:
    """Writes down how the session ended, whatever ended it."""
    state = SessionState.INTERRUPTED
    try:
        yield
        state = SessionState.FINISHED
    finally:
        recording.store.finish_session(recording.session, state)
        recording.progress.session_ended(recording.summary(state))


@dataclass(slots=True)
class _Recording:
    """A session under way: what is fixed, and the runs that are in the store."""

    session: str
    preparation: Preparation
    schedule: Schedule
    store: Store
    progress: RecordProgress
    _runs: list[FinishedRun] = field(default_factory=list)
    _finished_rounds: int = 0
    _is_phase_checked: bool = False

    def run_all(self, executor: Executor, locator: Locator) -> None:
        for scheduled in self.schedule.warmups:
            self._run(executor, scheduled)
        for number, runs in enumerate(self.schedule.rounds):
            for scheduled in runs:
                capture = self._run(executor, scheduled)
                self._check_phase_once(capture, locator)
            self.store.finish_round(self.session, number)
            self._finished_rounds = number + 1
        self._check_arms()

    def summary(self, state: SessionState) -> SessionSummary:
        return SessionSummary(self.session, state, self.preparation, self._finished_rounds, tuple(self._runs))

    def _run(self, executor: Executor, scheduled: ScheduledRun) -> Capture:
        arm = self.preparation.arms[scheduled.arm]
        self.progress.run_started(scheduled, arm.name)
        capture = executor.execute(self.session, scheduled, arm)
        outcome = capture.info.outcome
        run = FinishedRun(scheduled, arm.name, outcome, len(capture.samples), capture.quality.lost_samples)
        if not scheduled.is_warmup:
            self.store.add(capture, executor.raw_recording if self._keeps_raw(scheduled, capture) else None)
            self._runs.append(run)
        self.progress.run_finished(run)
        if outcome.failure and (scheduled.is_warmup or scheduled.round == 0):
            raise CaptureError(_first_failure(run))
        return capture

    def _keeps_raw(self, scheduled: ScheduledRun, capture: Capture) -> bool:
        return self.preparation.plan.keep_raw and scheduled.mode is RunMode.PROFILED and bool(capture.info.perf.perf_command)

    def _check_phase_once(self, capture: Capture, locator: Locator) -> None:
        phase = self.preparation.plan.phase
        if phase and not self._is_phase_checked and capture.info.identity.mode is RunMode.PROFILED:
            check_phase(capture, phase, locator)
            self._is_phase_checked = True

    def _check_arms(self) -> None:
        for arm in self.preparation.arms:
            runs = [run for run in self._runs if run.variant == arm.name]
            if all(run.outcome.failure for run in runs):
                raise CaptureError(f"every run of {arm.name} failed: {runs[-1].outcome.failure}")


def _first_failure(run: FinishedRun) -> str:
    lines = run.outcome.output_tail.strip().splitlines()
    last = f"; its last line: {lines[-1][:200]}" if lines else ""
    return f"{run.variant}: the first run failed: {run.outcome.failure}{last}; nothing more was run"
