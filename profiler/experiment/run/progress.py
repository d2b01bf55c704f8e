"""What a recording tells whoever watches it."""

from __future__ import annotations

from typing import Protocol

from profiler.experiment.plan.schedule import Schedule, ScheduledRun
from profiler.experiment.run.preparation import Preparation
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import RunOutcome
from profiler.store.records import SessionState


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that is in the store, or a warm-up run that is not.  ``samples``, ``lost_samples`` are 0 for plain runs."""

    scheduled: ScheduledRun
    variant: str
    outcome: RunOutcome
    samples: int
    lost_samples: int


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """``runs``: in order of execution, without warm-up runs."""

    session: str
    state: SessionState
    preparation: Preparation
    finished_rounds: int
    runs: tuple[FinishedRun, ...]


class RecordProgress(Protocol):
    """Called by the runner, in this order; ``session_ended`` is called however the session ends."""

    def session_started(self, session: str, preparation: Preparation, schedule: Schedule) -> None: ...

    def run_started(self, scheduled: ScheduledRun, variant: str) -> None: ...

    def run_finished(self, run: FinishedRun) -> None: ...

    def session_ended(self, summary: SessionSummary) -> None: ...
