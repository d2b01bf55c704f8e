"""Processes that run already: how one is found, and what it has used up to now."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from collectors.process_times import CpuUsage, ProcessStatus, all_processes, cpu_usage, tree
from profiler.errors import CaptureError

CGROUPS = Path("/sys/fs/cgroup")
LONGEST_COMM = 15
SYSTEMCTL_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class ProcessFinder:
    """One of: ``pid``; ``comm``, a regular expression for the whole name of the process; ``cgroup``, its path below
    /sys/fs/cgroup; ``unit``, a systemd unit."""

    pid: int = 0
    comm: str = ""
    cgroup: str = ""
    unit: str = ""

    @property
    def is_given(self) -> bool:
        return bool(self.pid or self.comm or self.cgroup or self.unit)

    def __str__(self) -> str:
        if self.pid:
            return f"process {self.pid}"
        name = f"process named {self.comm!r}" if self.comm else ""
        return name or (f"process in cgroup {self.cgroup}" if self.cgroup else f"process of unit {self.unit}")


@dataclass(frozen=True, slots=True)
class ProcessMoment:
    """A watched process at one moment.  ``identities``: (ID, start in clock ticks since boot) of what was found, which stays
    as long as the process does; ``usage``: with everything it started."""

    identities: tuple[tuple[int, int], ...]
    usage: CpuUsage


def longer_name_hint(comm: str) -> str:
    """What to add where no process has the name: the kernel keeps its first 15 bytes, and the whole of it has to match."""
    if re.fullmatch(r"[\w.-]+", comm) and len(comm) > LONGEST_COMM:
        return f"; the kernel keeps {LONGEST_COMM} characters of a name: {comm[:LONGEST_COMM]!r}"
    return ""


def look_at(finder: ProcessFinder) -> ProcessMoment:
    """``CaptureError`` when there is no such process, or no telling which it is."""
    processes = all_processes()
    roots = [processes[pid] for pid in _found(finder, processes) if pid in processes]
    if not roots:
        raise CaptureError(f"there is no {finder}{longer_name_hint(finder.comm)}")
    pids = {root.pid for root in roots}
    # A cgroup may lose and gain workers; the process that leads it is the one that stays.
    leaders = tuple((root.pid, root.started) for root in roots if root.parent not in pids)
    return ProcessMoment(leaders, cpu_usage(tree(pids, processes)))


def _found(finder: ProcessFinder, processes: Mapping[int, ProcessStatus]) -> list[int]:
    if finder.pid:
        return [finder.pid]
    if finder.cgroup:
        return cgroup_members(finder.cgroup)
    if finder.unit:
        return unit_process(finder.unit)
    pattern = re.compile(finder.comm)
    named = {pid for pid in processes if pattern.fullmatch(comm_of(pid))}
    outermost = sorted(pid for pid in named if processes[pid].parent not in named)
    if len(outermost) > 1:
        shown = ", ".join(map(str, outermost[:5]))
        raise CaptureError(f"{len(outermost)} processes are named {finder.comm!r} ({shown}): choose one by pid")
    return outermost


def comm_of(pid: int) -> str:
    """The name of a process; "" when it is gone."""
    try:
        return Path("/proc", str(pid), "comm").read_text(errors="replace").removesuffix("\n")
    except OSError:
        return ""


def cgroup_members(name: str) -> list[int]:
    """Of a cgroup and those below it, by ID of the process.  ``CaptureError`` when they cannot be read."""
    directory = CGROUPS / name.strip("/")
    try:
        texts = [path.read_text() for path in sorted(directory.rglob("cgroup.procs"))]
    except OSError as error:
        raise CaptureError(f"cgroup {name}: {error.strerror}") from None
    return [int(pid) for text in texts for pid in text.split()]


def unit_process(unit: str) -> list[int]:
    """The main process of a systemd unit, if it runs.  ``CaptureError`` when systemctl does not say."""
    command = ("systemctl", "show", "--property=MainPID", "--value", "--", unit)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=SYSTEMCTL_TIMEOUT_S)
    except OSError as error:
        raise CaptureError(f"unit {unit}: systemctl cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise CaptureError(f"unit {unit}: systemctl did not answer within {SYSTEMCTL_TIMEOUT_S:.0f} s") from None
    text = done.stdout.decode("utf-8", "replace").strip()
    return [int(text)] if done.returncode == 0 and text.isdigit() and int(text) else []
