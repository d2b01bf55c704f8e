"""What came of a session that watched a running process: its windows, and how it ended."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass
from profiler.model.run import RunKey, RunOutcome


@dataclass(frozen=True, slots=True)
class KeptWindow:
    """A window that is in the store, as ``key``.  ``gap_ns``: time before it that no perf recorded, after a window of the same
    process; -1 = it is the first one.  ``perf_ns``: CPU time of perf, or of what recorded in its place.  ``advice``: what is
    said of lost samples."""

    key: RunKey
    number: int
    instance: str
    outcome: RunOutcome
    samples: int
    lost_samples: int
    gap_ns: int
    perf_ns: int
    advice: str = ""


@dataclass(frozen=True, slots=True)
class AttachSummary:
    """``ending``: one line.  ``windows``: in order of time.  ``files``: directory below which the process's own files are found
    as long as it runs, "" = where everybody finds them.  ``profiler``: the program that recorded."""

    session: str
    variant: str
    ending: str
    windows: tuple[KeptWindow, ...]
    files: str = ""
    profiler: str = "perf"
