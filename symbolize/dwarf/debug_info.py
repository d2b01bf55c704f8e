"""Decodes the units of one file that a batch of addresses hits."""

from __future__ import annotations

from profiler.model.arrays import UInt64Column
from symbolize.dwarf.function_names import FunctionNames
from symbolize.dwarf.inline_tree import read_inline_tree
from symbolize.dwarf.line_header import read_line_header
from symbolize.dwarf.line_program import LineTable, run_line_program
from symbolize.dwarf.sections import DwarfSections
from symbolize.dwarf.source_map import SourceMap, empty_source_map
from symbolize.dwarf.source_map_growth import DecodedUnit, add_names, add_units
from symbolize.dwarf.unit_map import build_unit_map
from symbolize.dwarf.unit_reader import OpenUnit, UnitReader
from symbolize.dwarf.unit_root import MALFORMED


class DebugInfo:
    """The debug information of one file.  Damaged units are left out and counted, never raised."""

    def __init__(self, sections: DwarfSections) -> None:
        self._reader = UnitReader(sections)
        self._names = FunctionNames(self._reader)

    def empty_map(self) -> SourceMap:
        """A source map that knows which unit covers which addresses, and nothing else yet."""
        found = build_unit_map(self._reader)
        return empty_source_map(found.covered, len(self._reader.units), found.left_out)

    def extend(self, known: SourceMap, addresses: UInt64Column) -> SourceMap:
        """``known`` with everything that is needed to answer for the link addresses.

        A map of other debug information, which has another number of units, is replaced.
        """
        if len(known.is_decoded) != len(self._reader.units):
            known = self.empty_map()
        rows = known.missing_units(addresses)
        if rows:
            known = add_units(known, [self._decode(row) for row in rows])
        nodes = known.nodes_without_name(addresses)
        if len(nodes):
            known = add_names(known, nodes, [self._names.name(die) for die in known.nodes.die[nodes].tolist()])
        return known

    def _decode(self, row: int) -> DecodedUnit:
        try:
            unit = self._reader.open(row)
        except MALFORMED:
            return DecodedUnit(row, None, None, is_damaged=True)
        is_damaged = False
        try:
            lines = self._lines(unit)
        except MALFORMED:
            lines, is_damaged = None, True
        try:
            tree = read_inline_tree(unit)
        except MALFORMED:
            return DecodedUnit(row, None, lines, is_damaged=True)
        return DecodedUnit(row, tree, lines, is_damaged)

    def _lines(self, unit: OpenUnit) -> LineTable | None:
        if unit.root.line_offset < 0:
            return None
        return run_line_program(read_line_header(unit.root), unit.root.sections)
