"""What both forms of py-spy's output hold, into a capture: Python stacks of threads that were not idle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from collectors.importers.text_tables import SampleText, TextFacts, TextFrame, TextTables
from profiler.model.capture import Capture
from profiler.model.event import NON_IDLE_SAMPLES, Event
from profiler.model.quality import CaptureQuality
from profiler.model.run import CaptureInfo
from profiler.model.sample_table import SampleTable, StackState
from profiler.model.thread_table import ThreadTable

EVENT_NAME = "py-spy"
NO_CPU_TIME = "py-spy counts moments of wall time in which a thread was not idle: this is no CPU time"

_PYTHON_FILE = re.compile(r"\.pyw?$|^<")
_ADDRESS = re.compile(r"0x[0-9a-f]{1,16}")
_THREAD = re.compile(r"thread \((?:0x[0-9A-Fa-f]+|(?P<tid>\d+))\)(?:: (?P<name>.*))?", re.DOTALL)
_PROCESS = re.compile(r'process (?P<pid>\d+):"(?P<command>.*)"', re.DOTALL)
_LARGEST_NUMBER = 2**31 - 1
_LONGEST_NAME = 64
# A day of one busy thread at 100 Hz.  What has more samples keeps their numbers as weights.
_MOST_ROWS = 1 << 23


class PySpyFrame(NamedTuple):
    """``file`` as py-spy wrote it, a shared object for native code; ``line`` 0 = none."""

    name: str
    file: str
    line: int

    @property
    def is_python(self) -> bool:
        return _PYTHON_FILE.search(self.file) is not None


class PySpyThread(NamedTuple):
    """-1 = number not told; ``process``: name, "" = not told."""

    pid: int = -1
    process: str = ""
    tid: int = -1
    name: str = ""


def number_or_unknown(text: str | None) -> int:
    """A process or thread number, -1 for what is none."""
    return int(text) if text and len(text) <= 10 and int(text) <= _LARGEST_NUMBER else -1


def with_label(thread: PySpyThread, label: str) -> PySpyThread | None:
    """``thread`` with what a frame of py-spy's says that stands for a process or a thread; ``None`` for any other frame."""
    if found := _PROCESS.fullmatch(label):
        return thread._replace(pid=number_or_unknown(found["pid"]), process=process_name(found["command"]))
    if found := _THREAD.fullmatch(label):
        return thread._replace(tid=number_or_unknown(found["tid"]), name=found["name"] or "")
    return None


def process_name(command: str) -> str:
    """The program and its script or module of a command line, without directories and without arguments, which may hold
    secrets."""
    words = command.split()
    if not words:
        return ""
    name = words[0].rsplit("/", 1)[-1]
    if len(words) > 2 and words[1] == "-m":
        name += f" -m {words[2]}"
    elif len(words) > 1 and words[1].endswith((".py", ".pyw")):
        name += f" {words[1].rsplit('/', 1)[-1]}"
    return name[:_LONGEST_NAME]


def shown_name(frame: PySpyFrame) -> str:
    """The function with its file, as py-spy shows it: "work (prog.py)"; bare names such as <module> are in every file."""
    parts = frame.file.rsplit("/", 2)
    is_package = parts[-1] in ("__init__.py", "__main__.py") and len(parts) > 1
    return f"{frame.name} ({'/'.join(parts[-2:]) if is_package else parts[-1]})"


@dataclass(slots=True)
class PySpyTables:
    """``counts``: samples by (number of the thread, row of the stack).  ``native``: stacks with code that is not Python's,
    whose unwinding may have left frames out.  ``threads``: numbered in the order of their first sample."""

    tables: TextTables = field(default_factory=TextTables)
    threads: dict[tuple[int, int, str], int] = field(default_factory=dict)
    counts: dict[tuple[int, int], int] = field(default_factory=dict)
    native: set[int] = field(default_factory=set)
    processes: dict[int, str] = field(default_factory=dict)

    def thread(self, thread: PySpyThread) -> int:
        """Number of a thread."""
        if thread.process:
            self.processes[thread.pid] = thread.process
        return self.threads.setdefault((thread.pid, thread.tid, thread.name), len(self.threads))

    def stack(self, frames_root_first: Sequence[PySpyFrame]) -> int:
        """Row of a stack; one without frames, of a thread that was just beginning, gets one without a name."""
        frames = [self._frame(frame) for frame in frames_root_first]
        row = self.tables.stack(frames or [self.tables.frame(TextFrame("", 0, "", is_return_address=False))])
        if not frames or not all(frame.is_python for frame in frames_root_first):
            self.native.add(row)
        return row

    def add(self, thread: int, stack: int, count: int) -> None:
        self.counts[thread, stack] = self.counts.get((thread, stack), 0) + count

    def capture(self, name: str, info: CaptureInfo, rate_hz: int, notes: Sequence[str] = ()) -> Capture:
        """``rate_hz`` 0 = not known.  ``FormatError`` when there are more samples than sums can hold."""
        rows = self._thread_rows()
        for (thread, stack), count in self.counts.items():
            state = StackState.GAP_POSSIBLE if stack in self.native else StackState.COMPLETE
            self.tables.add(SampleText(0, rows[thread], -1, 0, stack, count, state))
        perf = replace(info.perf, event=EVENT_NAME, frequency_hz=rate_hz)
        events = (Event(EVENT_NAME, NON_IDLE_SAMPLES, rate_hz, 0),)
        names = {pid: self.tables.strings.number(self._process(pid)) for pid, _, _ in self.tables.thread_keys()}
        facts = TextFacts(replace(info, perf=perf), events, (NO_CPU_TIME, *notes), has_whole_stacks=False)
        capture = self.tables.capture(name, facts)
        return _one_row_per_sample(replace(capture, threads=_with_processes(capture.threads, names)))

    def _frame(self, frame: PySpyFrame) -> int:
        if frame.is_python or frame.line > 0:
            return self.tables.source_frame(frame.file, frame.line, shown_name(frame))
        if _ADDRESS.fullmatch(frame.name):
            return self.tables.frame(TextFrame(frame.file, int(frame.name, 16), "", is_return_address=False))
        return self.tables.frame(TextFrame(frame.file, 0, frame.name, is_return_address=False))

    def _thread_rows(self) -> list[int]:
        """Row of each thread.  py-spy does not find a thread's name in every sample: without one it has the name of the
        others."""
        names = {(pid, tid): name for pid, tid, name in reversed(self.threads) if name and tid >= 0}
        return [self.tables.thread(pid, tid, name or names.get((pid, tid), "")) for pid, tid, name in self.threads]

    def _process(self, pid: int) -> str:
        return self.processes.get(pid) or ("python" if pid < 0 else f"pid {pid}")


def _with_processes(threads: ThreadTable, names: dict[int, int]) -> ThreadTable:
    """A thread's name says nothing of its process here: the first thread of every process is called MainThread."""
    return replace(threads, process_name=np.array([names[pid] for pid in threads.pid.tolist()], np.int32))


def _one_row_per_sample(capture: Capture) -> Capture:
    samples = capture.samples
    if int(samples.weight.sum()) > _MOST_ROWS:
        notes = (*capture.quality.notes, "too many samples to keep each: each distinct stack of a thread counts as one")
        return replace(capture, quality=replace(capture.quality, notes=notes))
    rows = np.repeat(np.arange(len(samples)), samples.weight)
    repeated = SampleTable(
        samples.time_ns[rows],
        samples.thread[rows],
        samples.cpu[rows],
        samples.event[rows],
        samples.stack[rows],
        np.ones(len(rows), np.int64),
        samples.state[rows],
    )
    return replace(capture, samples=repeated, quality=_counted(capture.quality, repeated))


def _counted(quality: CaptureQuality, samples: SampleTable) -> CaptureQuality:
    states = np.bincount(samples.state, minlength=len(StackState)).tolist()
    return replace(
        quality, samples=len(samples), complete=states[StackState.COMPLETE], gap_possible=states[StackState.GAP_POSSIBLE]
    )
