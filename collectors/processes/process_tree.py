"""A command with everything it starts: how long it took, how much CPU time and memory all of it used together."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

from collectors.processes.guard import GroupGuard
from collectors.processes.process_status import all_processes
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass

POLL_S = 0.02
_TERMINATE_GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class TreeCommand:
    """``environment``: added to slotscope's own.  ``output``: file that takes what it prints.  ``timeout_s``: 0 = none.
    ``held``: descriptors, as of locks, that stay open until the command has ended, even when slotscope is killed before."""

    arguments: tuple[str, ...]
    directory: Path
    output: Path
    environment: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 0.0
    held: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TreeUsage:
    """``cpu_ns``: user and system time of the command and of all descendants that were waited for.  ``peak_bytes``: the largest
    memory that all its processes had at one time, looked at every ``POLL_S``; pages that they share count once; 0 for a command
    that ended before the first look."""

    exit_code: int
    wall_ns: int
    cpu_ns: int
    peak_bytes: int
    timed_out: bool = False


def run_tree(command: TreeCommand) -> TreeUsage:
    """Runs the command in a session of its own and waits for it.

    ``CaptureError`` when it cannot be started.  On any exception, Ctrl-C included, its whole process group is ended first, and
    so it is when slotscope is killed.
    """
    with GroupGuard(command.held) as guard:
        started_ns = time.monotonic_ns()
        process = _start(command, guard)
        try:
            peak_bytes, timed_out = _watch(process.pid, command.timeout_s)
            if timed_out:
                _end_group(process.pid)
            _, status, usage = os.wait4(process.pid, 0)
            ended_ns = time.monotonic_ns()
        except BaseException:
            _end_group(process.pid)
            process.wait()
            raise
        guard.release(process.pid)
    process.returncode = os.waitstatus_to_exitcode(status)
    return TreeUsage(
        exit_code=process.returncode,
        wall_ns=ended_ns - started_ns,
        cpu_ns=round((usage.ru_utime + usage.ru_stime) * 1e9),
        # Not the kernel's maximum: that holds the memory of slotscope, from between the fork and the exec.
        peak_bytes=peak_bytes,
        timed_out=timed_out,
    )


def _start(command: TreeCommand, guard: GroupGuard) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **dict(command.environment)}
    try:
        _check_executable(command.arguments[0], command.directory, environment.get("PATH"))
        with command.output.open("wb") as output:
            return subprocess.Popen(
                guard.listed(command.arguments),
                cwd=command.directory,
                env=environment,
                stdin=guard.list_descriptor,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        raise CaptureError(f"{command.arguments[0]}: cannot be run in {command.directory}: {error.strerror}") from None


def _check_executable(program: str, directory: Path, search_path: str | None) -> None:
    """``OSError`` as an exec in the directory would have it."""
    path = directory / program if "/" in program else shutil.which(program, path=search_path)
    if path is None or not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _watch(pid: int, timeout_s: float) -> tuple[int, bool]:
    """(peak memory, whether the time ran out) until the process has ended, which is not reaped."""
    peak, deadline = 0, time.monotonic() + timeout_s if timeout_s else float("inf")
    descriptor = os.pidfd_open(pid)
    try:
        while not select.select([descriptor], [], [], POLL_S)[0]:
            peak = max(peak, session_bytes(pid))
            if time.monotonic() > deadline:
                return peak, True
    finally:
        os.close(descriptor)
    return peak, False


def session_bytes(session: int) -> int:
    """Memory of all processes of a session, in which every shared page counts once over its sharers."""
    return sum(_proportional_bytes(status.pid) for status in all_processes().values() if status.session == session)


def _proportional_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path("/proc", str(pid), "smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _end_group(pid: int) -> None:
    """Politely, then for certain."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)
        deadline = time.monotonic() + _TERMINATE_GRACE_S
        descriptor = os.pidfd_open(pid)
        try:
            select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        finally:
            os.close(descriptor)
        os.killpg(pid, signal.SIGKILL)
