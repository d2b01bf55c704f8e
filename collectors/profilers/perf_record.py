"""`perf record` attached to a waiting or a running process: the argument list, the start, the end, and what its failures mean.

perf is never the program's parent, so that the program's resource usage is its own.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from collectors.profilers.perf_control import ACKNOWLEDGE_S, ControlDescriptors, perf_not_runnable, start_controlled
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import PerfSettings

FINISH_ALONE_S = 3.0
FINISH_ASKED_S = 120.0
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
# Stack dumps come at dump size x rate x CPUs; perf's own 512 KiB a CPU hold 16 ms of that at the default settings.
_DUMP_BUFFER = "4M"
_ROUTINE_MESSAGE = re.compile(
    r"\[ perf record: (Woken up|Captured and wrote)|^Events (en|dis)abled|^Couldn't synthesize|^Lowering default frequency rate"
)


@dataclass(frozen=True, slots=True)
class PerfEnd:
    """How a recording ended.  ``failure`` is empty when the file can be trusted; ``messages`` are the lines of perf's standard
    error that are not routine."""

    failure: str
    messages: tuple[str, ...]


def perf_arguments(
    settings: PerfSettings,
    pids: Sequence[int],
    output: Path,
    control: ControlDescriptors,
    large_buffers: bool,
    starts_disabled: bool = True,
) -> list[str]:
    """The argument list for recording processes and their future threads and children.

    ``-N`` keeps perf from copying binaries into its cache, ``-D -1`` starts with events disabled; the others have the time of
    ``time.monotonic_ns``.  ``large_buffers``: may lock more memory than an ordinary user (used for stack dumps only).
    """
    rate = ["-c", str(settings.period)] if settings.period else ["-F", str(settings.frequency_hz)]
    arguments = ["perf", "record", "-N", "-e", settings.event, *rate, "-o", str(output)]
    arguments += ["-p", ",".join(map(str, pids))]
    if settings.call_graph == "dwarf":
        arguments += ["--call-graph", f"dwarf,{settings.dump_bytes}"]
        arguments += ["-m", _DUMP_BUFFER] if large_buffers else []
    elif settings.call_graph != "none":
        arguments += ["--call-graph", settings.call_graph]
    arguments += ["-D", "-1"] if starts_disabled else ["-k", "CLOCK_MONOTONIC"]
    return [*arguments, *control.option]


class PerfRecorder:
    """One running `perf record`.  ``finish`` or ``abort`` must be called."""

    def __init__(self, process: subprocess.Popen[bytes], messages: IO[bytes], control: int, arguments: Sequence[str]) -> None:
        self.arguments = tuple(arguments)
        self._process = process
        self._messages = messages
        self._control = control
        self._was_asked = False

    def stop(self) -> None:
        """Ends the recording of processes that go on running; ``finish`` waits for the file."""
        self._was_asked = True
        self._process.send_signal(signal.SIGINT)

    def finish(self) -> PerfEnd:
        """Waits for perf to write the file out, the program having ended or ``stop`` having been called.

        perf ends with the last process it follows; when the program left one behind, perf is asked to stop.
        """
        try:
            self._process.wait(0 if self._was_asked else FINISH_ALONE_S)
        except subprocess.TimeoutExpired:
            if not self._was_asked:
                self.stop()
        try:
            status = self._process.wait(FINISH_ASKED_S)
        except subprocess.TimeoutExpired:
            self.abort()
            return PerfEnd(f"perf did not finish its file within {FINISH_ASKED_S:.0f} s", ())
        lines = self._close()
        messages = tuple(line for line in lines if not _ROUTINE_MESSAGE.search(line))
        if status == 0 or (self._was_asked and status == -signal.SIGINT):
            return PerfEnd("", messages)
        return PerfEnd(f"perf ended with status {status}: {messages[-1] if messages else 'no message'}", messages)

    def abort(self) -> None:
        """Ends perf now; what it wrote is not wanted."""
        self._process.kill()
        self._process.wait()
        self._close()

    def messages(self) -> list[str]:
        """What perf, which has ended, printed; for a recorder whose perf never began."""
        return self._close()

    def _close(self) -> list[str]:
        if self._messages.closed:
            return []
        os.close(self._control)
        self._messages.seek(0)
        text = self._messages.read().decode("utf-8", "replace")
        self._messages.close()
        return [line.strip() for line in text.splitlines() if line.strip()]


def start_recording(settings: PerfSettings, pid: int, output: Path, also: Sequence[int] = ()) -> PerfRecorder:
    """perf attached to ``pid``, recording into ``output``; returns when its events are enabled.  ``also``: other processes that
    run already, such as the program's children.

    ``CaptureError``: perf is missing, may not record here, is too old, or refuses the event; one line with the way out.
    """
    messages = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by the recorder
    is_root = os.geteuid() == 0
    try:
        perf = start_controlled(
            lambda control: perf_arguments(settings, (pid, *also), output, control, large_buffers=is_root), messages
        )
    except BaseException:
        messages.close()
        raise
    recorder = PerfRecorder(perf.process, messages, perf.control, perf.arguments)
    if not perf.is_enabled:
        raise CaptureError(explain_failure(recorder.messages(), settings))
    return recorder


def explain_failure(lines: Sequence[str], settings: PerfSettings) -> str:
    """One line for perf's complaint, with the way out; ``lines`` of its standard error."""
    text = "\n".join(lines)
    if re.search(r"unknown option.*control|unknown option.*-D|expects an integer", text, re.IGNORECASE):
        return "this perf is too old for --control: version 5.10 or later is needed"
    if re.search(r"paranoid|permission|not permitted|Access to performance monitoring|EACCES|EPERM", text, re.IGNORECASE):
        return (
            f"perf may not record here (kernel.perf_event_paranoid is {paranoid_level()}): run "
            "`sudo sysctl kernel.perf_event_paranoid=1`, or give perf the capability: "
            f"`sudo setcap cap_perfmon+ep {shutil.which('perf') or '$(command -v perf)'}`"
        )
    if re.search(r"event syntax error|Cannot find PMU|not supported|No such (device|file)|unable to find event", text):
        return f"perf cannot record event {settings.event!r} here ({_first_fact(lines)}); `perf list` names the events"
    return f"perf could not start recording: {_first_fact(lines)}"


def _first_fact(lines: Sequence[str]) -> str:
    facts = [line for line in lines if line.strip(" ^\\_/|-") and not line.startswith(("Error:", "Usage:", "Run 'perf"))]
    return facts[0] if facts else "it gave no reason"


def paranoid_level() -> str:
    """kernel.perf_event_paranoid, "unknown" when it cannot be read."""
    try:
        return _PARANOID.read_text().strip()
    except OSError:
        return "unknown"


def perf_version() -> str:
    """What `perf version` prints, without its first words: "6.1.187".  ``CaptureError`` when perf cannot be run."""
    try:
        answer = subprocess.run(
            ["perf", "version"], capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=ACKNOWLEDGE_S
        )
    except OSError as error:
        raise CaptureError(perf_not_runnable(error)) from None
    except subprocess.TimeoutExpired:
        raise CaptureError(f"perf does not run here: `perf version` did not end within {ACKNOWLEDGE_S:.0f} s") from None
    text = answer.stdout.decode("utf-8", "replace").strip()
    if answer.returncode or not text:
        reason = answer.stderr.decode("utf-8", "replace").strip().splitlines()
        raise CaptureError(f"perf does not run here: {reason[0] if reason else 'no message'}")
    return text.removeprefix("perf version").strip()
