"""The root DIE of a unit, and how values of the unit's forms turn into strings, addresses and references."""

from __future__ import annotations

import struct

import numpy as np

from profiler.model.arrays import UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.abbreviations import AbbreviationReader
from symbolize.dwarf.attributes import AttributeSpec, read_value
from symbolize.dwarf.constants import (
    INDEXED_ADDRESS_FORMS,
    INDEXED_STRING_FORMS,
    SUPPLEMENTARY_REFERENCE_FORMS,
    SUPPLEMENTARY_STRING_FORMS,
    UNIT_REFERENCE_FORMS,
    DW_AT_addr_base,
    DW_AT_comp_dir,
    DW_AT_dwo_name,
    DW_AT_GNU_addr_base,
    DW_AT_GNU_dwo_id,
    DW_AT_GNU_dwo_name,
    DW_AT_language,
    DW_AT_low_pc,
    DW_AT_name,
    DW_AT_producer,
    DW_AT_rnglists_base,
    DW_AT_stmt_list,
    DW_AT_str_offsets_base,
    DW_FORM_addr,
    DW_FORM_line_strp,
    DW_FORM_ref_addr,
    DW_FORM_string,
    DW_FORM_strp,
    DW_UT_skeleton,
    DW_UT_split_compile,
)
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.sections import DwarfSections, read_string
from symbolize.dwarf.units import UnitHeader

# What reading damaged debug information may raise; units that do so are left out.
MALFORMED = (IndexError, KeyError, ValueError, OverflowError, struct.error)
ROOT_BYTES = 512
# Without a base attribute, indices count from behind the header of the first table of the section.
DEFAULT_BASES = {
    DW_AT_str_offsets_base: (8, 16),
    DW_AT_addr_base: (8, 16),
    DW_AT_rnglists_base: (12, 20),
}  # in 32-bit and 64-bit DWARF
# DIEs of other files have numbers too: see ``UnitReader``.
SUPPLEMENTARY_DIES = 1 << 40
NO_ATTRIBUTE = (0, 0)

Attributes = dict[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class UnitRoot:
    """``attributes`` of the root DIE: {attribute: (form, value)}, see ``attributes``; ``has_children`` of the root;
    ``head``: the unit's first bytes, where the root's own texts are.  ``ranges_base``: what offsets in .debug_ranges count
    from (DW_AT_GNU_ranges_base).  ``first_number``: number of the DIE at offset 0 of the unit's .debug_info."""

    header: UnitHeader
    sections: DwarfSections
    head: bytes
    attributes: Attributes
    has_children: bool
    string_offsets_base: int
    address_base: int
    range_lists_base: int
    ranges_base: int = 0
    first_number: int = 0

    def string(self, form: int, value: int, data: bytes) -> bytes:
        """The text of a string attribute read from ``data`` (bytes of this unit)."""
        sections = self.sections
        if form == DW_FORM_strp:
            return read_string(sections.strings, value)
        if form == DW_FORM_line_strp:
            return sections.line_strings[value : sections.line_strings.index(0, value)]
        if form == DW_FORM_string:
            return data[value : data.index(0, value)]
        if form in SUPPLEMENTARY_STRING_FORMS:
            return read_string(sections.supplementary_strings, value)
        if form in INDEXED_STRING_FORMS:
            return read_string(sections.strings, self.offset_at(sections.string_offsets, self.string_offsets_base, value))
        raise ValueError(f"form 0x{form:x} is not a string that can be read")

    def offset_at(self, section: memoryview | bytes, base: int, index: int) -> int:
        """Element of a table of offsets; struct.error outside of the section."""
        size = self.header.offset_bytes
        (offset,) = struct.unpack_from("<Q" if size == 8 else "<I", section, base + size * index)
        return int(offset)

    def address(self, form: int, value: int) -> int:
        """The link address of an address attribute."""
        if form == DW_FORM_addr:
            return value
        if form in INDEXED_ADDRESS_FORMS:
            return self.indexed_address(value)
        raise ValueError(f"form 0x{form:x} is not an address")

    def indexed_address(self, index: int) -> int:
        (address,) = struct.unpack_from("<Q", self.sections.addresses, self.address_base + 8 * index)
        return int(address)

    def address_table(self) -> UInt64Column:
        """The unit's part of .debug_addr and what follows it."""
        return np.frombuffer(
            self.sections.addresses, "<u8", max(len(self.sections.addresses) - self.address_base, 0) // 8, self.address_base
        )

    def reference(self, form: int, value: int) -> int:
        """Number of a referenced DIE (see ``UnitReader``); ValueError for references to types."""
        if form in UNIT_REFERENCE_FORMS:
            return self.header.offset + value
        if form == DW_FORM_ref_addr:
            return self.first_number + value
        if form in SUPPLEMENTARY_REFERENCE_FORMS:
            return SUPPLEMENTARY_DIES + value
        raise ValueError(f"form 0x{form:x} refers to no DIE that has code")

    def text_of(self, attribute: int) -> str:
        """A text attribute of the root DIE, "" when absent or in another file."""
        form, value = self.attributes.get(attribute, NO_ATTRIBUTE)
        if attribute not in self.attributes:
            return ""
        if form in SUPPLEMENTARY_STRING_FORMS and not len(self.sections.supplementary_strings):
            return ""
        return self.string(form, value, self.head).decode("utf-8", "replace")

    @property
    def name(self) -> str:
        return self.text_of(DW_AT_name)

    @property
    def compilation_directory(self) -> str:
        return self.text_of(DW_AT_comp_dir)

    @property
    def producer(self) -> str:
        return self.text_of(DW_AT_producer)

    @property
    def language(self) -> int:
        return self.attributes.get(DW_AT_language, NO_ATTRIBUTE)[1]

    @property
    def is_skeleton(self) -> bool:
        """Whether the unit's functions are described in another file (-gsplit-dwarf)."""
        return DW_AT_dwo_name in self.attributes or DW_AT_GNU_dwo_name in self.attributes

    @property
    def split_name(self) -> str:
        """Name of the file that describes the unit's functions, as the compiler wrote it."""
        return self.text_of(DW_AT_dwo_name) or self.text_of(DW_AT_GNU_dwo_name)

    @property
    def split_id(self) -> int | None:
        """What the skeleton has in common with the unit in the other file; None when it is not stated."""
        if self.header.version >= 5:
            if self.header.unit_type not in (DW_UT_skeleton, DW_UT_split_compile):
                return None
            end = self.header.first_die - self.header.offset
            return int.from_bytes(self.head[end - 8 : end], "little")
        return self.attributes[DW_AT_GNU_dwo_id][1] if DW_AT_GNU_dwo_id in self.attributes else None

    @property
    def line_offset(self) -> int:
        """Offset of the line program in .debug_line, -1 when there is none."""
        return self.attributes[DW_AT_stmt_list][1] if DW_AT_stmt_list in self.attributes else -1

    @property
    def base_address(self) -> int:
        """Base of the unit's range lists."""
        return self.address(*self.attributes[DW_AT_low_pc]) if DW_AT_low_pc in self.attributes else 0


def read_root(sections: DwarfSections, abbreviations: AbbreviationReader, header: UnitHeader) -> UnitRoot:
    """Reads the root DIE only.  Raises one of MALFORMED when the unit is damaged."""
    head = bytes(sections.info[header.offset : min(header.end, header.offset + ROOT_BYTES)])
    try:
        return _parse_root(sections, abbreviations, header, head)
    except IndexError:
        if header.offset + len(head) == header.end:
            raise
    return _parse_root(sections, abbreviations, header, bytes(sections.info[header.offset : header.end]))


def _parse_root(sections: DwarfSections, abbreviations: AbbreviationReader, header: UnitHeader, head: bytes) -> UnitRoot:
    code, position = read_unsigned(head, header.first_die - header.offset)
    abbreviation = abbreviations.for_forms(header.wide_forms).entry(header.abbrev_offset, code)
    attributes, _ = read_attributes(head, position, abbreviation.shape.specs)
    return UnitRoot(
        header=header,
        sections=sections,
        head=head,
        attributes=attributes,
        has_children=abbreviation.has_children,
        string_offsets_base=_base(header, attributes, DW_AT_str_offsets_base),
        address_base=_address_base(header, attributes),
        range_lists_base=_base(header, attributes, DW_AT_rnglists_base),
    )


def _address_base(header: UnitHeader, attributes: Attributes) -> int:
    if DW_AT_GNU_addr_base in attributes:
        return attributes[DW_AT_GNU_addr_base][1]
    return _base(header, attributes, DW_AT_addr_base)


def _base(header: UnitHeader, attributes: Attributes, attribute: int) -> int:
    """Before version 5 the tables have no headers."""
    if attribute in attributes:
        return attributes[attribute][1]
    return DEFAULT_BASES[attribute][header.offset_bytes == 8] if header.version >= 5 else 0


def read_attributes(data: bytes, position: int, specs: tuple[AttributeSpec, ...]) -> tuple[Attributes, int]:
    """({attribute: (form, value)}, position behind them)."""
    attributes: Attributes = {}
    for spec in specs:
        form, value, position = read_value(data, position, spec)
        attributes[spec[0]] = (form, value)
    return attributes, position
