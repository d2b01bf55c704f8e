"""Opens the units of one file and keeps what was read of them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.abbreviations import Abbreviation, AbbreviationReader
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.other_files import NoOtherFiles, OtherFiles
from symbolize.dwarf.sections import DwarfSections, read_sections
from symbolize.dwarf.split_units import SplitUnits
from symbolize.dwarf.unit_root import SUPPLEMENTARY_DIES, UnitRoot, read_root
from symbolize.dwarf.units import read_unit_headers
from symbolize.elf.image import ElfImage

# DIEs of the unit that completes the skeleton of row n begin at this number, shifted left by n + 1.
SPLIT_DIES_SHIFT = 41


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
    """``units``: headers in file order.  ``refused``: units that cannot be decoded (unknown versions, types).

    DIEs have numbers: in this file their offset in .debug_info; in the file shared by dwz the offset there + 2**40; in the
    other half of the skeleton unit of row n (.dwo) the offset there + 2**41 * (n + 1).  So a number means the same DIE in
    every process.  Rows behind those of ``units`` are the shared file's units.
    """

    def __init__(self, sections: DwarfSections, files: OtherFiles | None = None) -> None:
        files = files if files is not None else NoOtherFiles()
        shared_sections = _sections_of(files.supplementary())
        self._supplementary: UnitReader | None = None
        if shared_sections is not None:
            self._supplementary = UnitReader(shared_sections)
            sections = replace(sections, supplementary_strings=shared_sections.strings)
        self.sections = sections
        self.units, self.refused = read_unit_headers(sections.info)
        self.abbreviations = AbbreviationReader(sections.abbrev)
        self._splits = SplitUnits(sections, files)
        self._first_dies = [unit.first_die for unit in self.units]
        self._open: dict[int, OpenUnit] = {}
        self._roots: dict[int, UnitRoot] = {}

    def root(self, row: int) -> UnitRoot:
        """The root DIE in this file, also of a skeleton."""
        return read_root(self.sections, self.abbreviations, self.units[row])

    def kept_root(self, row: int) -> UnitRoot:
        """``root``, read once until ``close_units``."""
        found = self._roots.get(row)
        if found is None:
            found = self._roots[row] = self.root(row)
        return found

    def open(self, row: int) -> OpenUnit:
        """The unit, of a skeleton its other half where that is found.  Raises one of MALFORMED when it is damaged."""
        found = self._open.get(row)
        if found is None:
            found = self._open[row] = self._open_new(row)
        return found

    def close_units(self) -> None:
        """Lets go of the bytes of all units; ``open`` reads them again."""
        self._open.clear()
        self._roots.clear()

    def is_incomplete(self, row: int) -> bool:
        """Whether the unit is a skeleton whose other half is not to be had."""
        return self.kept_root(row).is_skeleton and not self.open(row).root.first_number

    def _open_new(self, row: int) -> OpenUnit:
        if row >= len(self.units) and self._supplementary is not None:
            unit = self._supplementary.open(row - len(self.units))
            return OpenUnit(_numbered_from(unit.root, SUPPLEMENTARY_DIES), unit.data, unit.abbreviations)
        root = self.kept_root(row)
        split = self._splits.find(root) if root.is_skeleton else None
        if split is not None:
            other, data, abbreviations = split
            return OpenUnit(_numbered_from(other, row + 1 << SPLIT_DIES_SHIFT), data, abbreviations)
        header = self.units[row]
        data = bytes(self.sections.info[header.offset : header.end])
        return OpenUnit(root, data, self.abbreviations.for_forms(header.wide_forms).table(header.abbrev_offset))

    def row_of(self, die: int) -> int:
        """Row of the unit that contains the DIE of a number; KeyError when none does."""
        if die >> SPLIT_DIES_SHIFT:
            row = (die >> SPLIT_DIES_SHIFT) - 1
            header = self.open(row).root.header if row < len(self.units) else None
            if header is None or not header.first_die <= die < header.end:
                raise KeyError(die)
            return row
        if die >= SUPPLEMENTARY_DIES:
            if self._supplementary is None:
                raise KeyError(die)
            return len(self.units) + self._supplementary.row_of(die - SUPPLEMENTARY_DIES)
        row = bisect_right(self._first_dies, die) - 1
        if row < 0 or die >= self.units[row].end:
            raise KeyError(die)
        return row


def _sections_of(image: ElfImage | None) -> DwarfSections | None:
    """None also for a file that is damaged."""
    try:
        return read_sections(image) if image is not None else None
    except FormatError:
        return None


def _numbered_from(root: UnitRoot, first: int) -> UnitRoot:
    """``root`` of a unit in another file, whose DIEs are numbered from ``first`` on."""
    header = root.header
    moved = replace(header, offset=first + header.offset, end=first + header.end, first_die=first + header.first_die)
    return replace(root, header=moved, first_number=first)
