"""Which file lay at an address of a process at a time.

A process starts with a copy of its parent's mappings, loses all of them when it executes a program, and a new mapping cuts
those it overlaps.  What held before a cut still holds for samples from before it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import field, fields
from operator import itemgetter

import numpy as np

from collectors.ingest.dso_table import DsoTable, is_kernel_text
from collectors.ingest.timeline import Timeline
from collectors.perf_data.side_band import CommRecord, ForkRecord, MmapRecord, SideBand
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.dso import DsoKind
from profiler.model.quick_dataclass import dataclass

# 48 bits on arm64, 47 on x86-64.
USER_ADDRESS_LIMIT = 1 << 48
NO_SPACE = 0
_PAGE_BITS = np.uint64(12)
_SPACE_SHIFT = np.uint64(36)

# (start, end, file offset, DSO row)
Mapping = tuple[int, int, int, int]
# (start, end, row of ``AddressSpaces.mappings``)
_Extent = tuple[int, int, int]


@dataclass(slots=True)
class Space:
    """Mappings that do not overlap.  ``added`` only grows, so its first n elements are the space as it was when it had n.

    ``parent`` and ``inherited``: the first ``inherited`` mappings of the parent belong to this space too, and are copied
    when somebody asks; most processes execute another program before anybody does.
    """

    parent: Space | None = None
    inherited: int = 0
    added: list[_Extent] = field(default_factory=list)
    by_start: list[_Extent] = field(default_factory=list)

    def __len__(self) -> int:
        return self.inherited if self.parent is not None else len(self.added)

    def extents(self) -> list[_Extent]:
        """All of them, in the order in which they were made."""
        if self.parent is None:
            return self.added
        lineage = [self]
        while (above := lineage[-1].parent) is not None:
            lineage.append(above)
        for space in reversed(lineage):
            if space.parent is not None:
                space.added = space.parent.added[: space.inherited]
                space.by_start = sorted(space.added)
                space.parent = None
        return self.added

    def overlapping(self, start: int, end: int) -> list[_Extent]:
        last = bisect_left(self.by_start, (end,))
        first = last
        while first and self.by_start[first - 1][1] > start:
            first -= 1
        return self.by_start[first:last]

    def add(self, extent: _Extent) -> None:
        self.added.append(extent)
        insort(self.by_start, extent)

    def is_free(self, start: int, end: int) -> bool:
        last = bisect_left(self.by_start, (end,))
        return not last or self.by_start[last - 1][1] <= start


@dataclass(slots=True)
class AddressSpaces:
    """``spaces[0]`` is empty, for processes that never appear.  ``changes``: (pid, time, space) for ``Timeline``.

    ``mappings``: of all spaces; a mapping that several spaces share is one row.  ``modules``: (start, end, DSO row) of kernel
    modules.
    """

    spaces: list[Space] = field(default_factory=lambda: [Space()])
    mappings: list[Mapping] = field(default_factory=list)
    changes: list[tuple[int, int, int]] = field(default_factory=list)
    modules: list[tuple[int, int, int]] = field(default_factory=list)

    def timeline(self) -> Timeline:
        """The space of each process; a process that never differed from its parent has its parent's."""
        same_as = self._models()
        return Timeline([(pid, time_ns, same_as[number]) for pid, time_ns, number in self.changes])

    def _models(self) -> list[int]:
        """For each space the first one with the same mappings, as far as forks tell; the empty one for those without any."""
        number_of = {id(space): number for number, space in enumerate(self.spaces)}
        models: list[int] = []
        for number, space in enumerate(self.spaces):
            if not len(space):
                models.append(NO_SPACE)
            elif space.parent is not None and space.inherited == len(space.parent):
                models.append(models[number_of[id(space.parent)]])
            else:
                models.append(number)
        return models


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
        self.enter(record.pid, record.time_ns, Space(parent=above, inherited=len(above)))

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
        if space.parent is not None:
            space.extents()
        if space.is_free(record.start, end):
            space.add(self._extent(mapping))
            return
        old = space.overlapping(record.start, end)
        if len(old) != 1 or self.result.mappings[old[0][2]] != mapping:
            self._cut(record, space, mapping, old)

    def _extent(self, mapping: Mapping) -> _Extent:
        self.result.mappings.append(mapping)
        return mapping[0], mapping[1], len(self.result.mappings) - 1

    def _cut(self, record: MmapRecord, space: Space, mapping: Mapping, old: list[_Extent]) -> None:
        start, end = mapping[:2]
        kept = [other for other in space.added if other not in old]
        for extent in old:
            low, high, file_offset, dso = self.result.mappings[extent[2]]
            if low < start:
                kept.append(self._extent((low, start, file_offset, dso)))
            if high > end:
                kept.append(self._extent((end, high, file_offset + end - low, dso)))
        kept.append(self._extent(mapping))
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
    for record in sorted([*side_band.mmaps, *relevant, *side_band.forks], key=itemgetter(0, 1)):
        apply[type(record)](record)
    return builder.result


class MappingTable:
    """Look-up of user addresses in the spaces that samples refer to; spaces are entered when they are first needed."""

    def __init__(self, spaces: AddressSpaces, dsos: DsoTable) -> None:
        self._spaces = spaces
        self._dsos = dsos
        # In which place each space was entered, from 1 on; 0 = not yet.
        self._place_of = np.zeros(len(spaces.spaces), np.int64)
        self._mappings: UInt64Column = np.array(spaces.mappings, np.uint64).reshape(-1, 4)
        kinds: UInt8Column = np.array([dso.kind for dso in dsos.rows], np.uint8)
        self._is_anonymous = kinds[self._mappings[:, 3].astype(np.int64)] == DsoKind.ANONYMOUS
        self._last_place = 0
        self._pieces: list[_Entered] = []
        self._all = self._entered(np.zeros(0, np.int64))

    def enter(self, spaces: Int64Column) -> None:
        """Makes these spaces known to ``resolve``."""
        new = distinct(spaces[self._place_of[spaces] == 0])
        if len(new):
            self._place_of[new] = np.arange(self._last_place + 1, self._last_place + 1 + len(new))
            self._last_place += len(new)
            self._pieces.append(self._entered(new))

    def _entered(self, spaces: Int64Column) -> _Entered:
        """The mappings of some spaces, in the places that the spaces have."""
        rows: list[int] = []
        counts: list[int] = []
        for number in spaces.tolist():
            extents = self._spaces.spaces[number].extents()
            rows += [row for _, _, row in extents]
            counts.append(len(extents))
        row = np.array(rows, np.int64)
        place = np.repeat(self._place_of[spaces].astype(np.uint64), counts)
        row = row[np.lexsort((self._mappings[row, 0], place))]
        start, end, file_offset, dso = self._mappings[row].T
        key = place << _SPACE_SHIFT | start >> _PAGE_BITS  # places ascend already
        return _Entered(key, start.copy(), end - start, file_offset.copy(), dso.astype(np.int32), ~self._is_anonymous[row])

    def resolve(self, address_space: Int64Column, runtime_address: UInt64Column) -> tuple[Int32Column, UInt64Column]:
        """(DSO row or -1, file offset; the address itself for anonymous memory and where nothing is mapped)."""
        if self._pieces:
            # Places only grow, so what was entered later comes behind.
            self._all, self._pieces = _put_together([self._all, *self._pieces]), []
        mappings = self._all
        if not len(mappings.key):
            return np.full(len(runtime_address), -1, np.int32), runtime_address.copy()
        place = self._place_of[address_space].astype(np.uint64) << _SPACE_SHIFT
        row = np.searchsorted(mappings.key, place | (runtime_address >> _PAGE_BITS), "right") - 1
        row = np.maximum(row, 0)
        distance = runtime_address - mappings.start[row]
        is_mapped = (mappings.key[row] ^ place) >> _SPACE_SHIFT == 0
        is_mapped &= distance < mappings.length[row]
        is_mapped &= runtime_address < np.uint64(USER_ADDRESS_LIMIT)
        has_offset = is_mapped & mappings.has_file[row]
        offset = np.where(has_offset, distance + mappings.file_offset[row], runtime_address)
        return np.where(is_mapped, mappings.dso[row], np.int32(-1)), offset


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Entered:
    """Mappings of entered spaces by ascending ``key`` (place of the space, first page).  ``start``, ``length`` in the process,
    ``file_offset`` of the start, ``has_file``: not for anonymous memory."""

    key: UInt64Column
    start: UInt64Column
    length: UInt64Column
    file_offset: UInt64Column
    dso: Int32Column
    has_file: BoolColumn


def _put_together(pieces: list[_Entered]) -> _Entered:
    return _Entered(*(np.concatenate([getattr(piece, column.name) for piece in pieces]) for column in fields(_Entered)))
