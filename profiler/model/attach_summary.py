"""What came of a session that watched a running process: its windows, and how it ended."""

from __future__ import annotations

from dataclasses import replace

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
class WindowTotals:
    """What windows add up to, in as little room for a year of them as for one.  ``windows``: all of them, of which ``counting``
    did not fail; of these are ``wall_ns`` to ``perf_ns``.  ``has_samples``: some window does.  ``gaps``: how many windows had
    one before them, ``gaps_ns`` in all and ``longest_gap_ns`` at most.  ``last_failure``: "" = all count."""

    windows: int = 0
    counting: int = 0
    wall_ns: int = 0
    used_ns: int = 0
    samples: int = 0
    lost_samples: int = 0
    perf_ns: int = 0
    has_samples: bool = False
    gaps: int = 0
    gaps_ns: int = 0
    longest_gap_ns: int = 0
    last_failure: str = ""

    def with_window(self, window: KeptWindow) -> WindowTotals:
        """One more."""
        outcome, has_gap = window.outcome, window.gap_ns >= 0
        every = replace(
            self,
            windows=self.windows + 1,
            has_samples=self.has_samples or window.samples > 0,
            gaps=self.gaps + has_gap,
            gaps_ns=self.gaps_ns + (window.gap_ns if has_gap else 0),
            longest_gap_ns=max(self.longest_gap_ns, window.gap_ns),
        )
        if outcome.failure:
            return replace(every, last_failure=outcome.failure)
        return replace(
            every,
            counting=self.counting + 1,
            wall_ns=self.wall_ns + outcome.wall_ns,
            used_ns=self.used_ns + outcome.user_ns + outcome.system_ns,
            samples=self.samples + window.samples,
            lost_samples=self.lost_samples + window.lost_samples,
            perf_ns=self.perf_ns + window.perf_ns,
        )


@dataclass(frozen=True, slots=True)
class AttachSummary:
    """``ending``: one line.  ``totals``: of all its windows.  ``files``: directory below which the process's own files are
    found as long as it runs, "" = where everybody finds them.  ``profiler``: the program that recorded."""

    session: str
    variant: str
    ending: str
    totals: WindowTotals
    files: str = ""
    profiler: str = "perf"
