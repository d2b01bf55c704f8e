"""One run of a program: held at a gate until the recorder is attached, then executed, waited for and measured.

The process waits before its exec (see ``gate``), so that a recorder can attach to it without missing anything and without
being its parent: ``wait4`` then gives the usage of the program (and of the children it waited for) alone.  What was used up to
the exec is taken off.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from collectors.processes import gate
from collectors.processes.guard import GroupGuard
from collectors.processes.process_output import exit_text, last_line, output_tail
from collectors.processes.process_status import has_running
from collectors.processes.start_moment import StartMoment
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import RunOutcome

TERMINATE_GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """``arguments``: program and arguments; the program is looked up in PATH.  ``output``: file that takes the program's
    standard output and standard error.  ``cpus``: CPUs it may run on, empty = all.  ``environment``: added to slotscope's own.
    ``timeout_s``: the program is ended when it takes longer, 0 = it may take any time.  ``guard``: ends the program with its
    children when slotscope is killed; without one that is the end of the program alone.  ``moment``: when it goes off, None =
    at once."""

    arguments: tuple[str, ...]
    output: Path
    cpus: frozenset[int] = frozenset()
    environment: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 0.0
    guard: GroupGuard | None = None
    moment: StartMoment | None = None


class Recorder(Protocol):
    """What is attached to the waiting child."""

    def abort(self) -> None: ...


RecorderType = TypeVar("RecorderType", bound=Recorder)


def resolve_program(program: str) -> Path:
    """The file that executing ``program`` runs.  ``CaptureError``: there is none, or it may not be executed."""
    found = shutil.which(program)
    if found is not None:
        return Path(found)
    path = Path(program)
    if "/" not in program:
        raise CaptureError(f"{program}: not found in PATH")
    if not path.exists():
        raise CaptureError(f"{program}: no such file")
    reason = "is a directory" if path.is_dir() else f"not executable: `chmod +x {program}`, or put its interpreter first"
    raise CaptureError(f"{program}: {reason}")


def launch(request: LaunchRequest) -> RunOutcome:
    """Runs the program without a recorder; see ``launch_recorded``."""
    with _Gate(request) as gate:
        return gate.run()


def launch_recorded(request: LaunchRequest, attach: Callable[[int], RecorderType]) -> tuple[RunOutcome, RecorderType]:
    """Runs the program with a recorder attached to its process before the first instruction.

    The outcome's ``failure`` says when the program did not exit with 0.  ``attach`` gets the process ID; the recorder it gives
    is to be finished by the caller.  ``CaptureError``: not executable, or from ``attach``.  On any exception, Ctrl-C included,
    the program's process group and the recorder are ended first.
    """
    with _Gate(request) as gate:
        recorder = attach(gate.pid)
        try:
            return gate.run(), recorder
        except BaseException:
            try:
                gate.kill()
            finally:
                recorder.abort()
            raise


@dataclass(frozen=True, slots=True)
class _BeforeExec:
    """The child's clock and usage just before its exec."""

    monotonic_ns: int
    user_s: float
    system_s: float
    minor_faults: int
    major_faults: int
    voluntary_switches: int
    involuntary_switches: int


class _Gate:
    """A process that waits for the word to become the program; a context manager that leaves none behind."""

    def __init__(self, request: LaunchRequest) -> None:
        self._request = request
        self._program = resolve_program(request.arguments[0])
        self.pid = 0
        self._is_reaped = False

    def __enter__(self) -> _Gate:
        gate_read, self._gate_write = os.pipe()
        self._report_read, report_write = os.pipe()
        cpus = ",".join(str(cpu) for cpu in sorted(self._request.cpus))
        descriptors = (str(gate_read), str(report_write))
        waiting = [sys.executable, "-I", "-S", gate.__file__, *descriptors, str(os.getpid()), cpus, str(self._program)]
        try:
            with self._request.output.open("ab") as output:
                os.ftruncate(output.fileno(), 0)
                # A session of its own: the terminal's Ctrl-C reaches slotscope, which ends the program's whole group.
                self._process = subprocess.Popen(
                    [*waiting, *self._request.arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(gate_read, report_write),
                    start_new_session=True,
                )
        except BaseException:
            os.close(self._gate_write)
            os.close(self._report_read)
            raise
        finally:
            os.close(gate_read)
            os.close(report_write)
        self.pid = self._process.pid
        # Until the gate opens it ends by itself when slotscope does.
        if self._request.guard is not None:
            self._request.guard.watch(self.pid)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_reaped:
            self.kill()
        if self._request.guard is not None:
            self._request.guard.release(self.pid)
        self._close_gate()
        os.close(self._report_read)

    def run(self) -> RunOutcome:
        """Opens the gate, when its moment has come, and waits for the program's end."""
        moment = self._request.moment
        if moment is not None:
            moment.wait()
        with contextlib.suppress(BrokenPipeError):  # the report says why
            _write_all(self._gate_write, gate.pack_environment(self._environment()))
        self._close_gate()
        before = self._read_report()
        if moment is not None:
            moment.passed(before.monotonic_ns)
        if self._request.timeout_s and not self._ends_within(self._request.timeout_s):
            self.kill()
            failure = f"timed out after {self._request.timeout_s:g} s"
            wall_ns = time.monotonic_ns() - before.monotonic_ns
            return RunOutcome(wall_ns=wall_ns, failure=failure, output_tail=output_tail(self._request.output))
        _, status, usage = os.wait4(self.pid, 0)
        ended_ns = time.monotonic_ns()
        self._reaped()
        return _outcome(status, usage, before, ended_ns, output_tail(self._request.output))

    def _environment(self) -> dict[bytes, bytes]:
        added = {os.fsencode(name): os.fsencode(value) for name, value in self._request.environment}
        return dict(os.environb) | added

    def _ends_within(self, seconds: float) -> bool:
        """Without reaping the program: its usage is still to be asked for."""
        descriptor = os.pidfd_open(self.pid)
        try:
            ready, _, _ = select.select([descriptor], [], [], seconds)
        finally:
            os.close(descriptor)
        return bool(ready)

    def _close_gate(self) -> None:
        if self._gate_write >= 0:
            os.close(self._gate_write)
            self._gate_write = -1

    def _read_report(self) -> _BeforeExec:
        """Returns when the exec succeeded: that closes the other end of the pipe."""
        data = b""
        while chunk := os.read(self._report_read, 4096):
            data += chunk
        if len(data) == gate.BEFORE_EXEC.size:
            return _BeforeExec(*gate.BEFORE_EXEC.unpack(data))
        name = self._request.arguments[0]
        if len(data) != gate.BEFORE_EXEC.size + gate.ERRNO.size:
            reason = last_line(output_tail(self._request.output)) or "no reason given"
            raise CaptureError(f"{name}: could not be prepared for its start: {reason}")
        (number,) = gate.ERRNO.unpack_from(data, gate.BEFORE_EXEC.size)
        raise CaptureError(f"{name}: cannot be executed: {os.strerror(number)}")

    def kill(self) -> None:
        """Ends the program and everything in its process group: politely, then for certain."""
        if self._is_reaped:
            return
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + TERMINATE_GRACE_S
        try:
            while time.monotonic() < deadline and not self._reap(os.WNOHANG):
                time.sleep(0.01)
        finally:  # a second Ctrl-C shortens the wait, and must not leave the group behind
            self._signal(signal.SIGKILL)
        if not self._is_reaped:
            self._reap(0)
        deadline = time.monotonic() + TERMINATE_GRACE_S
        while time.monotonic() < deadline and has_running(self.pid):
            time.sleep(0.005)

    def _reap(self, options: int) -> bool:
        pid, _ = os.waitpid(self.pid, options)
        if pid == self.pid:
            self._reaped()
        return self._is_reaped

    def _reaped(self) -> None:
        self._is_reaped = True
        self._process.returncode = 0  # waited for here, not by the Popen object

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        if not self._is_reaped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _outcome(status: int, usage: resource.struct_rusage, before: _BeforeExec, ended_ns: int, output_tail: str) -> RunOutcome:
    exit_code = os.waitstatus_to_exitcode(status)
    return RunOutcome(
        exit_code=exit_code,
        wall_ns=ended_ns - before.monotonic_ns,
        user_ns=max(0, round((usage.ru_utime - before.user_s) * 1e9)),
        system_ns=max(0, round((usage.ru_stime - before.system_s) * 1e9)),
        voluntary_switches=max(0, usage.ru_nvcsw - before.voluntary_switches),
        involuntary_switches=max(0, usage.ru_nivcsw - before.involuntary_switches),
        minor_faults=max(0, usage.ru_minflt - before.minor_faults),
        major_faults=max(0, usage.ru_majflt - before.major_faults),
        failure=exit_text(exit_code) if exit_code else "",
        output_tail=output_tail,
    )
