"""Units whose functions are described in another file: .dwo files and packages of them (.dwp), DWARF 4 and 5.

The skeleton in the program has the addresses, the other file has the rest: texts, range lists of version 5, DIEs.  Source:
DWARF 5, sections 3.1.2 and 7.3.2; for version 4 GCC's DebugFission.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from profiler.errors import FormatError
from symbolize.dwarf.abbreviations import Abbreviation, AbbreviationReader
from symbolize.dwarf.constants import DW_AT_GNU_ranges_base, DW_AT_low_pc
from symbolize.dwarf.other_files import OtherFiles
from symbolize.dwarf.package_index import Contribution, PackageIndex
from symbolize.dwarf.sections import DwarfSections, section_contents
from symbolize.dwarf.unit_root import MALFORMED, NO_ATTRIBUTE, UnitRoot, read_root
from symbolize.dwarf.units import UnitHeader, read_unit_headers
from symbolize.elf.image import ElfImage

SplitUnit = tuple[UnitRoot, bytes, dict[int, Abbreviation]]


class SplitUnits:
    """Finds the other half of skeleton units."""

    def __init__(self, sections: DwarfSections, files: OtherFiles) -> None:
        self._sections = sections
        self._files = files
        self._package: _Package | None = None
        self._has_looked = False

    def find(self, skeleton: UnitRoot) -> SplitUnit | None:
        """(root, the unit's bytes, its abbreviations), None when no file has the unit with the skeleton's id.

        Raises one of MALFORMED when the file that has it is damaged.
        """
        unit_id = skeleton.split_id
        if unit_id is None:
            return None
        for sections in self._candidates(skeleton, unit_id):
            found = _unit_with_id(sections, unit_id)
            if found is not None:
                header, abbreviations = found
                root = _joined(skeleton, read_root(sections, abbreviations, header))
                data = bytes(sections.info[header.offset : header.end])
                return root, data, abbreviations.for_forms(header.wide_forms).table(header.abbrev_offset)
        return None

    def _candidates(self, skeleton: UnitRoot, unit_id: int) -> Iterator[DwarfSections]:
        package = self._open_package()
        if package is not None:
            sections = package.sections(unit_id, self._sections)
            if sections is not None:
                yield sections
        for image in self._files.split_files(skeleton.split_name, skeleton.compilation_directory):
            try:
                yield _split_sections(image, self._sections)
            except FormatError:
                continue

    def _open_package(self) -> _Package | None:
        if not self._has_looked:
            self._has_looked = True
            image = self._files.package()
            try:
                self._package = _Package(image) if image is not None else None
            except (FormatError, ValueError):
                self._package = None
        return self._package


class _Package:
    """One .dwp file; its sections are decompressed once."""

    def __init__(self, image: ElfImage) -> None:
        self._index = PackageIndex(section_contents(image, ".debug_cu_index"))
        names = ("info", "abbrev", "str_offsets", "rnglists")
        self._contents = {name: section_contents(image, f".debug_{name}.dwo") for name in names}
        self._strings = section_contents(image, ".debug_str.dwo")

    def sections(self, unit_id: int, program: DwarfSections) -> DwarfSections | None:
        parts = self._index.contributions(unit_id)
        if parts is None:
            return None
        cut = {name: _part(contents, parts.get(name)) for name, contents in self._contents.items()}
        return _completed(cut, self._strings, program)


def _part(contents: memoryview, part: Contribution | None) -> memoryview:
    return contents[part.start : part.start + part.size] if part is not None else memoryview(b"")


def _split_sections(image: ElfImage, program: DwarfSections) -> DwarfSections:
    names = ("info", "abbrev", "str_offsets", "rnglists")
    contents = {name: section_contents(image, f".debug_{name}.dwo") for name in names}
    return _completed(contents, section_contents(image, ".debug_str.dwo"), program)


def _completed(contents: dict[str, memoryview], strings: memoryview, program: DwarfSections) -> DwarfSections:
    """Addresses, range lists of version 4 and the bounds of the code are the program's."""
    return replace(
        program,
        info=contents["info"],
        abbrev=bytes(contents["abbrev"]),
        strings=strings,
        string_offsets=contents["str_offsets"],
        rnglists=bytes(contents["rnglists"]),
    )


def _unit_with_id(sections: DwarfSections, unit_id: int) -> tuple[UnitHeader, AbbreviationReader] | None:
    abbreviations = AbbreviationReader(sections.abbrev)
    for header in read_unit_headers(sections.info)[0]:
        try:
            if read_root(sections, abbreviations, header).split_id == unit_id:
                return header, abbreviations
        except MALFORMED:
            continue
    return None


def _joined(skeleton: UnitRoot, root: UnitRoot) -> UnitRoot:
    """The split unit's root with what the skeleton knows."""
    attributes = dict(root.attributes)
    if DW_AT_low_pc in skeleton.attributes:
        attributes.setdefault(DW_AT_low_pc, skeleton.attributes[DW_AT_low_pc])
    return replace(
        root,
        attributes=attributes,
        address_base=skeleton.address_base,
        ranges_base=skeleton.attributes.get(DW_AT_GNU_ranges_base, NO_ATTRIBUTE)[1],
    )
