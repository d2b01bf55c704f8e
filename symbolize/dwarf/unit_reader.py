"""Opens the units of one file and keeps what was read of them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from symbolize.dwarf.abbreviations import Abbreviation, AbbreviationReader
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.sections import DwarfSections
from symbolize.dwarf.unit_root import UnitRoot, read_root
from symbolize.dwarf.units import read_unit_headers


@dataclass(frozen=True, slots=True)
class OpenUnit:
    """``data``: the unit's bytes from its header on; positions in it are offsets of unit references."""

    root: UnitRoot
    data: bytes
    abbreviations: dict[int, Abbreviation]

    def entry(self, position: int) -> tuple[Abbreviation, int]:
        """(abbreviation, position of the attributes) of the DIE at ``position``."""
        code, position = read_unsigned(self.data, position)
        return self.abbreviations[code], position


class UnitReader:
    """``units``: headers in file order.  ``refused``: units that cannot be decoded (64-bit DWARF, unknown versions)."""

    def __init__(self, sections: DwarfSections) -> None:
        self.sections = sections
        self.units, self.refused = read_unit_headers(sections.info)
        self.abbreviations = AbbreviationReader(sections.abbrev)
        self._first_dies = [unit.first_die for unit in self.units]
        self._open: dict[int, OpenUnit] = {}

    def root(self, row: int) -> UnitRoot:
        return read_root(self.sections, self.abbreviations, self.units[row])

    def open(self, row: int) -> OpenUnit:
        """Raises one of MALFORMED when the unit is damaged."""
        found = self._open.get(row)
        if found is None:
            header = self.units[row]
            data = bytes(self.sections.info[header.offset : header.end])
            found = self._open[row] = OpenUnit(self.root(row), data, self.abbreviations.table(header.abbrev_offset))
        return found

    def row_of(self, die: int) -> int:
        """Row of the unit that contains offset ``die`` of .debug_info; KeyError when none does."""
        row = bisect_right(self._first_dies, die) - 1
        if row < 0 or die >= self.units[row].end:
            raise KeyError(die)
        return row
