"""What is run and measured: a program from its start to its end, or a service while it is under load."""

from __future__ import annotations

from typing import Protocol

from profiler.experiment.run.preparation import PreparedArm
from profiler.experiment.run.run_recording import RunRecording
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, RunOutcome


@dataclass(frozen=True, slots=True)
class Measured:
    """A run so far: what it reports, and what perf recorded of it, None for a plain run or one that failed before."""

    outcome: RunOutcome
    recording: RunRecording | None = None


class Workload(Protocol):
    """Runs of one kind.  The outcome says when one failed; ``CaptureError`` when nothing can run."""

    def run(self, info: CaptureInfo, arm: PreparedArm) -> Measured: ...

    def with_reported(self, outcome: RunOutcome, arm: PreparedArm) -> RunOutcome:
        """With the numbers that are read when the run is over."""
        ...
