"""The CPU time that a job costs its host beside what it measures: its own process, and the profilers that this started."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from collectors.processes.process_status import ProcessStatus, comm_of, tree
from collectors.processes.process_times import cpu_usage

WINDOW_S = 60.0
_PROFILERS = frozenset({"perf", "perf-exec", "py-spy"})


def profiling_ns(job: int, processes: Mapping[int, ProcessStatus]) -> dict[int, int]:
    """By process ID.  Children that have ended count in none: among them are the programs that are measured."""
    own = [status for status in tree((job,), processes) if status.pid == job or comm_of(status.pid) in _PROFILERS]
    return {status.pid: cpu_usage((replace(status, waited_user=0, waited_system=0),)).total_ns for status in own}


class CpuMeter:
    """Adds readings up, and tells the use of the last ``WINDOW_S`` in percent of one CPU.  What a profiler used between its
    last reading and its end is missed; readings are about a second apart."""

    def __init__(self) -> None:
        self._latest: dict[int, int] = {}
        self._ended_ns = 0
        self._totals: deque[tuple[float, int]] = deque()

    def read(self, now_s: float, used_ns: Mapping[int, int]) -> float:
        """``used_ns``: of every process that is there, up to now.  A job that is younger than the window has used nothing in
        the rest of it, so that its start does not end it."""
        # Every window has a perf of its own: of those that ended only the sum is kept.
        self._ended_ns += sum(latest for pid, latest in self._latest.items() if pid not in used_ns)
        self._latest = dict(used_ns)
        total = self._ended_ns + sum(self._latest.values())
        self._totals.append((now_s, total))
        while len(self._totals) > 1 and self._totals[1][0] <= now_s - WINDOW_S:
            self._totals.popleft()
        since_s, before = self._totals[0]
        earlier = before if now_s - since_s >= WINDOW_S else 0
        return 100.0 * (total - earlier) / 1e9 / WINDOW_S
