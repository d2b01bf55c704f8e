"""Names for code that a compiler in the process made: the tables of such code, put to the frames of a capture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, UInt64Column
from profiler.model.capture import Capture
from profiler.model.dso import DsoKind
from profiler.model.frame_table import FrameTable, lookup_offsets
from profiler.model.quick_dataclass import dataclass
from profiler.model.stack_table import StackTable, depth_levels

_LONGEST_NAME = 4096


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CodeMap:
    """Code of one process in the order in which it was made: ``start`` and ``size`` are runtime addresses and bytes.  Later
    code takes the place of earlier code at the same addresses."""

    start: UInt64Column
    size: UInt64Column
    names: tuple[str, ...]

    def entries_at(self, addresses: UInt64Column) -> Int32Column:
        """Row of the last entry that covers each address, -1 = none."""
        order = np.argsort(addresses, kind="stable")
        sorted_addresses = addresses[order]
        first = np.searchsorted(sorted_addresses, self.start, "left")
        last = np.searchsorted(sorted_addresses, self.start + self.size, "left")
        found = np.full(len(addresses), -1, np.int32)
        # Few of many entries cover an address that was sampled.
        for row in np.flatnonzero(last > first).tolist():
            found[first[row] : last[row]] = row
        answer = np.empty(len(addresses), np.int32)
        answer[order] = found
        return answer


def parse_perf_map(lines: Iterable[bytes]) -> CodeMap:
    """The table in a perf-PID.map: lines "START SIZE name", numbers in hexadecimal (tools/perf/Documentation/jit-interface.txt
    of Linux).  Lines that are none are passed over: the process may have been ended while it wrote."""
    starts, sizes, names = [], [], []
    for line in lines:
        fields = line.split(None, 2)
        if len(fields) != 3:
            continue
        try:
            start, size = int(fields[0], 16), int(fields[1], 16)
        except ValueError:
            continue
        name = fields[2].rstrip()[:_LONGEST_NAME]
        if start >= 0 and size > 0 and start + size < 1 << 64 and name:
            starts.append(start)
            sizes.append(size)
            names.append(name.decode("utf-8", "surrogateescape"))
    return CodeMap(np.array(starts, np.uint64), np.array(sizes, np.uint64), tuple(names))


def generated_code_processes(capture: Capture) -> tuple[int, ...]:
    """The processes in whose stacks there is code of anonymous memory without a name, ascending."""
    is_open = _open_frames(capture)
    if not is_open.any():
        return ()
    holds = _holding(capture.stacks, is_open[capture.stacks.frame])
    pids = capture.threads.pid[capture.samples.thread[holds[capture.samples.stack]]]
    return tuple(pid for pid in sorted(set(pids.tolist())) if pid > 0)


def with_generated_names(capture: Capture, maps: Mapping[int, CodeMap]) -> Capture:
    """``capture`` with the names of ``maps`` (by pid) on frames in anonymous memory.

    One address may be different code in different processes, so stacks through such frames are kept apart by process.
    """
    is_open = _open_frames(capture)
    if not maps or not is_open.any():
        return capture
    frames = _NamedFrames(capture, np.flatnonzero(is_open).astype(np.int32))
    stacks = _SplitStacks(capture.stacks, _holding(capture.stacks, is_open[capture.stacks.frame]))
    pid_of_sample = capture.threads.pid[capture.samples.thread]
    sample_stack = capture.samples.stack.copy()
    for pid in sorted(maps):
        rows = np.flatnonzero(pid_of_sample == pid)
        sample_stack[rows] = stacks.copied(capture.samples.stack[rows], frames.named_by(maps[pid]))
    named = replace(
        capture,
        strings=frames.strings(),
        frames=frames.table(),
        stacks=stacks.table(),
        samples=replace(capture.samples, stack=sample_stack),
    )
    return _without_unused(named)


def _without_unused(capture: Capture) -> Capture:
    """``capture`` without the stacks and frames of no sample."""
    stacks, frames = capture.stacks, capture.frames
    is_used = np.zeros(len(stacks), np.bool_)
    is_used[capture.samples.stack] = True
    _mark_callers(is_used, stacks.prefix, depth_levels(stacks.prefix))
    stack_of, is_frame_used = _ranks(is_used), np.zeros(len(frames), np.bool_)
    is_frame_used[stacks.frame[is_used]] = True
    columns = (frames.dso, frames.offset, frames.is_return_address, frames.mode, frames.symbol)
    return replace(
        capture,
        frames=FrameTable(*(column[is_frame_used] for column in columns)),  # type: ignore[arg-type]
        stacks=StackTable(stack_of[stacks.prefix[is_used]], _ranks(is_frame_used)[stacks.frame[is_used]]),
        samples=replace(capture.samples, stack=stack_of[capture.samples.stack]),
    )


def _mark_callers(is_used: BoolColumn, prefix: Int32Column, levels: Sequence[Int32Column]) -> None:
    """Marks the callers of every marked stack."""
    for level in reversed(levels[1:]):
        is_used[prefix[level[is_used[level]]]] = True


def _ranks(is_used: BoolColumn) -> Int32Column:
    """New row of every row that is kept; one more entry at the end keeps -1 as it is."""
    ranks = np.append(np.cumsum(is_used, dtype=np.int32) - np.int32(1), np.int32(-1))
    return ranks.astype(np.int32)


def _open_frames(capture: Capture) -> BoolColumn:
    is_anonymous = np.array([*(dso.kind == DsoKind.ANONYMOUS for dso in capture.dsos), False], np.bool_)
    is_open: BoolColumn = is_anonymous[capture.frames.dso] & (capture.frames.symbol < 0)
    return is_open


def _holding(stacks: StackTable, has_frame: BoolColumn) -> BoolColumn:
    """Whether each stack holds one of the frames, itself or further out."""
    holds = np.append(has_frame, False)
    # Pointer doubling: after step k every row has asked the 2**k rows above it; the last element stands above all.
    above = np.append(np.where(stacks.prefix >= 0, stacks.prefix, len(stacks)), len(stacks))
    while (above < len(stacks)).any():
        holds |= holds[above]
        above = above[above]
    return holds[:-1]


class _NamedFrames:
    """The frame table with one more row for each frame that a process names."""

    def __init__(self, capture: Capture, open_frames: Int32Column) -> None:
        self._frames = capture.frames
        self._open = open_frames
        self._numbers = {text: number for number, text in enumerate(capture.strings)}
        self._sources: list[Int32Column] = [np.arange(len(capture.frames), dtype=np.int32)]
        self._symbols: list[Int32Column] = [capture.frames.symbol]
        self._count = len(capture.frames)

    def named_by(self, code: CodeMap) -> Int32Column:
        """Row of the new table for every row of the old one, in stacks of the process with this code."""
        frames, rows = self._frames, self._open
        entries = code.entries_at(lookup_offsets(frames.offset[rows], frames.is_return_address[rows]))
        named = rows[entries >= 0]
        names = [code.names[entry] for entry in entries[entries >= 0].tolist()]
        self._symbols.append(np.array([self._numbers.setdefault(name, len(self._numbers)) for name in names], np.int32))
        self._sources.append(named)
        row_of = np.arange(len(frames), dtype=np.int32)
        row_of[named] = np.arange(self._count, self._count + len(named), dtype=np.int32)
        self._count += len(named)
        return row_of

    def strings(self) -> tuple[str, ...]:
        return tuple(self._numbers)

    def table(self) -> FrameTable:
        source, frames = np.concatenate(self._sources), self._frames
        return FrameTable(
            frames.dso[source],
            frames.offset[source],
            frames.is_return_address[source],
            frames.mode[source],
            np.concatenate(self._symbols),
        )


class _SplitStacks:
    """A stack table in which the stacks that ``holds`` marks are copied for some samples."""

    def __init__(self, stacks: StackTable, holds: BoolColumn) -> None:
        self._stacks = stacks
        self._holds = holds
        self._levels = depth_levels(stacks.prefix)
        self._prefixes: list[Int32Column] = [stacks.prefix]
        self._frames: list[Int32Column] = [stacks.frame]
        self._count = len(stacks)

    def copied(self, leaves: Int32Column, frame_of: Int32Column) -> Int32Column:
        """Rows of copies of the stacks, whose frames are replaced by ``frame_of``."""
        is_used = np.zeros(len(self._stacks), np.bool_)
        is_used[leaves] = True
        _mark_callers(is_used, self._stacks.prefix, self._levels)
        rows = np.flatnonzero(is_used & self._holds)
        row_of = np.arange(len(self._stacks) + 1, dtype=np.int32)
        row_of[-1] = -1
        row_of[rows] = np.arange(self._count, self._count + len(rows), dtype=np.int32)
        self._prefixes.append(row_of[self._stacks.prefix[rows]])
        self._frames.append(frame_of[self._stacks.frame[rows]])
        self._count += len(rows)
        return row_of[leaves]

    def table(self) -> StackTable:
        return StackTable(np.concatenate(self._prefixes), np.concatenate(self._frames))
