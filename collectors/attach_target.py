"""What a profiler is attached to: one process that leads, found in one of several ways, and everything that belongs to it.

To a process belongs what it started; to a cgroup, a systemd unit or a container all processes of the cgroup.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from collectors.process_times import ProcessStatus, all_processes, status_of, tree
from collectors.watched_process import CGROUPS, cgroup_members, comm_of, longer_name_hint, unit_process
from profiler.errors import CaptureError

CONTAINER_TIMEOUT_S = 10.0
_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of linux/proc_ns.h
_CONTAINER_PROGRAMS = ("docker", "podman")
_CONTAINER_ID = re.compile(r"[0-9a-f]{12,64}")
# Fields of /proc/PID/stat (proc(5)), counted from the state behind the name; a flag of linux/sched.h.
_STATE, _FLAGS, _THREADS, _STARTED, _KERNEL_THREAD = 0, 6, 17, 19, 0x00200000
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class TargetFinder:
    """One of: ``pid``; ``comm``, a regular expression for the whole name of the process; ``cgroup``, its path below
    /sys/fs/cgroup; ``unit``, a systemd unit; ``container``, a name or ID.  ``exclude``: for ``comm``, process IDs and regular
    expressions that are searched in the command line; what matches is not meant."""

    pid: int = 0
    comm: str = ""
    cgroup: str = ""
    unit: str = ""
    container: str = ""
    exclude: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.pid:
            return f"process {self.pid}"
        if self.comm:
            return f"process named {self.comm!r}{' and not excluded' if self.exclude else ''}"
        if self.cgroup:
            return f"process in cgroup {self.cgroup}"
        return f"process of unit {self.unit}" if self.unit else f"process of container {self.container}"


@dataclass(frozen=True, slots=True)
class AttachTarget:
    """``pid`` and ``started`` (clock ticks since boot) are those of the process that leads; ``name``: its name.  ``cgroup``:
    path below /sys/fs/cgroup whose processes all belong to it, "" = what the process started does."""

    pid: int
    started: int
    name: str
    cgroup: str = ""

    @property
    def instance(self) -> str:
        """Names this process among those that take its place."""
        return f"{self.name}-{self.pid}"

    def age_s(self) -> float:
        """Seconds since it started."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.started / os.sysconf("SC_CLK_TCK")

    def is_there(self) -> bool:
        """Whether the process runs, and is the same one."""
        status = status_of(self.pid)
        return status is not None and status.started == self.started and _condition(self.pid).state not in "ZX"

    def members(self) -> tuple[ProcessStatus, ...]:
        """All processes that belong to it now, the leading one first."""
        processes = all_processes()
        roots = {self.pid, *(_members_if_any(self.cgroup) if self.cgroup else ())}
        found = tree(roots, processes) if not self.cgroup else [processes[pid] for pid in sorted(roots) if pid in processes]
        return tuple(sorted(found, key=lambda status: (status.pid != self.pid, status.pid)))


def find_target(finder: TargetFinder) -> AttachTarget:
    """``CaptureError``, one line: there is no such process, no telling which it is, or it cannot be profiled."""
    _check_process_file_system()
    processes = all_processes()
    leader = _leader(finder, processes)
    if leader is None or leader.pid not in processes:
        raise CaptureError(f"there is no {finder}{longer_name_hint(finder.comm)}{_other_namespace()}")
    _check_condition(leader.pid)
    target = AttachTarget(leader.pid, leader.started, comm_of(leader.pid))
    if finder.cgroup:
        return replace(target, cgroup=finder.cgroup)
    return replace(target, cgroup=cgroup_of(leader.pid)) if finder.unit or finder.container else target


def readable_program(target: AttachTarget) -> Path | None:
    """The file that the process executes, whatever mount namespace it lives in; None when it may not be read."""
    path = Path("/proc", str(target.pid), "exe")
    try:
        with path.open("rb"):
            return path
    except OSError:
        return None


def recorded_path(program: Path) -> str:
    """Where the process sees the file of ``readable_program``; also of one that was replaced meanwhile."""
    return os.readlink(program).removesuffix(" (deleted)")


def check_access(target: AttachTarget) -> None:
    """``CaptureError`` when what is mapped into the process may not be read: its samples would have no names."""
    try:
        with Path("/proc", str(target.pid), "maps").open("rb") as maps:
            maps.read(1)
    except PermissionError:
        raise CaptureError(_no_access(target)) from None
    except OSError:
        raise CaptureError(f"process {target.pid} ({target.name}) ended while slotscope attached to it") from None


def foreign_root(pid: int) -> int:
    """A descriptor of the process's root directory if it may see other files than slotscope does, else -1.  It stays usable
    when the process has ended."""
    try:
        is_same = os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
        descriptor = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
    except OSError:
        return -1
    own, its = os.stat("/"), os.fstat(descriptor)
    if is_same and (own.st_dev, own.st_ino) == (its.st_dev, its.st_ino):
        os.close(descriptor)
        return -1
    return descriptor


def cgroup_of(pid: int) -> str:
    """Path below /sys/fs/cgroup of the cgroup that a process has for itself and what belongs to it; "" when it shares that of
    the whole system, or the cgroup is not seen here."""
    try:
        lines = Path("/proc", str(pid), "cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for hierarchy, controllers, path in (line.split(":", 2) for line in lines[::-1] if line.count(":") >= 2):
        if path == "/" or "/.." in path or (hierarchy != "0" and controllers not in ("name=systemd", "pids")):
            continue
        for mount in ("", "unified") if hierarchy == "0" else (controllers.removeprefix("name="),):
            found = f"{mount}{path}".strip("/")
            if pid in _members_if_any(found):
                return found
    return ""


def _leader(finder: TargetFinder, processes: Mapping[int, ProcessStatus]) -> ProcessStatus | None:
    if finder.pid:
        _refuse_thread(finder.pid)
        return processes.get(finder.pid)
    if finder.comm:
        return _named(finder, processes)
    if finder.cgroup:
        members = [processes[pid] for pid in cgroup_members(finder.cgroup) if pid in processes]
        return min(members, key=lambda status: (status.started, status.pid), default=None)
    found = unit_process(finder.unit) if finder.unit else _container_process(finder.container)
    return processes.get(found[0]) if found else None


def _named(finder: TargetFinder, processes: Mapping[int, ProcessStatus]) -> ProcessStatus | None:
    pattern = re.compile(finder.comm)
    named = {pid for pid in processes if pattern.fullmatch(comm_of(pid)) and not _is_excluded(pid, finder.exclude)}
    outermost = sorted(pid for pid in named if processes[pid].parent not in named)
    if len(outermost) > 1:
        shown = ", ".join(map(str, outermost[:_MOST_NAMED])) + (", ..." if len(outermost) > _MOST_NAMED else "")
        raise CaptureError(
            f"{len(outermost)} processes are named {finder.comm!r} ({shown}): choose one by --pid, or leave the others out "
            "with --exclude"
        )
    return processes[outermost[0]] if outermost else None


def _is_excluded(pid: int, exclude: Iterable[str]) -> bool:
    return any(text == str(pid) if text.isdecimal() else re.search(text, _command_line(pid)) for text in exclude)


def _command_line(pid: int) -> str:
    try:
        words = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode("utf-8", "replace") for word in words).rstrip()


def _refuse_thread(number: int) -> None:
    """Threads have entries below /proc that no listing shows."""
    try:
        status = Path("/proc", str(number), "status").read_text(errors="replace")
    except OSError:
        return
    match = re.search(r"^Tgid:\s*(\d+)$", status, re.MULTILINE)
    if match is not None and int(match[1]) != number:
        raise CaptureError(f"{number} is a thread of process {match[1]}: give --pid {match[1]}")


def _container_process(name: str) -> list[int]:
    """The main process, as docker or podman tell it; where neither knows, a process of the cgroup that has the ID in its
    name."""
    asked = []
    for program in _CONTAINER_PROGRAMS:
        command = (program, "inspect", "--format", "{{.State.Pid}}", "--", name)
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=CONTAINER_TIMEOUT_S
            )
        except FileNotFoundError:
            continue
        except OSError as error:
            asked.append(f"{program} cannot be run: {error.strerror}")
            continue
        except subprocess.TimeoutExpired:
            asked.append(f"{program} did not answer within {CONTAINER_TIMEOUT_S:.0f} s")
            continue
        text = done.stdout.decode("utf-8", "replace").strip()
        if done.returncode == 0 and text.isdigit():
            if int(text):
                return [int(text)]
            raise CaptureError(f"container {name} does not run")
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        asked.append(f"{program}: {lines[-1][:200] if lines else 'no answer'}")
    found = _by_container_id(name) if _CONTAINER_ID.fullmatch(name) else []
    if found:
        return found
    told = "; ".join(asked) or "neither docker nor podman is installed, and no cgroup has that ID in its name"
    raise CaptureError(f"container {name} is not found ({told}): give --cgroup, or --pid of its main process")


def _by_container_id(identifier: str) -> list[int]:
    for directory in sorted(CGROUPS.rglob(f"*{identifier}*")):
        if directory.is_dir():
            members = _members_if_any(str(directory.relative_to(CGROUPS)))
            statuses = [status for pid in members if (status := status_of(pid)) is not None]
            if statuses:
                return [min(statuses, key=lambda status: (status.started, status.pid)).pid]
    return []


def _members_if_any(cgroup: str) -> list[int]:
    try:
        return cgroup_members(cgroup)
    except CaptureError:
        return []


@dataclass(frozen=True, slots=True)
class _Condition:
    """``state``: the letter of proc(5), "X" when the process is gone."""

    state: str
    is_kernel_thread: bool


def _condition(pid: int) -> _Condition:
    try:
        stat = Path("/proc", str(pid), "stat").read_bytes()
    except OSError:
        return _Condition("X", False)
    fields = stat[stat.rindex(b")") + 2 :].split()
    state = fields[_STATE].decode()
    if state == "Z" and int(fields[_THREADS]) > 1:
        state = "S"  # its first thread ended, and the others run on
    return _Condition(state, bool(int(fields[_FLAGS]) & _KERNEL_THREAD))


def thread_starts(pid: int) -> list[int]:
    """When each thread of a process started, in clock ticks since boot."""
    starts = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                stat = Path(entry.path, "stat").read_bytes()
                starts.append(int(stat[stat.rindex(b")") + 2 :].split()[_STARTED]))
    return starts


def can_be_recorded(pid: int) -> bool:
    """Whether there is anything to record of the process: it runs, in user space too."""
    condition = _condition(pid)
    return condition.state not in "ZX" and not condition.is_kernel_thread


def _check_condition(pid: int) -> None:
    condition, name = _condition(pid), comm_of(pid)
    if condition.is_kernel_thread:
        raise CaptureError(f"process {pid} ({name}) is a kernel thread and has no program: choose a process")
    if condition.state in "ZX":
        raise CaptureError(f"process {pid} ({name}) has ended, and only waits for its parent to take note")


def _check_process_file_system() -> None:
    """perf looks processes up in /proc by their ID in slotscope's own PID namespace."""
    try:
        shown = os.readlink("/proc/self")
    except OSError:
        shown = ""
    if shown != str(os.getpid()):
        raise CaptureError(
            "/proc shows the processes of another PID namespace than slotscope's: mount one of its own "
            "(unshare --mount-proc), or run slotscope outside"
        )


def _other_namespace() -> str:
    try:
        is_inner = os.readlink("/proc/self/ns/pid") != _INITIAL_PID_NAMESPACE
    except OSError:
        return ""
    if not is_inner:
        return ""
    return " in this PID namespace (processes outside of it are not seen: run slotscope on the host, or with --pid=host)"


def _no_access(target: AttachTarget) -> str:
    try:
        owner = pwd.getpwuid(os.stat(f"/proc/{target.pid}").st_uid).pw_name
    except (OSError, KeyError):
        owner = "another user"
    return (
        f"process {target.pid} ({target.name}) belongs to {owner}: run slotscope as root or as {owner}, or with the "
        "capabilities CAP_PERFMON and CAP_SYS_PTRACE; kernel.perf_event_paranoid does not help for another user's process"
    )
