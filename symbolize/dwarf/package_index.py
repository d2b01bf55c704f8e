"""The index of a DWARF package (.dwp): which parts of its sections belong to which unit.

Source: DWARF 5, section 7.3.5.3; version 2 is GCC's DebugFissionDWP, of the same layout with other section numbers.
"""

from __future__ import annotations

import struct

import numpy as np

from profiler.model.quick_dataclass import dataclass

_HEADER = struct.Struct("<IIII")  # version (version 5: 2 bytes and 2 of padding), columns, units, slots
# Section names by number, without their ".debug_" and ".dwo".
_SECTIONS = {
    2: {1: "info", 3: "abbrev", 6: "str_offsets"},
    5: {1: "info", 3: "abbrev", 6: "str_offsets", 8: "rnglists"},
}


@dataclass(frozen=True, slots=True)
class Contribution:
    """``start``, ``size``: bytes of one unit in one section."""

    start: int
    size: int


class PackageIndex:
    """``contributions(unit id)`` of one .debug_cu_index.  ValueError when the section is damaged or of another version."""

    def __init__(self, section: memoryview) -> None:
        if len(section) < _HEADER.size:
            raise ValueError("package index too short")
        self._version, self._columns, self._units, slots = _HEADER.unpack_from(section)
        if self._version not in _SECTIONS:
            raise ValueError(f"package index of version {self._version}")
        rows_at = _HEADER.size + 8 * slots
        table_at = rows_at + 4 * slots
        if table_at + 4 * self._columns * (1 + 2 * self._units) > len(section):
            raise ValueError("package index longer than its section")
        self._ids = np.frombuffer(section, "<u8", slots, _HEADER.size)
        self._rows = np.frombuffer(section, "<u4", slots, rows_at)
        cells = np.frombuffer(section, "<u4", self._columns * (1 + 2 * self._units), table_at)
        self._kinds = cells[: self._columns].tolist()
        self._starts, self._sizes = cells[self._columns :].reshape(2, self._units, self._columns)

    def contributions(self, unit_id: int) -> dict[str, Contribution] | None:
        """{section: part} of the unit, None when the package does not have it."""
        slots = np.flatnonzero((self._ids == np.uint64(unit_id)) & (self._rows > 0) & (self._rows <= self._units))
        if not len(slots):
            return None
        row = int(self._rows[slots[0]]) - 1
        names = _SECTIONS[self._version]
        return {
            names[kind]: Contribution(int(self._starts[row, column]), int(self._sizes[row, column]))
            for column, kind in enumerate(self._kinds)
            if kind in names
        }
