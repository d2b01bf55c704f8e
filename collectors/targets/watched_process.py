"""Processes that run already, and what they have used up to now."""

from __future__ import annotations

import os
import time

from collectors.processes.process_status import all_processes, tree
from collectors.processes.process_times import CpuUsage, cpu_usage
from collectors.targets.target_finder import TargetFinder, found_processes, longer_name_hint
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass

_SETTLE_SLACK_S = 0.1


@dataclass(frozen=True, slots=True)
class ProcessMoment:
    """A watched process at one moment.  ``identities``: (ID, start in clock ticks since boot) of what was found, which stays
    as long as the process does; ``usage``: with everything it started."""

    identities: tuple[tuple[int, int], ...]
    usage: CpuUsage

    def age_s(self, at_ns: int) -> float:
        """How long the youngest of what was found had been running at ``at_ns`` (CLOCK_MONOTONIC)."""
        youngest_s = max(started for _, started in self.identities) / os.sysconf("SC_CLK_TCK")
        return at_ns / 1e9 + _boot_offset_s() - youngest_s


def check_settled(process: ProcessMoment, at_ns: int, settle_s: float) -> None:
    """``CaptureError`` when a window that begins at ``at_ns`` (CLOCK_MONOTONIC) would be one of a process that had been running
    for less than ``settle_s``."""
    age_s = process.age_s(at_ns)
    if age_s < settle_s - _SETTLE_SLACK_S:
        raise CaptureError(f"the process had started only {age_s:.0f} s before, and settle is {settle_s:g} s")


def look_at(finder: TargetFinder) -> ProcessMoment:
    """``CaptureError`` when there is no such process, or no telling which it is."""
    processes = all_processes()
    roots = found_processes(finder, processes)
    if not roots:
        raise CaptureError(f"there is no {finder}{longer_name_hint(finder.comm)}")
    pids = {root.pid for root in roots}
    # A cgroup may lose and gain workers; the process that leads it is the one that stays.
    leaders = tuple((root.pid, root.started) for root in roots if root.parent not in pids)
    return ProcessMoment(leaders, cpu_usage(tree(pids, processes)))


def _boot_offset_s() -> float:
    """Time since boot, which counts suspended time too, less the monotonic clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
