"""A recording session from its plan to its captures in the store."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime

from collectors.processes.guard import GroupGuard
from collectors.processes.process_output import with_last_line
from profiler.errors import CaptureError
from profiler.experiment.plan.recording_plan import RecordPlan
from profiler.experiment.plan.schedule import Schedule, ScheduledRun, make_schedule
from profiler.experiment.run.executor import Executor, RunExecutor
from profiler.experiment.run.phase_check import check_phase
from profiler.experiment.run.preparation import Preparation, prepare
from profiler.experiment.run.program_workload import ProgramWorkload
from profiler.experiment.run.progress import FinishedRun, RecordProgress, SessionSummary
from profiler.experiment.run.workplace import Workplace
from profiler.model.capture import Capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import RunMode, RunOutcome
from profiler.store.records import SessionStart, SessionState, StoredRun
from profiler.store.store import Store
from symbolize.locate import Locator

ExecutorFactory = Callable[[Preparation, Workplace], Executor]
_Key = tuple[str, RunMode, int]
_DISTURBED = "disturbed: "


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """``resumed``: the session that is taken up again, "" = a new one.  ``documents``: (name, content) of files kept beside the
    captures, written before the first run of a new session.  ``held``: descriptors, as of locks, that stay open until all that
    runs have started has ended, even when slotscope is killed before."""

    resumed: str = ""
    documents: tuple[tuple[str, bytes], ...] = ()
    held: tuple[int, ...] = ()


NEW_SESSION = SessionSetup()


def program_executor(preparation: Preparation, place: Workplace) -> Executor:
    """Runs the plan's commands."""
    return RunExecutor(preparation, place, ProgramWorkload(preparation.plan, place))


def record_session(
    plan: RecordPlan,
    store: Store,
    progress: RecordProgress,
    make_executor: ExecutorFactory = program_executor,
    setup: SessionSetup = NEW_SESSION,
) -> SessionSummary:
    """Carries the plan out: warm-up runs, then round by round; every run is in the store before the next one begins.

    Runs that failed are made again at the end of their round while the plan's retries last.  A session stops when a run of an
    arm's first round fails for good (its metric and the phase included), on an error, and on Ctrl-C: the runs so far are kept,
    the session is marked as interrupted, and the exception passes on.  Later failures only mark their run.  ``CaptureError``
    also when every run of an arm failed.

    A resumed session repeats nothing that finished: runs that are in the store and did not fail stand.
    """
    preparation = prepare(plan)
    schedule = make_schedule(len(plan.arms), plan.runs, plan.warmup, plan.profile, plan.seed)
    session = setup.resumed or _begin(plan, preparation, store, setup)
    if setup.resumed:
        store.resume_session(session)
    recording = _Recording(session, preparation, schedule, store, progress, _Stored.of(store.runs(session)))
    progress.session_started(session, preparation, schedule)
    is_plain = not setup.resumed and not setup.documents
    with _ending(recording, is_plain), store.working_directory() as directory, GroupGuard(setup.held) as guard:
        place = Workplace(directory, Locator(), guard)
        recording.run_all(make_executor(preparation, place), place.locator)
    return recording.summary(SessionState.FINISHED)


def _begin(plan: RecordPlan, preparation: Preparation, store: Store, setup: SessionSetup) -> str:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    session = store.begin_session(SessionStart(now, preparation.host.hostname, plan.command, plan.seed, has_rounds=True))
    for name, content in setup.documents:
        store.put_document(session, name, content)
    return session


@contextlib.contextmanager
def _ending(recording: _Recording, is_plain: bool) -> Iterator[None]:
    """Writes down how the session ended, whatever ended it.  A plain session in which nothing was run leaves nothing behind:
    it would be the last one, and there is nothing to take up again.  The store knows whether: an interrupt may come when a run
    was filed and nothing else was done about it."""
    state = SessionState.INTERRUPTED
    try:
        yield
        state = SessionState.FINISHED
    finally:
        if not is_plain or not recording.store.remove_empty_session(recording.session):
            recording.store.finish_session(recording.session, state)
        recording.progress.session_ended(recording.summary(state))


@dataclass(slots=True)
class _Stored:
    """What the session holds already, by (arm, mode, round): all runs, those that did not fail, and those that failed by
    themselves, not because they were disturbed.  ``positions``: the place of the next run in the order of execution."""

    runs: Counter[_Key]
    valid: Counter[_Key]
    broken: Counter[_Key]
    positions: int

    @staticmethod
    def of(runs: Sequence[StoredRun]) -> _Stored:
        kept = [run.summary for run in runs]
        keys = [(run.variant, run.mode, run.round) for run in kept]
        valid = Counter(key for key, run in zip(keys, kept, strict=True) if not run.failure)
        broken = Counter(key for key, run in zip(keys, kept, strict=True) if _is_broken(run.failure))
        return _Stored(Counter(keys), valid, broken, max((run.position for run in kept), default=-1) + 1)

    @property
    def repeated(self) -> int:
        """Runs that were made again."""
        return sum(count - 1 for count in self.runs.values() if count)

    def add(self, key: _Key, failure: str) -> None:
        self.positions += 1
        self.runs[key] += 1
        self.valid[key] += not failure
        self.broken[key] += _is_broken(failure)


@dataclass(slots=True)
class _Recording:
    """A session under way: what is fixed, and the runs that are in the store."""

    session: str
    preparation: Preparation
    schedule: Schedule
    store: Store
    progress: RecordProgress
    stored: _Stored
    _runs: list[FinishedRun] = field(default_factory=list)
    _finished_rounds: int = 0
    _is_phase_checked: bool = False

    def run_all(self, executor: Executor, locator: Locator) -> None:
        rounds = [self._to_do(runs) for runs in self.schedule.rounds]
        for scheduled in self.schedule.warmups if any(rounds) else ():
            self._run(executor, scheduled)
        for number, runs in enumerate(rounds):
            self._run_round(executor, locator, runs)
            self.store.finish_round(self.session, number)
            self._finished_rounds = number + 1
        self._check_arms()

    def summary(self, state: SessionState) -> SessionSummary:
        return SessionSummary(self.session, state, self.preparation, self._finished_rounds, tuple(self._runs))

    def _to_do(self, runs: Sequence[ScheduledRun]) -> list[ScheduledRun]:
        return [run for run in runs if not self.stored.valid[self._key(run)]]

    def _run_round(self, executor: Executor, locator: Locator, runs: Sequence[ScheduledRun]) -> None:
        """Each of the runs, then those that failed once more, and again while there are retries."""
        while runs:
            failed: list[ScheduledRun] = []
            for place, scheduled in enumerate(runs):
                # Retries that are spoken for: of runs that wait for one, and of those in the rest of this pass that are some.
                spoken_for = len(failed) + sum(self.stored.runs[self._key(later)] > 0 for later in runs[place + 1 :])
                capture = self._run(executor, scheduled, spoken_for)
                if capture.info.outcome.failure:
                    failed.append(scheduled)
                else:
                    self._check_phase_once(capture, locator)
            runs = failed[: self._retries_left()]

    def _retries_left(self) -> int:
        return max(0, self.preparation.plan.retries - self.stored.repeated)

    def _run(self, executor: Executor, scheduled: ScheduledRun, spoken_for: int = 0) -> Capture:
        arm = self.preparation.arms[scheduled.arm]
        if not scheduled.is_warmup:
            scheduled = replace(scheduled, position=self.stored.positions)
        self.progress.run_started(scheduled, arm.name)
        capture = self._to_be_repeated(scheduled, executor.execute(self.session, scheduled, arm), spoken_for)
        outcome = capture.info.outcome
        run = FinishedRun(scheduled, arm.name, outcome, len(capture.samples), capture.quality.lost_samples)
        if not scheduled.is_warmup:
            self.store.add(capture, executor.raw_recording if self._keeps_raw(scheduled, capture) else None)
            self._runs.append(run)
            self.stored.add(self._key(scheduled), outcome.failure)
        self.progress.run_finished(run)
        if outcome.failure and self._ends_session(scheduled, outcome):
            raise CaptureError(_first_failure(run))
        return capture

    def _to_be_repeated(self, scheduled: ScheduledRun, capture: Capture, spoken_for: int) -> Capture:
        """A disturbed run fails while another try is left; the last one counts, disturbed as it is."""
        outcome = capture.info.outcome
        is_repeat = self.stored.runs[self._key(scheduled)] > 0
        if not outcome.disturbance or outcome.failure or self._retries_left() <= spoken_for + is_repeat:
            return capture
        failed = replace(outcome, failure=_disturbed(outcome))
        return replace(capture, info=replace(capture.info, outcome=failed))

    def _ends_session(self, scheduled: ScheduledRun, outcome: RunOutcome) -> bool:
        """What fails at once, and once more, is no accident."""
        if scheduled.is_warmup:
            return True
        has_another_try = self._retries_left() > 0 and self.stored.broken[self._key(scheduled)] < 2
        return scheduled.round == 0 and _is_broken(outcome.failure) and not has_another_try

    def _key(self, scheduled: ScheduledRun) -> tuple[str, RunMode, int]:
        return self.preparation.arms[scheduled.arm].name, scheduled.mode, scheduled.round

    def _keeps_raw(self, scheduled: ScheduledRun, capture: Capture) -> bool:
        return self.preparation.plan.keep_raw and scheduled.mode is RunMode.PROFILED and bool(capture.info.perf.perf_command)

    def _check_phase_once(self, capture: Capture, locator: Locator) -> None:
        phase = self.preparation.plan.phase
        if phase and not self._is_phase_checked and capture.info.identity.mode is RunMode.PROFILED:
            check_phase(capture, phase, locator)
            self._is_phase_checked = True

    def _check_arms(self) -> None:
        valid = {arm for (arm, _, _), count in self.stored.valid.items() if count}
        for arm in self.preparation.arms:
            if arm.name not in valid:
                failures = [run.outcome.failure for run in self._runs if run.variant == arm.name]
                raise CaptureError(f"every run of {arm.name} failed{': ' + failures[-1] if failures else ''}")


def _disturbed(outcome: RunOutcome) -> str:
    """The failure of a run that has no other than what else happened on the host."""
    return f"{_DISTURBED}{outcome.disturbance}"


def _is_broken(failure: str) -> bool:
    """Whether a run failed by itself."""
    return bool(failure) and not failure.startswith(_DISTURBED)


def _first_failure(run: FinishedRun) -> str:
    failed = f"{run.variant}: the first run failed: {run.outcome.failure}"
    return f"{with_last_line(failed, run.outcome.output_tail, '; its last line: ')}; nothing more was run"
