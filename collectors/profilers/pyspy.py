"""`py-spy record` attached to a running Python process: the argument list, the start, the end, and what its failures mean.

py-spy (https://github.com/benfred/py-spy, MIT licence) reads the interpreter's memory from outside.  What it counts are
moments of wall time in which a thread was not idle, never CPU time.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from collectors.importers.pyspy_speedscope import read_pyspy_speedscope
from collectors.importers.pyspy_tables import EVENT_NAME
from collectors.processes.guard import GroupGuard
from collectors.profilers.woken_threads import RunTimes, ran_between, run_times, without_woken_threads
from profiler.errors import CaptureError
from profiler.model.capture import Capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, PerfSettings

PROGRAM = "py-spy"
PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
DEFAULT_RATE_HZ = 100
START_S = 20.0
FINISH_S = 120.0
VERSION_S = 10.0
STOP_S = 5.0
_POLL_S = 0.02
_WOKEN_UNKNOWN = "sleeping threads that py-spy's pauses woke are not told from busy ones: nobody knows how long they ran"
_SAMPLING = "Sampling process"
_COUNTS = re.compile(r"Wrote .*Samples: \d+ Errors: (\d+)")
_EXITED = "Stopped sampling because process exited"
_ROUTINE_MESSAGE = re.compile(r"^(Sampling process|Stopped sampling because|Wrote |Visit https:|You can use the flamegraph)")


@dataclass(frozen=True, slots=True)
class PySpySettings:
    """``has_native``: also C, C++ and Rust frames.  ``follows_children``: also of processes that the target starts.
    ``pauses``: the target stands still while its stacks are read; without it a quarter of the stacks of a busy recursion were
    torn."""

    rate_hz: int = DEFAULT_RATE_HZ
    has_native: bool = False
    follows_children: bool = True
    pauses: bool = True


@dataclass(frozen=True, slots=True)
class PySpyEnd:
    """How a recording ended.  ``errors``: stacks that could not be read; ``has_exited``: the process ended first;
    ``messages``: lines of py-spy that are not routine."""

    errors: int
    has_exited: bool
    messages: tuple[str, ...]


def pyspy_path() -> str:
    """py-spy as it was installed with slotscope, else that of $PATH.  ``CaptureError`` when there is none."""
    installed = Path(sysconfig.get_path("scripts"), PROGRAM)
    found = str(installed) if os.access(installed, os.X_OK) else shutil.which(PROGRAM)
    if not found:
        raise CaptureError("py-spy is not installed: `pip install py-spy`")
    return found


def pyspy_version() -> str:
    """What `py-spy --version` prints, without the name: "0.4.3".  ``CaptureError`` when it cannot be run."""
    try:
        answer = subprocess.run(
            [pyspy_path(), "--version"], capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=VERSION_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CaptureError(f"py-spy does not run here: {error}") from None
    text = answer.stdout.decode("utf-8", "replace").strip()
    if answer.returncode or not text:
        raise CaptureError("py-spy does not run here: `py-spy --version` failed")
    return text.removeprefix(PROGRAM).strip()


def pyspy_arguments(program: str, settings: PySpySettings, pid: int, output: Path) -> list[str]:
    """The argument list for recording a process until it is stopped.

    Threads and processes are always told apart.  Idle threads are left out: py-spy's default.
    """
    arguments = [program, "record", "--pid", str(pid), "--rate", str(settings.rate_hz), "--format", "speedscope"]
    arguments += ["--threads", "--output", str(output)]
    arguments += ["--subprocesses"] if settings.follows_children else []
    arguments += ["--native"] if settings.has_native else []
    return arguments + ([] if settings.pauses else ["--nonblocking"])


@dataclass(frozen=True, slots=True)
class RunningPySpy:
    """A py-spy that was started.  ``messages``: what it prints.  ``version``: "0.4.3"."""

    process: subprocess.Popen[bytes]
    messages: IO[bytes]
    arguments: tuple[str, ...]
    version: str
    guard: GroupGuard | None


class PySpyRecorder:
    """One running `py-spy record`.  ``finish`` or ``abort`` must be called.

    A recording is held in memory by py-spy and read whole at its end (160 bytes a sample of 30 frames, 256 MB at most, and ten
    times as much memory while it is read): hours are recorded in segments.
    """

    def __init__(self, running: RunningPySpy, output: Path, settings: PySpySettings, pid: int) -> None:
        self.output = output
        self.settings = settings
        self.pid = pid
        self.perf = pyspy_perf_settings(settings, running.version, running.arguments)
        self._process = running.process
        self._messages = running.messages
        self._guard = running.guard
        self._descriptor = os.pidfd_open(running.process.pid)
        self._lines: list[str] = []
        self._failure: str | None = None
        self._before: RunTimes | None = None
        self._after: RunTimes | None = None

    @property
    def descriptor(self) -> int:
        """Readable when py-spy has ended; until ``end``, ``finish`` or ``abort``."""
        return self._descriptor

    @property
    def is_running(self) -> bool:
        """False when the target ended, or py-spy failed."""
        return self._process.poll() is None

    def wait(self, seconds: float) -> bool:
        """Waits so long, or until the target has ended; whether it still runs."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def stop(self) -> None:
        """Ends the recording of a process that goes on running; ``finish`` waits for the file."""
        if self.is_running:
            self._after = run_times(self.pid, self.settings.follows_children)
            self._process.send_signal(signal.SIGINT)

    def finish(self, info: CaptureInfo) -> Capture:
        """The capture, the target having ended or ``stop`` having been called; ``output`` is removed.

        ``info`` gets the settings of py-spy.  ``CaptureError`` when py-spy failed; ``FormatError`` when it wrote damage.
        """
        try:
            self.end()
            if self._failure:
                raise CaptureError(self._failure)
            with self.output.open("rb") as stream:
                capture = read_pyspy_speedscope(stream, str(self.output), replace(info, perf=self.perf))
        finally:
            self.output.unlink(missing_ok=True)
        if self._before is not None and self._after is not None:
            capture = without_woken_threads(capture, ran_between(self._before, self._after), self.settings.rate_hz)
            return _marked(capture, pyspy_end(self._lines))
        return _marked(capture, pyspy_end(self._lines), _WOKEN_UNKNOWN)

    def end(self) -> int:
        """Waits until py-spy has written its file and ended; the CPU time in ns that it has used.  ``finish`` tells whether it
        failed, and may then be called from another thread.  0 when it was called before."""
        if self._failure is not None:
            return 0
        before_ns = _children_ns()
        try:
            self._process.wait(FINISH_S)
        except subprocess.TimeoutExpired:
            self.abort()
            self._failure = f"py-spy did not finish its file within {FINISH_S:.0f} s"
            return _children_ns() - before_ns
        self._lines = self._close()
        is_written = not self._process.returncode and self.output.exists()
        self._failure = "" if is_written else explain_failure(self._lines, self.pid)
        return _children_ns() - before_ns

    def abort(self) -> None:
        """Ends py-spy now; what it wrote is not wanted.

        It is asked first, so that it lets the process go on before it ends.
        """
        if self.is_running:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._close()
        self.output.unlink(missing_ok=True)

    def wait_for_samples(self) -> bool:
        """Whether py-spy has found the interpreter and begun; False when it ended instead.  ``CaptureError``: neither."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            has_ended = not self.is_running
            if any(line.startswith(_SAMPLING) for line in _lines(self._messages)):
                self._before = run_times(self.pid, self.settings.follows_children)
                return True
            if has_ended:
                return False
            time.sleep(_POLL_S)
        raise CaptureError(f"py-spy found no interpreter in process {self.pid} within {START_S:.0f} s")

    def failure(self) -> str:
        """One line for why py-spy ended instead of beginning."""
        self.output.unlink(missing_ok=True)
        return explain_failure(self._close(), self.pid)

    def _close(self) -> list[str]:
        lines = [] if self._messages.closed else _lines(self._messages)
        self._messages.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            if self._guard is not None:
                self._guard.release(self._process.pid)
        return lines


def start_pyspy(
    settings: PySpySettings, pid: int, output: Path, version: str = "", guard: GroupGuard | None = None
) -> PySpyRecorder:
    """py-spy attached to ``pid``; returns when it samples.  ``output``: where it may write until ``finish``.  ``version``: of
    py-spy, "" = it is asked.  ``guard``: ends py-spy when slotscope is killed; it should ask with SIGINT, see ``abort``.

    ``CaptureError``: py-spy is missing, the process is not there, is not Python, of a version that this py-spy does not
    know, or may not be read; one line with the way out.
    """
    if not Path(f"/proc/{pid}").exists():
        raise CaptureError(f"there is no process {pid}")
    arguments = pyspy_arguments(pyspy_path(), settings, pid, output)
    version = version or pyspy_version()  # a failure afterwards would cost the recording
    messages = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by the recorder
    try:
        process = subprocess.Popen(
            arguments if guard is None else guard.listed(arguments),
            stdin=subprocess.DEVNULL if guard is None else guard.list_descriptor,
            stdout=messages,
            stderr=messages,
            start_new_session=True,  # the terminal's Ctrl-C is not for it: it is stopped in order
            env=dict(os.environ, LC_ALL="C", RUST_BACKTRACE="0"),
        )
    except OSError as error:
        messages.close()
        raise CaptureError(f"py-spy cannot be run: {error.strerror}") from None
    recorder = PySpyRecorder(RunningPySpy(process, messages, tuple(arguments), version, guard), output, settings, pid)
    try:
        has_begun = recorder.wait_for_samples()
    except BaseException:
        recorder.abort()
        raise
    if not has_begun:
        raise CaptureError(recorder.failure())
    return recorder


def explain_failure(lines: Sequence[str], pid: int) -> str:
    """One line for py-spy's complaint about process ``pid``, with the way out; ``lines`` of its output."""
    text = "\n".join(lines)
    if "ermission" in text or "not permitted" in text:
        return (
            f"py-spy may not read process {pid} (kernel.yama.ptrace_scope is {ptrace_scope()}): run as root or with "
            "CAP_SYS_PTRACE, or as the process's owner with `sudo sysctl kernel.yama.ptrace_scope=0`"
        )
    if found := re.search(r"Unsupported version of Python: ?(\S+)", text):
        return f"process {pid} is Python {found[1]}, which this py-spy does not know: `pip install --upgrade py-spy`"
    if "Failed to get process executable name" in text or "No such process" in text:
        return f"process {pid} has ended"
    if "Failed to find python version" in text or "No python processes found" in text:
        return f"process {pid} is not Python, or its interpreter is not known to py-spy: record native programs with perf"
    errors = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")]
    return f"py-spy could not record process {pid}: {(errors or list(lines) or ['it gave no reason'])[0]}"


def pyspy_end(lines: Sequence[str]) -> PySpyEnd:
    """What py-spy's own output says about a recording that it finished."""
    counts = [int(found[1]) for line in lines if (found := _COUNTS.search(line))]
    others = [line for line in lines if not _ROUTINE_MESSAGE.search(line)]
    return PySpyEnd(sum(counts), any(line.startswith(_EXITED) for line in lines), tuple(dict.fromkeys(others)))


def ptrace_scope() -> str:
    """The kernel's restriction on reading other processes of the same user: "0" = none; "unknown"."""
    try:
        return PTRACE_SCOPE.read_text().strip()
    except OSError:
        return "unknown"


def _lines(messages: IO[bytes]) -> list[str]:
    # Read by position: py-spy writes through the same open file.
    text = os.pread(messages.fileno(), 1 << 20, 0).decode("utf-8", "replace")
    return [line for each in re.split(r"[\r\n]+", text) if (line := each.strip().removeprefix(f"{PROGRAM}> "))]


def _children_ns() -> int:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)


def pyspy_perf_settings(settings: PySpySettings, version: str, command: tuple[str, ...] = ()) -> PerfSettings:
    """How py-spy records, as a capture tells it."""
    return PerfSettings(
        event=EVENT_NAME,
        frequency_hz=settings.rate_hz,
        call_graph="python+native" if settings.has_native else "python",
        call_graph_reason="read by py-spy from the interpreter's memory",
        perf_version=f"{PROGRAM} {version}",
        perf_command=command,
    )


def _marked(capture: Capture, end: PySpyEnd, *further: str) -> Capture:
    notes = [*capture.quality.notes, *further]
    notes += ["the process ended while it was recorded"] if end.has_exited else []
    notes += [f"py-spy: {line}" for line in end.messages]
    return replace(capture, quality=replace(capture.quality, lost_samples=end.errors, notes=tuple(notes)))
