"""What a profiler is attached to: one process that leads, found in one of several ways, and everything that belongs to it.

To a process belongs what it started; to a cgroup, a systemd unit or a container all processes of the cgroup.
"""

from __future__ import annotations

import os
import pwd
import time
from dataclasses import replace
from pathlib import Path

from collectors.processes.process_status import ProcessStatus, all_processes, comm_of, status_of, tree
from collectors.targets.target_finder import TargetFinder, cgroup_members_if_any, found_processes, longer_name_hint
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass

_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of linux/proc_ns.h


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
        return status is not None and status.started == self.started and not status.has_ended

    def is_stopped(self) -> bool:
        """Whether it stands still, by a signal or a debugger."""
        status = status_of(self.pid)
        return status is not None and status.started == self.started and status.is_stopped

    def members(self) -> tuple[ProcessStatus, ...]:
        """All processes that belong to it now, the leading one first."""
        processes = all_processes()
        roots = {self.pid, *(cgroup_members_if_any(self.cgroup) if self.cgroup else ())}
        found = tree(roots, processes) if not self.cgroup else [processes[pid] for pid in sorted(roots) if pid in processes]
        return tuple(sorted(found, key=lambda status: (status.pid != self.pid, status.pid)))


def find_target(finder: TargetFinder) -> AttachTarget:
    """``CaptureError``, one line: there is no such process, no telling which it is, or it cannot be profiled."""
    _check_process_file_system()
    processes = all_processes()
    found = found_processes(finder, processes)
    if not found:
        raise CaptureError(f"there is no {finder}{longer_name_hint(finder.comm)}{_other_namespace()}")
    leader = min(found, key=lambda status: (status.started, status.pid))
    _check_condition(leader)
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
            if pid in cgroup_members_if_any(found):
                return found
    return ""


def _check_condition(leader: ProcessStatus) -> None:
    pid, name = leader.pid, comm_of(leader.pid)
    if leader.is_kernel_thread:
        raise CaptureError(f"process {pid} ({name}) is a kernel thread and has no program: choose a process")
    if leader.has_ended:
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
