"""What /proc/PID/stat says of processes and threads (proc(5)), and who started whom."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from profiler.model.quick_dataclass import dataclass

# Places of the fields, counted from the state behind the name; a flag of linux/sched.h.
_STATE, _PARENT, _SESSION, _FLAGS, _USER, _THREADS, _STARTED, _KERNEL_THREAD = 0, 1, 3, 6, 11, 17, 19, 0x00200000
_ENDED = ("Z", "X")
# 52 numbers, and a name of 64 bytes at most.
_LONGEST_STATUS = 4096


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """Times in clock ticks.  ``started``: since boot; ``waited_user``, ``waited_system``: of children that have ended and were
    waited for.  ``state``: the letter of proc(5), but "S" where only the first of several threads has ended."""

    pid: int
    state: str
    parent: int
    session: int
    started: int
    user: int
    system: int
    waited_user: int
    waited_system: int
    is_kernel_thread: bool

    @property
    def has_ended(self) -> bool:
        """Also of one that nobody has waited for yet."""
        return self.state in _ENDED

    @property
    def is_stopped(self) -> bool:
        """By a signal, or by a debugger; it runs on when it is told to."""
        return self.state in ("T", "t")


def status_of(pid: int) -> ProcessStatus | None:
    """None when there is no such process."""
    return _read(pid, f"/proc/{pid}/stat")


def thread_statuses(pid: int) -> list[ProcessStatus]:
    """Of each thread, with the ID of the thread as ``pid``; empty when the process is gone."""
    try:
        entries = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found = (_read(int(entry), f"/proc/{pid}/task/{entry}/stat") for entry in entries)
    return [status for status in found if status is not None]


def _read(pid: int, path: str) -> ProcessStatus | None:
    """Of all processes each time that one is looked at: nothing here may take long."""
    try:
        with open(path, "rb", buffering=0) as stream:
            stat = stream.read(_LONGEST_STATUS)
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    user, system, waited_user, waited_system = (int(field) for field in fields[_USER : _USER + 4])
    state = fields[_STATE].decode()
    return ProcessStatus(
        pid=pid,
        state="S" if state == "Z" and int(fields[_THREADS]) > 1 else state,
        parent=int(fields[_PARENT]),
        session=int(fields[_SESSION]),
        started=int(fields[_STARTED]),
        user=user,
        system=system,
        waited_user=waited_user,
        waited_system=waited_system,
        is_kernel_thread=bool(int(fields[_FLAGS]) & _KERNEL_THREAD),
    )


def all_processes() -> dict[int, ProcessStatus]:
    """Of this host, by ID."""
    return {status.pid: status for status in _statuses()}


def _statuses() -> Iterator[ProcessStatus]:
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit() and (status := status_of(int(entry.name))) is not None:
                yield status


def has_running(session: int) -> bool:
    """Whether a process of the session has not ended.  One that has and is not waited for does not count: in a container there
    may be nobody to wait for what a service leaves behind."""
    return any(status.session == session and not status.has_ended for status in _statuses())


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


def command_line(pid: int) -> tuple[bytes, ...]:
    """The words that the process was started with, as it shows them; empty when it is gone, has ended or belongs to the
    kernel."""
    try:
        return tuple(Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")[:-1])
    except OSError:
        return ()


def comm_of(pid: int) -> str:
    """The name of a process; "" when it is gone."""
    try:
        return Path("/proc", str(pid), "comm").read_text(errors="replace").removesuffix("\n")
    except OSError:
        return ""
