"""Unit headers of .debug_info (DWARF 5, section 7.5.1)."""

from __future__ import annotations

import struct

from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.constants import (
    OFFSET_FORMS,
    WIDE_REFERENCES,
    DW_UT_compile,
    DW_UT_partial,
    DW_UT_skeleton,
    DW_UT_split_compile,
)

ADDRESS_BYTES = 8
FORMAT_64_BIT = 0xFFFFFFFF
RESERVED_LENGTHS = 0xFFFFFFF0
HEADER_BYTES = {DW_UT_compile: 12, DW_UT_partial: 12, DW_UT_skeleton: 20, DW_UT_split_compile: 20}
VERSION_4_HEADER_BYTES = 11
WIDER_BY = 12  # 8 bytes of the length, 4 of the offset in .debug_abbrev
NO_FORMS: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class UnitHeader:
    """A unit that can be decoded.  ``offset``, ``end``, ``first_die`` are offsets in .debug_info, ``abbrev_offset`` in
    .debug_abbrev.  ``unit_type`` is DW_UT_compile for versions before 5.  ``offset_bytes``: 8 in 64-bit DWARF."""

    offset: int
    end: int
    first_die: int
    version: int
    unit_type: int
    abbrev_offset: int
    offset_bytes: int = 4

    @property
    def wide_forms(self) -> frozenset[int]:
        """Forms that take 8 bytes instead of 4."""
        if self.offset_bytes == 8:
            return OFFSET_FORMS
        return WIDE_REFERENCES if self.version == 2 else NO_FORMS


def read_unit_headers(info: memoryview) -> tuple[list[UnitHeader], int]:
    """(units in file order, number of units left out): versions other than 2 to 5, type units, addresses that are not 8
    bytes, and whatever follows a length that cannot be."""
    units: list[UnitHeader] = []
    refused = offset = 0
    while offset + VERSION_4_HEADER_BYTES <= len(info):
        (length,) = struct.unpack_from("<I", info, offset)
        is_wide = length == FORMAT_64_BIT
        if is_wide:
            (length,) = struct.unpack_from("<Q", info, offset + 4) if offset + 12 <= len(info) else (0,)
        end = offset + (12 if is_wide else 4) + length
        if end > len(info) or (not is_wide and length >= RESERVED_LENGTHS) or length < VERSION_4_HEADER_BYTES - 4:
            return units, refused + 1
        header = _read_header(info, offset, end, is_wide)
        if header is None:
            refused += 1
        else:
            units.append(header)
        offset = end
    return units, refused


def _read_header(info: memoryview, offset: int, end: int, is_wide: bool) -> UnitHeader | None:
    position, more = (offset + 12, WIDER_BY) if is_wide else (offset + 4, 0)
    if offset + VERSION_4_HEADER_BYTES + more > end:
        return None
    (version,) = struct.unpack_from("<H", info, position)
    if version == 5:
        unit_type, address_bytes, abbrev_offset = struct.unpack_from("<BBQ" if is_wide else "<BBI", info, position + 2)
        size = HEADER_BYTES.get(unit_type, 0)
    elif 2 <= version <= 4:
        abbrev_offset, address_bytes = struct.unpack_from("<QB" if is_wide else "<IB", info, position + 2)
        unit_type, size = DW_UT_compile, VERSION_4_HEADER_BYTES
    else:
        return None
    if not size or address_bytes != ADDRESS_BYTES or offset + size + more > end:
        return None
    return UnitHeader(offset, end, offset + size + more, version, unit_type, abbrev_offset, 8 if is_wide else 4)
