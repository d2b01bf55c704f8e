"""One window as perf left it, read into a capture."""

from __future__ import annotations

import numpy as np

from profiler.attach.reading import noted
from profiler.attach.window import PERF_CPU
from profiler.experiment.run.run_recording import RunRecording, recorded_capture
from profiler.model.capture import Capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo
from profiler.model.sample_selection import selected
from symbolize.locate import Locator

# Each takes a descriptor, and a session goes on beside a build machine that runs other programs every minute.
MOST_OPEN_BINARIES = 256


@dataclass(frozen=True, slots=True)
class PerfWindow:
    """A ``ReadableWindow``.  ``info``: with everything but what perf did.  ``note``: what readers of its numbers must know,
    "" = nothing.  ``begun_ns``: perf attached before; samples count from then on."""

    recording: RunRecording
    info: CaptureInfo
    locator: Locator
    note: str
    begun_ns: int
    gap_ns: int
    cpu_metric: str = PERF_CPU
    loss_advice: str = "lower --frequency, or another --call-graph"

    @property
    def has_own_files(self) -> bool:
        return self.recording.mapped is not None

    def capture(self) -> Capture:
        """The recording read; its file is removed."""
        try:
            capture = recorded_capture(self.recording, self.info, self.locator)
            return noted(selected(capture, capture.samples.time_ns >= np.uint64(self.begun_ns)), self.note)
        finally:
            self.recording.path.unlink(missing_ok=True)
            self.locator.let_go(MOST_OPEN_BINARIES)
