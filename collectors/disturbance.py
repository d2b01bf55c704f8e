"""What else happened on the host while a program ran: work of others, stolen time, throttling, steps of the clock.

Read from counters that the kernel keeps anyway, once before and once after, so that looking costs the program nothing.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from profiler.model.quick_dataclass import dataclass

PROC_STAT = Path("/proc/stat")
CPU_DEVICES = Path("/sys/devices/system/cpu")
# A machine that does nothing else is busy for a few hundredths of a CPU.
MOST_FOREIGN_CPUS = 0.3
MOST_STOLEN = 0.05
# The clock may be slewed by half a millisecond a second.
LARGEST_SLEW = 0.001
SMALLEST_STEP_NS = 100_000_000
# /proc/stat counts in ticks, per CPU and kind of time.
_TICKS_OF_ERROR = 4


@dataclass(frozen=True, slots=True)
class HostActivity:
    """Counters at one moment.  ``busy_ns``: of all CPUs, everything but idle, waiting and stolen time; ``stolen_ns``: taken by
    the hypervisor; ``own_ns``: user and system time of this process and of its children that have ended.  ``throttled``: times
    that a CPU was slowed down for its heat."""

    monotonic_ns: int
    realtime_ns: int
    busy_ns: int
    stolen_ns: int
    own_ns: int
    throttled: int
    cpus: int
    tick_ns: int


def host_activity() -> HostActivity:
    """Now."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    first = PROC_STAT.read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = (int(text) for text in first[:8])
    own = os.times()
    return HostActivity(
        monotonic_ns=time.monotonic_ns(),
        realtime_ns=time.time_ns(),
        busy_ns=(user + nice + system + irq + softirq) * tick_ns,
        stolen_ns=steal * tick_ns,
        own_ns=round((own.user + own.system + own.children_user + own.children_system) * 1e9),
        throttled=_throttle_count(),
        cpus=os.cpu_count() or 1,
        tick_ns=tick_ns,
    )


def disturbances(before: HostActivity, after: HostActivity) -> tuple[str, ...]:
    """What may have changed the program's times between two moments, in words; empty as a rule.

    Processes that this one started must have been waited for by then, or they count as work of others.
    """
    wall_ns = max(after.monotonic_ns - before.monotonic_ns, 1)
    error_ns = _TICKS_OF_ERROR * after.tick_ns * after.cpus
    found = []
    foreign_ns = (after.busy_ns - before.busy_ns) - (after.own_ns - before.own_ns)
    if foreign_ns - error_ns > MOST_FOREIGN_CPUS * wall_ns:
        found.append(f"{foreign_ns / wall_ns:.1f} CPUs were busy with other work")
    stolen_ns = after.stolen_ns - before.stolen_ns
    if stolen_ns - error_ns > MOST_STOLEN * wall_ns * after.cpus:
        found.append(f"the hypervisor took {100 * stolen_ns / wall_ns / after.cpus:.0f} % of the CPU time")
    if throttled := after.throttled - before.throttled:
        found.append(f"a CPU was slowed down for its heat ({throttled} times)")
    step_ns = (after.realtime_ns - before.realtime_ns) - wall_ns
    if abs(step_ns) > max(SMALLEST_STEP_NS, LARGEST_SLEW * wall_ns):
        found.append(f"the clock was set by {step_ns / 1e9:+.1f} s")
    return tuple(found)


def _throttle_count() -> int:
    """0 on hardware that does not tell."""
    total = 0
    for path in CPU_DEVICES.glob("cpu[0-9]*/thermal_throttle/core_throttle_count"):
        try:
            total += int(path.read_text())
        except (OSError, ValueError):
            continue
    return total
