"""One run of a program: held at a gate until the recorder is attached, then executed, waited for and measured.

The child waits before its exec, so that a recorder can attach to it without missing anything and without being its parent:
``wait4`` then gives the usage of the program (and of the children it waited for) alone.  What the child used up to the exec
is taken off.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import struct
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

from profiler.errors import CaptureError
from profiler.model.run import RunOutcome

OUTPUT_TAIL_BYTES = 16 * 1024
TERMINATE_GRACE_S = 2.0
_PR_SET_PDEATHSIG = 1
_GO = b"g"
_OWN_EXIT = 127
# Child to parent before the exec: monotonic ns, user s, system s, minor and major faults, voluntary and involuntary switches.
_BEFORE_EXEC = struct.Struct("<qddqqqq")
_ERRNO = struct.Struct("<i")


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """``arguments``: program and arguments; the program is looked up in PATH.  ``output``: file that takes the program's
    standard output and standard error.  ``cpus``: CPUs it may run on, empty = all."""

    arguments: tuple[str, ...]
    output: Path
    cpus: frozenset[int] = frozenset()


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
            gate.kill()
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
    """A forked child that waits for the word to execute; a context manager that leaves no child behind."""

    def __init__(self, request: LaunchRequest) -> None:
        self._request = request
        self._program = resolve_program(request.arguments[0])
        self.pid = 0
        self._is_reaped = False

    def __enter__(self) -> _Gate:
        request = self._request
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        output = os.open(request.output, flags, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        gate_read, self._gate_write = os.pipe()
        self._report_read, report_write = os.pipe()
        child = _Child(self._program, request, (nothing, output, output), gate_read, report_write)
        parent = os.getpid()
        libc = ctypes.CDLL(None)
        with warnings.catch_warnings():
            # The child of a multi-threaded parent may only make simple calls before its exec, and does.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            os.close(self._gate_write)
            child.wait_and_execute(parent, libc)
        for descriptor in (output, nothing, gate_read, report_write):
            os.close(descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_reaped:
            self.kill()
        os.close(self._gate_write)
        os.close(self._report_read)

    def run(self) -> RunOutcome:
        """Opens the gate and waits for the program's end."""
        os.write(self._gate_write, _GO)
        before = self._read_report()
        _, status, usage = os.wait4(self.pid, 0)
        ended_ns = time.monotonic_ns()
        self._is_reaped = True
        return _outcome(status, usage, before, ended_ns, _output_tail(self._request.output))

    def _read_report(self) -> _BeforeExec:
        """Returns when the exec succeeded: that closes the child's end of the pipe."""
        data = b""
        while chunk := os.read(self._report_read, 4096):
            data += chunk
        if len(data) == _BEFORE_EXEC.size:
            return _BeforeExec(*_BEFORE_EXEC.unpack(data))
        name = self._request.arguments[0]
        if len(data) != _BEFORE_EXEC.size + _ERRNO.size:
            raise CaptureError(f"{name}: ended before it was executed (is a CPU of --cpus missing?)")
        (number,) = _ERRNO.unpack_from(data, _BEFORE_EXEC.size)
        raise CaptureError(f"{name}: cannot be executed: {os.strerror(number)}")

    def kill(self) -> None:
        """Ends the program and everything in its process group: politely, then for certain."""
        if self._is_reaped:
            return
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + TERMINATE_GRACE_S
        while time.monotonic() < deadline and not self._reap(os.WNOHANG):
            time.sleep(0.01)
        self._signal(signal.SIGKILL)
        if not self._is_reaped:
            self._reap(0)

    def _reap(self, options: int) -> bool:
        pid, _ = os.waitpid(self.pid, options)
        self._is_reaped = pid == self.pid
        return self._is_reaped

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        if not self._is_reaped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


@dataclass(frozen=True, slots=True)
class _Child:
    """What the forked child does; ``descriptors`` become its standard input, output and error."""

    program: Path
    request: LaunchRequest
    descriptors: tuple[int, int, int]
    gate_read: int
    report_write: int

    def wait_and_execute(self, parent: int, libc: ctypes.CDLL) -> NoReturn:
        try:
            os.setsid()
            # Dies with slotscope, even when that is killed; the check closes the race with a parent already gone.
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(_OWN_EXIT)
            if self.request.cpus:
                os.sched_setaffinity(0, self.request.cpus)
            for target, descriptor in enumerate(self.descriptors):
                os.dup2(descriptor, target)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and an exec would hand that on
                signal.signal(number, signal.SIG_DFL)
            if os.read(self.gate_read, 1) == _GO:
                self._execute()
        finally:
            os._exit(_OWN_EXIT)

    def _execute(self) -> None:
        os.closerange(3, self.report_write)
        os.closerange(self.report_write + 1, os.sysconf("SC_OPEN_MAX"))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        faults = (usage.ru_minflt, usage.ru_majflt, usage.ru_nvcsw, usage.ru_nivcsw)
        os.write(self.report_write, _BEFORE_EXEC.pack(time.monotonic_ns(), usage.ru_utime, usage.ru_stime, *faults))
        try:
            os.execv(self.program, self.request.arguments)
        except OSError as error:
            os.write(self.report_write, _ERRNO.pack(error.errno or 0))


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
        failure=_failure(exit_code),
        output_tail=output_tail,
    )


def _failure(exit_code: int) -> str:
    if exit_code == 0:
        return ""
    if exit_code > 0:
        return f"exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"killed by {name}"


def _output_tail(output: Path) -> str:
    with output.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - OUTPUT_TAIL_BYTES))
        return stream.read(OUTPUT_TAIL_BYTES).decode("utf-8", "replace")
