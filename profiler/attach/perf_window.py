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

    def capture(self) -> Capture:
        """The recording read; its file is removed."""
        try:
            capture = recorded_capture(self.recording, self.info, self.locator)
            return noted(selected(capture, capture.samples.time_ns >= np.uint64(self.begun_ns)), self.note)
        finally:
            self.recording.path.unlink(missing_ok=True)
