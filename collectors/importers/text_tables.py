"""The tables of a capture while a text is read."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np

from collectors.importers.text_dsos import TextDsos
from collectors.importers.text_threads import with_process_names
from collectors.ingest.thread_names import StringTable
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.dso import DsoKind
from profiler.model.event import Event
from profiler.model.frame_table import FrameTable
from profiler.model.quality import CaptureQuality
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo
from profiler.model.sample_table import SampleTable, StackState
from profiler.model.stack_table import StackTable

SAMPLES = "samples"
"""The unit of events whose weight the text does not tell."""

_LARGEST_TOTAL = 2.0**62


class TextFrame(NamedTuple):
    """One frame: ``symbol`` "" = no name; ``dso`` as printed; ``address`` 0 where none is."""

    dso: str
    address: int
    symbol: str
    is_return_address: bool


@dataclass(slots=True)
class _SampleColumns:
    time_ns: array[int] = field(default_factory=lambda: array("Q"))
    thread: array[int] = field(default_factory=lambda: array("i"))
    cpu: array[int] = field(default_factory=lambda: array("h"))
    event: array[int] = field(default_factory=lambda: array("h"))
    stack: array[int] = field(default_factory=lambda: array("i"))
    weight: array[int] = field(default_factory=lambda: array("q"))
    state: array[int] = field(default_factory=lambda: array("B"))


class SampleText(NamedTuple):
    """One sample; ``thread``, ``event`` and ``stack`` are rows of the tables."""

    time_ns: int
    thread: int
    cpu: int
    event: int
    stack: int
    weight: int
    state: StackState


@dataclass(frozen=True, slots=True)
class TextFacts:
    """What is known when a text has been read.  ``has_whole_stacks``: they were unwound by DWARF, so one that reaches a thread
    entry has every frame; ``notes``: one line each."""

    info: CaptureInfo
    events: tuple[Event, ...]
    notes: tuple[str, ...]
    has_whole_stacks: bool


class TextTables:
    """Rows are made when first asked for, in the order of the text."""

    def __init__(self) -> None:
        self.strings = StringTable()
        self.dsos = TextDsos()
        self._samples = _SampleColumns()
        self._frames: dict[tuple[int, int, bool, int], int] = {}
        self._nodes: dict[int, int] = {}
        self._threads: dict[tuple[int, int, str], int] = {}

    def __len__(self) -> int:
        return len(self._samples.weight)

    def frame(self, frame: TextFrame) -> int:
        """Row of a frame."""
        dso = self.dsos.row(frame.dso, frame.address, bool(frame.symbol))
        return self._frame_row(dso, frame.address, frame.is_return_address, frame.symbol)

    def source_frame(self, path: str, line: int, symbol: str) -> int:
        """Row of a frame of interpreted code; ``line`` 0 = unknown."""
        return self._frame_row(self.dsos.source_row(path), line, False, symbol)

    def _frame_row(self, dso: int, offset: int, is_return_address: bool, symbol: str) -> int:
        key = (dso, offset, is_return_address, self.strings.number(symbol) if symbol else -1)
        return self._frames.setdefault(key, len(self._frames))

    def stack(self, frames_root_first: Sequence[int]) -> int:
        """Row of a stack; the frames are rows of the frame table, at least one."""
        nodes, node = self._nodes, -1
        for frame in frames_root_first:
            node = nodes.setdefault((node + 1) << 32 | frame, len(nodes))
        return node

    def thread(self, pid: int, tid: int, name: str) -> int:
        """Row of a thread under this name; -1 = number unknown."""
        return self._threads.setdefault((pid, tid, name), len(self._threads))

    def thread_keys(self) -> tuple[tuple[int, int, str], ...]:
        """(pid, tid, name) of every row."""
        return tuple(self._threads)

    def add(self, sample: SampleText) -> None:
        columns = self._samples
        columns.time_ns.append(sample.time_ns)
        columns.thread.append(sample.thread)
        columns.cpu.append(sample.cpu)
        columns.event.append(sample.event)
        columns.stack.append(sample.stack)
        columns.weight.append(sample.weight)
        columns.state.append(sample.state)

    def capture(self, name: str, facts: TextFacts) -> Capture:
        """Everything that was added, samples in the order of time; samples of events whose unit is "samples" weigh 1.

        ``FormatError`` when weights are too large for sums.
        """
        names = [(pid, tid, self.strings.number(name)) for pid, tid, name in self._threads]
        threads, samples = with_process_names(names, self._sample_table(name, facts))
        frames = self._frame_table()
        return Capture(
            info=facts.info,
            quality=self._quality(samples, frames, facts.notes),
            strings=self.strings.strings(),
            dsos=tuple(self.dsos.rows),
            frames=frames,
            stacks=self._stack_table(),
            threads=threads,
            samples=samples,
            events=facts.events,
        )

    def _sample_table(self, name: str, facts: TextFacts) -> SampleTable:
        columns = self._samples
        time_ns, weight = np.array(columns.time_ns, np.uint64), np.array(columns.weight, np.int64)
        event = np.array(columns.event, np.int16)
        weight[np.array([each.unit == SAMPLES for each in facts.events] or [False], np.bool_)[event]] = 1
        if float(weight.sum(dtype=np.float64)) >= _LARGEST_TOTAL:
            raise FormatError(name, "the weights are too large for any sum over samples: the text is damaged")
        state = np.array(columns.state, np.uint8)
        if facts.has_whole_stacks:
            state[state == StackState.GAP_POSSIBLE] = StackState.COMPLETE
        order = np.argsort(time_ns, kind="stable")
        return SampleTable(
            time_ns[order],
            np.array(columns.thread, np.int32)[order],
            np.array(columns.cpu, np.int16)[order],
            event[order],
            np.array(columns.stack, np.int32)[order],
            weight[order],
            state[order],
        )

    def _frame_table(self) -> FrameTable:
        keys = list(self._frames)
        dso = np.array([key[0] for key in keys], np.int32)
        modes = np.array([*self.dsos.modes, 0], np.uint8)
        return FrameTable(
            dso,
            np.array([key[1] for key in keys], np.uint64),
            np.array([key[2] for key in keys], np.bool_),
            modes[dso],
            np.array([key[3] for key in keys], np.int32),
        )

    def _stack_table(self) -> StackTable:
        keys = np.array(list(self._nodes), np.int64)
        return StackTable(((keys >> 32) - 1).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32))

    def _quality(self, samples: SampleTable, frames: FrameTable, notes: Sequence[str]) -> CaptureQuality:
        states = np.bincount(samples.state, minlength=len(StackState)).tolist()
        is_unknown = np.array([dso.kind == DsoKind.UNKNOWN and dso.path == "[unknown]" for dso in self.dsos.rows], np.bool_)
        return CaptureQuality(
            samples=len(samples),
            complete=states[StackState.COMPLETE],
            gap_possible=states[StackState.GAP_POSSIBLE],
            rootless=states[StackState.ROOTLESS],
            truncated=states[StackState.TRUNCATED],
            no_user_stack=states[StackState.NO_USER_STACK],
            unmapped_frames=int((is_unknown[frames.dso] & (frames.symbol < 0)).sum()) if len(frames) else 0,
            notes=tuple(notes),
        )
