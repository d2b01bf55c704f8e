"""CPU time that processes have used up to now, with everything they started, while they run."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_CLOCK_OF_PROCESS = 2  # the scheduler's clock, in the low bits of a process's clock ID (linux/posix-timers.h)
# Fields of /proc/PID/stat (proc(5)), counted from the state behind the name.
_STATE, _PARENT, _SESSION, _USER, _STARTED = 0, 1, 3, 11, 19
_ENDED = (b"Z", b"X")


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """Times in clock ticks.  ``started``: since boot; ``waited_user``, ``waited_system``: of children that have ended and were
    waited for."""

    pid: int
    parent: int
    session: int
    started: int
    user: int
    system: int
    waited_user: int
    waited_system: int


@dataclass(frozen=True, slots=True)
class CpuUsage:
    """``total_ns`` is exact but for children that ended, which count in ticks; ``user``, ``system`` are all in ticks."""

    total_ns: int
    user: int
    system: int


def status_of(pid: int) -> ProcessStatus | None:
    """None when there is no such process."""
    try:
        stat = Path("/proc", str(pid), "stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    times = (int(field) for field in fields[_USER : _USER + 4])
    return ProcessStatus(pid, int(fields[_PARENT]), int(fields[_SESSION]), int(fields[_STARTED]), *times)


def all_processes() -> dict[int, ProcessStatus]:
    """Of this host, by ID."""
    found = (status_of(int(entry.name)) for entry in os.scandir("/proc") if entry.name.isdigit())
    return {status.pid: status for status in found if status is not None}


def has_running(session: int) -> bool:
    """Whether a process of the session has not ended.  One that has and is not waited for does not count: in a container there
    may be nobody to wait for what a service leaves behind."""
    with os.scandir("/proc") as entries:
        return any(_is_running_member(entry.name, session) for entry in entries if entry.name.isdigit())


def _is_running_member(pid: str, session: int) -> bool:
    try:
        stat = Path("/proc", pid, "stat").read_bytes()
    except OSError:
        return False
    fields = stat[stat.rindex(b")") + 2 :].split()
    return int(fields[_SESSION]) == session and fields[_STATE] not in _ENDED


def tree(roots: Collection[int], processes: Mapping[int, ProcessStatus]) -> list[ProcessStatus]:
    """The roots, what they started, and what is in a session that one of them leads; by ID."""
    children: dict[int, list[int]] = {}
    for status in processes.values():
        children.setdefault(status.parent, []).append(status.pid)
    found = set(roots) | {status.pid for status in processes.values() if status.session in roots}
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return [processes[pid] for pid in sorted(found) if pid in processes]


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
