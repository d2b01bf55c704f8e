"""Where the runs of a session take place."""

from __future__ import annotations

from pathlib import Path

from collectors.processes.guard import GroupGuard
from profiler.model.quick_dataclass import dataclass
from symbolize.locate import Locator


@dataclass(frozen=True, slots=True)
class Workplace:
    """``directory``: for what a run prints and for its recording, both of which stay there until the next run.  ``guard``: ends
    what runs have started when slotscope is killed."""

    directory: Path
    locator: Locator
    guard: GroupGuard

    @property
    def output(self) -> Path:
        """What the program printed."""
        return self.directory / "output"

    @property
    def raw_recording(self) -> Path:
        return self.directory / "perf.data"
