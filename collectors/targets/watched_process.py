"""Processes that run already, and what they have used up to now."""

from __future__ import annotations

from collectors.processes.process_status import all_processes, tree
from collectors.processes.process_times import CpuUsage, cpu_usage
from collectors.targets.target_finder import TargetFinder, found_processes, longer_name_hint
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ProcessMoment:
    """A watched process at one moment.  ``identities``: (ID, start in clock ticks since boot) of what was found, which stays
    as long as the process does; ``usage``: with everything it started."""

    identities: tuple[tuple[int, int], ...]
    usage: CpuUsage


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
