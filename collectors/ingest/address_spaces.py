"""Which file lay at an address of a process at a time.

A process starts with a copy of its parent's mappings, loses all of them when it executes a program, and a new mapping cuts
those it overlaps.  What held before a cut still holds for samples from before it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from collectors.ingest.dso_table import DsoTable, is_kernel_text
from collectors.ingest.timeline import Timeline
from collectors.perf_data.side_band import CommRecord, ForkRecord, MmapRecord, SideBand
from profiler.model.arrays import Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.dso import DsoKind

USER_ADDRESS_LIMIT = 1 << 47
NO_SPACE = 0
_PAGE_BITS = np.uint64(12)
_SPACE_SHIFT = np.uint64(36)

# (start, end, file offset, DSO row)
Mapping = tuple[int, int, int, int]


@dataclass(slots=True)
class Space:
    """Mappings that do not overlap.  ``added`` only grows, so its first n rows are the space as it was when it had n.

    ``parent`` and ``inherited``: the first ``inherited`` mappings of the parent belong to this space too, and are copied
    when somebody asks.
    """

    parent: Space | None = None
    inherited: int = 0
    added: list[Mapping] = field(default_factory=list)
    by_start: list[Mapping] = field(default_factory=list)

    def mappings(self) -> list[Mapping]:
        """All of them, in the order in which they were made."""
        lineage = [self]
        while (above := lineage[-1].parent) is not None:
            lineage.append(above)
        for space in reversed(lineage):
            if space.parent is not None:
                space.added = space.parent.added[: space.inherited]
                space.by_start = sorted(space.added)
                space.parent = None
        return self.added

    def overlapping(self, start: int, end: int) -> list[Mapping]:
        last = bisect_left(self.by_start, (end,))
        first = last
        while first and self.by_start[first - 1][1] > start:
            first -= 1
        return self.by_start[first:last]

    def add(self, mapping: Mapping) -> None:
        self.added.append(mapping)
        insort(self.by_start, mapping)


@dataclass(slots=True)
class AddressSpaces:
    """``spaces[0]`` is empty, for processes that never appear.  ``changes``: (pid, time, space) for ``Timeline``.

    ``modules``: (start, end, DSO row) of kernel modules.
    """

    spaces: list[Space] = field(default_factory=lambda: [Space()])
    changes: list[tuple[int, int, int]] = field(default_factory=list)
    modules: list[tuple[int, int, int]] = field(default_factory=list)

    def timeline(self) -> Timeline:
        return Timeline(self.changes)


class _Builder:
    """Applies side-band records in time order."""

    def __init__(self, dsos: DsoTable) -> None:
        self.result = AddressSpaces()
        self._dsos = dsos
        self._current: dict[int, int] = {}

    def enter(self, pid: int, time_ns: int, space: Space) -> Space:
        number = len(self.result.spaces)
        self.result.spaces.append(space)
        self.result.changes.append((pid & 0xFFFFFFFF, time_ns, number))
        self._current[pid] = number
        return space

    def space_of(self, pid: int, time_ns: int) -> Space:
        number = self._current.get(pid)
        return self.enter(pid, time_ns, Space()) if number is None else self.result.spaces[number]

    def fork(self, record: ForkRecord) -> None:
        if record.pid == record.parent_pid:
            return
        parent = self._current.get(record.parent_pid)
        if parent is None or record.is_synthesized:
            self.enter(record.pid, record.time_ns, Space())
            return
        above = self.result.spaces[parent]
        count = above.inherited if above.parent is not None else len(above.added)
        self.enter(record.pid, record.time_ns, Space(parent=above, inherited=count))

    def comm(self, record: CommRecord) -> None:
        if record.is_exec:
            self.enter(record.pid, record.time_ns, Space())

    def mmap(self, record: MmapRecord) -> None:
        if record.is_kernel:
            self._kernel_mapping(record)
            return
        end = record.start + record.length
        if record.length == 0 or end > USER_ADDRESS_LIMIT:
            return
        mapping = (record.start, end, record.file_offset, self._dsos.file(record.path, record.build_id))
        space = self.space_of(record.pid, record.time_ns)
        space.mappings()
        old = space.overlapping(record.start, end)
        if not old:
            space.add(mapping)
        elif old != [mapping]:
            self._cut(record, space, mapping, old)

    def _cut(self, record: MmapRecord, space: Space, mapping: Mapping, old: list[Mapping]) -> None:
        start, end = mapping[:2]
        kept = [other for other in space.added if other not in old]
        for low, high, file_offset, dso in old:
            if low < start:
                kept.append((low, start, file_offset, dso))
            if high > end:
                kept.append((end, high, file_offset + end - low, dso))
        kept.append(mapping)
        self.enter(record.pid, record.time_ns, Space(added=kept, by_start=sorted(kept)))

    def _kernel_mapping(self, record: MmapRecord) -> None:
        if is_kernel_text(record.path):
            self._dsos.name_kernel_build(record.build_id)
        elif not record.path.startswith("[guest"):
            row = self._dsos.module(record.path, record.build_id)
            self.result.modules.append((record.start, record.start + record.length, row))


def build_address_spaces(side_band: SideBand, dsos: DsoTable) -> AddressSpaces:
    """All address spaces of a recording; records are applied by (time, position), so synthesized ones (time 0) come first."""
    builder = _Builder(dsos)
    apply: dict[type, Callable[..., None]] = {MmapRecord: builder.mmap, CommRecord: builder.comm, ForkRecord: builder.fork}
    relevant = [record for record in side_band.comms if record.is_exec]
    for record in sorted([*side_band.mmaps, *relevant, *side_band.forks], key=lambda record: record[:2]):
        apply[type(record)](record)
    return builder.result


class MappingTable:
    """Look-up of user addresses in the spaces that samples refer to; spaces are entered when they are first needed."""

    def __init__(self, spaces: AddressSpaces, dsos: DsoTable) -> None:
        self._spaces = spaces
        self._dsos = dsos
        self._entered = np.zeros(len(spaces.spaces), np.bool_)
        self._rows: list[UInt64Column] = []
        self._set_columns(np.zeros((0, 5), np.uint64))

    def _set_columns(self, rows: UInt64Column) -> None:
        order = np.lexsort((rows[:, 1], rows[:, 0]))
        rows = rows[order]
        self._space = rows[:, 0].astype(np.int64)
        self._start, self._length, self._file_offset = rows[:, 1].copy(), rows[:, 2] - rows[:, 1], rows[:, 3].copy()
        self._dso = rows[:, 4].astype(np.int32)
        self._key = (rows[:, 0] << _SPACE_SHIFT) | (rows[:, 1] >> _PAGE_BITS)
        kinds: UInt8Column = np.array([dso.kind for dso in self._dsos.rows], np.uint8)
        self._is_anonymous = kinds[self._dso] == DsoKind.ANONYMOUS

    def enter(self, spaces: Int64Column) -> None:
        """Makes these spaces known to ``resolve``."""
        new = distinct(spaces[~self._entered[spaces]])
        if not len(new):
            return
        self._entered[new] = True
        for number in new.tolist():
            mappings = self._spaces.spaces[number].mappings()
            if mappings:
                columns = np.array(mappings, np.uint64)
                self._rows.append(np.column_stack([np.full(len(columns), number, np.uint64), columns]))
        if self._rows:
            self._rows = [np.concatenate(self._rows)]
            self._set_columns(self._rows[0])

    def resolve(self, address_space: Int64Column, runtime_address: UInt64Column) -> tuple[Int32Column, UInt64Column]:
        """(DSO row or -1, file offset; the address itself for anonymous memory and where nothing is mapped)."""
        if not len(self._key):
            return np.full(len(runtime_address), -1, np.int32), runtime_address.copy()
        key = (address_space.astype(np.uint64) << _SPACE_SHIFT) | (runtime_address >> _PAGE_BITS)
        row = np.maximum(np.searchsorted(self._key, key, "right") - 1, 0)
        distance = runtime_address - self._start[row]
        is_mapped = (self._space[row] == address_space) & (distance < self._length[row])
        is_mapped &= runtime_address < np.uint64(USER_ADDRESS_LIMIT)
        has_offset = is_mapped & ~self._is_anonymous[row]
        offset = np.where(has_offset, distance + self._file_offset[row], runtime_address)
        return np.where(is_mapped, self._dso[row], np.int32(-1)), offset
