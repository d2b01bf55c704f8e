"""Address ranges: of DIEs (.debug_ranges of DWARF 4, .debug_rnglists of DWARF 5) and of whole units (.debug_aranges)."""

from __future__ import annotations

import struct

import numpy as np

from profiler.model.arrays import Int64Column, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.attributes import Row
from symbolize.dwarf.constants import (
    INDEXED_ADDRESS_FORMS,
    DW_AT_high_pc,
    DW_AT_low_pc,
    DW_AT_ranges,
    DW_FORM_addr,
    DW_FORM_rnglistx,
    DW_RLE_base_address,
    DW_RLE_base_addressx,
    DW_RLE_end_of_list,
    DW_RLE_offset_pair,
    DW_RLE_start_end,
    DW_RLE_start_length,
    DW_RLE_startx_endx,
    DW_RLE_startx_length,
)
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.sections import DwarfSections
from symbolize.dwarf.unit_root import UnitRoot

Range = tuple[int, int]
ADDRESS_MASK = 0xFFFFFFFFFFFFFFFF
LIST_CHUNK_BYTES = 4096
FIRST_PAIRS_BYTES = 256
READ_ADDRESS = struct.Struct("<Q").unpack_from
ARANGES_HEADER = struct.Struct("<IHIBB")


class RangeReader:
    """Range lists of one unit.

    ``budget``: entries that may still be read; a damaged unit could name one long list in every DIE.
    """

    def __init__(self, root: UnitRoot) -> None:
        sections = root.sections
        self._root = root
        self._base = root.base_address
        self._known: dict[tuple[int, int], list[Range]] = {}
        size = root.header.end - root.header.offset
        self.budget = size + len(sections.ranges) + len(sections.rnglists)

    def read(self, form: int, value: int) -> list[Range]:
        """The (low, high) pairs that a DW_AT_ranges value names, empty pairs included."""
        found = self._known.get((form, value))
        if found is None:
            if self._root.header.version >= 5:
                found = self._version_5_list(self._list_offset(form, value))
            else:
                found = self._version_4_list(self._root.ranges_base + value)
            self._known[form, value] = found
        self.budget -= len(found)
        if self.budget < 0:
            raise ValueError("more address ranges than the file can hold")
        return found

    def _list_offset(self, form: int, value: int) -> int:
        if form != DW_FORM_rnglistx:
            return value
        base = self._root.range_lists_base
        return base + self._root.offset_at(self._root.sections.rnglists, base, value)

    def _version_4_list(self, offset: int) -> list[Range]:
        section = self._root.sections.ranges
        base = self._base
        found: list[Range] = []
        size = FIRST_PAIRS_BYTES
        while True:
            data = section[offset : offset + size]
            for low, high in struct.iter_unpack("<QQ", data[: len(data) & ~15]):
                if low == high == 0:
                    return found
                if low == ADDRESS_MASK:
                    base = high
                elif low < high:
                    found.append((low + base & ADDRESS_MASK, high + base & ADDRESS_MASK))
            if len(data) < size:
                raise IndexError("range list without end")
            offset += size
            size = LIST_CHUNK_BYTES

    def _version_5_list(self, position: int) -> list[Range]:
        data = self._root.sections.rnglists
        base = self._base
        found: list[Range] = []
        while True:
            kind = data[position]
            position += 1
            if kind == DW_RLE_offset_pair:
                # Numbers of one or two bytes are read here: a call takes longer than all the rest.
                low, second = data[position], data[position + 1]
                if low < 0x80:
                    position += 1
                elif second < 0x80:
                    low, position = low & 0x7F | second << 7, position + 2
                else:
                    low, position = read_unsigned(data, position)
                high, second = data[position], data[position + 1]
                if high < 0x80:
                    position += 1
                elif second < 0x80:
                    high, position = high & 0x7F | second << 7, position + 2
                else:
                    high, position = read_unsigned(data, position)
                found.append((low + base & ADDRESS_MASK, high + base & ADDRESS_MASK))
            elif kind == DW_RLE_end_of_list:
                return found
            elif kind == DW_RLE_base_address:
                (base,) = READ_ADDRESS(data, position)
                position += 8
            elif kind == DW_RLE_base_addressx:
                base, position = self._start(data, position, True)
            else:
                entry, position = self._absolute_entry(data, position, kind)
                found.append(entry)

    def _absolute_entry(self, data: bytes, position: int, kind: int) -> tuple[Range, int]:
        if kind not in (DW_RLE_startx_endx, DW_RLE_startx_length, DW_RLE_start_end, DW_RLE_start_length):
            raise ValueError(f"unknown range list entry 0x{kind:x}")
        low, position = self._start(data, position, kind in (DW_RLE_startx_endx, DW_RLE_startx_length))
        if kind in (DW_RLE_start_end, DW_RLE_startx_endx):
            high, position = self._start(data, position, kind == DW_RLE_startx_endx)
        else:
            length, position = read_unsigned(data, position)
            high = low + length & ADDRESS_MASK
        return (low, high), position

    def _start(self, data: bytes, position: int, is_index: bool) -> tuple[int, int]:
        if is_index:
            index, position = read_unsigned(data, position)
            return self._root.indexed_address(index), position
        return int(READ_ADDRESS(data, position)[0]), position + 8


def die_ranges(root: UnitRoot, ranges: RangeReader) -> list[Range]:
    """The ranges of a unit as its root DIE states them; empty when it states none."""
    attributes = root.attributes
    if DW_AT_ranges in attributes:
        return ranges.read(*attributes[DW_AT_ranges])
    if DW_AT_low_pc in attributes and DW_AT_high_pc in attributes:
        low = root.address(*attributes[DW_AT_low_pc])
        return [(low, high_address(low, *attributes[DW_AT_high_pc], root))]
    return []


def scope_ranges(root: UnitRoot, reader: RangeReader, forms: dict[int, int], row: Row) -> list[Range]:
    """The ranges of a DIE with code from its SCOPE_ATTRIBUTES and their ``forms``."""
    if DW_AT_ranges in forms:
        return reader.read(forms[DW_AT_ranges], row[2])
    low = row[0] if forms[DW_AT_low_pc] == DW_FORM_addr else root.address(forms[DW_AT_low_pc], row[0])
    return [(low, high_address(low, forms[DW_AT_high_pc], row[1], root))]


def high_address(low: int, form: int, value: int, root: UnitRoot) -> int:
    """DW_AT_high_pc is an address by its form, otherwise a length."""
    if form == DW_FORM_addr or form in INDEXED_ADDRESS_FORMS:
        return root.address(form, value)
    return low + value & ADDRESS_MASK


@dataclass(frozen=True, slots=True)
class UnitRanges:
    """Equal length columns: link addresses ``low`` <= a < ``high`` belong to the unit at ``unit_offset`` of .debug_info."""

    low: UInt64Column
    high: UInt64Column
    unit_offset: Int64Column


def read_aranges(sections: DwarfSections) -> UnitRanges:
    """All sets of .debug_aranges that can be read (DWARF 5, section 6.1.2); what follows a damaged set is left out."""
    section = sections.aranges
    tables: list[np.ndarray[tuple[int, ...], np.dtype[np.uint64]]] = []
    owners: list[int] = []
    offset = 0
    while offset + ARANGES_HEADER.size <= len(section):
        length, version, unit_offset, address_bytes, segment_bytes = ARANGES_HEADER.unpack_from(section, offset)
        end = offset + 4 + length
        if end > len(section) or length < ARANGES_HEADER.size - 4:
            break
        # The first pair is aligned to the size of a pair, counted from the start of the set.
        first = offset + 16
        if version == 2 and address_bytes == 8 and segment_bytes == 0 and first < end:
            count = (end - first) // 16
            tables.append(np.frombuffer(section, "<u8", count * 2, first).reshape(count, 2))
            owners.append(unit_offset)
        offset = end
    pairs = np.concatenate(tables) if tables else np.zeros((0, 2), np.uint64)
    unit = np.repeat(np.array(owners, np.int64), [len(table) for table in tables])
    used = pairs[:, 1] > 0
    low = pairs[used, 0]
    return UnitRanges(low, low + pairs[used, 1], unit[used])
