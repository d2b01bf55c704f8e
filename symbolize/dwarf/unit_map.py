"""Which unit an address belongs to."""

from __future__ import annotations

import numpy as np

from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.constants import DW_UT_partial
from symbolize.dwarf.intervals import Intervals, paint
from symbolize.dwarf.ranges import RangeReader, die_ranges, read_aranges
from symbolize.dwarf.sections import in_text
from symbolize.dwarf.unit_reader import UnitReader
from symbolize.dwarf.unit_root import MALFORMED


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnitMap:
    """``covered``: owner = row of the unit reader's units.  ``left_out``: number of units that could not be read."""

    covered: Intervals
    left_out: int


def build_unit_map(reader: UnitReader) -> UnitMap:
    """From .debug_aranges, completed by the root DIEs of the units that it does not list."""
    sections = reader.sections
    listed = read_aranges(sections)
    known = np.array([unit.offset for unit in reader.units], np.int64)
    is_known = np.isin(listed.unit_offset, known)
    low, high = listed.low[is_known], listed.high[is_known]
    # Units are in file order, so a unit's row is its place among the offsets.
    owner = np.searchsorted(known, listed.unit_offset[is_known]).astype(np.int32)
    more, left_out = _stated_ranges(reader, set(listed.unit_offset.tolist()))
    if more:
        table = np.array(more, np.uint64).reshape(-1, 3)
        low, high = np.concatenate([low, table[:, 0]]), np.concatenate([high, table[:, 1]])
        owner = np.concatenate([owner, table[:, 2].astype(np.int32)])
    inside = in_text(sections, low, high)
    try:
        covered = paint(low[inside], high[inside], owner[inside])
    except ValueError:
        covered = Intervals(np.zeros(0, np.uint64), np.zeros(0, np.int32))
    return UnitMap(covered, reader.refused + left_out)


def _stated_ranges(reader: UnitReader, listed: set[int]) -> tuple[list[tuple[int, int, int]], int]:
    """((low, high, row of the unit) of the units that are not listed, number of damaged units)."""
    stated: list[tuple[int, int, int]] = []
    left_out = 0
    for row, unit in enumerate(reader.units):
        if unit.offset in listed or unit.unit_type == DW_UT_partial:
            continue
        try:
            root = reader.root(row)
            found = die_ranges(root, RangeReader(root))
        except MALFORMED:
            left_out += 1
            continue
        stated += [(low, high, row) for low, high in found]
    return stated, left_out
