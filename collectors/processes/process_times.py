"""CPU time that processes have used up to now, with everything they started, while they run."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable

from collectors.processes.process_status import ProcessStatus
from profiler.model.quick_dataclass import dataclass

_CLOCK_OF_PROCESS = 2  # the scheduler's clock, in the low bits of a process's clock ID (linux/posix-timers.h)


@dataclass(frozen=True, slots=True)
class CpuUsage:
    """``total_ns`` is exact but for children that ended, which count in ticks; ``user``, ``system`` are all in ticks."""

    total_ns: int
    user: int
    system: int


def cpu_usage(processes: Iterable[ProcessStatus]) -> CpuUsage:
    """What they have used so far, the children that they waited for included."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    total_ns = user = system = 0
    for status in processes:
        total_ns += _own_ns(status, tick_ns) + (status.waited_user + status.waited_system) * tick_ns
        user += status.user + status.waited_user
        system += status.system + status.waited_system
    return CpuUsage(total_ns, user, system)


def used_between(before: CpuUsage, after: CpuUsage) -> tuple[int, int]:
    """(user, system) time in ns.  Their sum is exact; it is split as the ticks are."""
    total_ns = max(0, after.total_ns - before.total_ns)
    user, system = max(0, after.user - before.user), max(0, after.system - before.system)
    user_ns = round(total_ns * user / (user + system)) if user + system else total_ns
    return user_ns, total_ns - user_ns


def _own_ns(status: ProcessStatus, tick_ns: int) -> int:
    """From the process's clock, which counts ns; from its ticks when it has just ended."""
    with contextlib.suppress(OSError):
        return time.clock_gettime_ns((~status.pid << 3) | _CLOCK_OF_PROCESS)
    return (status.user + status.system) * tick_ns
