from __future__ import annotations

import struct

import pytest

from support.dwarf_bytes import abbreviation, sections, uleb, unit_4, unit_5
from symbolize.dwarf import constants as dw
from symbolize.dwarf.abbreviations import AbbreviationReader
from symbolize.dwarf.ranges import RangeReader, die_ranges, read_aranges
from symbolize.dwarf.sections import DwarfSections
from symbolize.dwarf.unit_reader import UnitReader
from symbolize.dwarf.unit_root import UnitRoot, read_root

LOW_PC = (dw.DW_AT_low_pc, dw.DW_FORM_addr)


def pairs(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def root_of(contents: DwarfSections) -> UnitRoot:
    reader = UnitReader(contents)
    return read_root(contents, AbbreviationReader(contents.abbrev), reader.units[0])


def test_version_4_list_adds_the_base_and_follows_its_selection() -> None:
    ranges = pairs(0x10, 0x20, 0x30, 0x30, 2**64 - 1, 0x5000, 1, 2, 0, 0)
    contents = sections(
        info=unit_4(b"\1" + pairs(0x1000)), abbrev=abbreviation(1, 0x11, False, LOW_PC) + b"\0", ranges=bytes(16) + ranges
    )
    reader = RangeReader(root_of(contents))
    assert reader.read(dw.DW_FORM_sec_offset, 16) == [(0x1010, 0x1020), (0x5001, 0x5002)]
    assert reader.read(dw.DW_FORM_sec_offset, 0) == []


def test_version_4_list_longer_than_one_read() -> None:
    wanted = [(2 * row + 1, 2 * row + 2) for row in range(500)]
    ranges = b"".join(pairs(low, high) for low, high in wanted) + pairs(0, 0)
    contents = sections(info=unit_4(b"\1"), abbrev=abbreviation(1, 0x11, False) + b"\0", ranges=ranges)
    assert RangeReader(root_of(contents)).read(dw.DW_FORM_sec_offset, 0) == wanted


@pytest.mark.parametrize("ranges", [b"", pairs(1, 2), pairs(1, 2)[:-3]])
def test_version_4_list_without_end_is_an_error(ranges: bytes) -> None:
    contents = sections(info=unit_4(b"\1"), abbrev=abbreviation(1, 0x11, False) + b"\0", ranges=ranges)
    with pytest.raises(IndexError):
        RangeReader(root_of(contents)).read(dw.DW_FORM_sec_offset, 0)


def version_5(entries: bytes) -> UnitRoot:
    """Unit with DW_AT_addr_base 8, DW_AT_rnglists_base 12; one list whose offset is entry 0 of the table there."""
    attributes = (LOW_PC, (dw.DW_AT_addr_base, dw.DW_FORM_sec_offset), (dw.DW_AT_rnglists_base, dw.DW_FORM_sec_offset))
    contents = sections(
        info=unit_5(b"\1" + pairs(0x1000) + struct.pack("<II", 8, 12)),
        abbrev=abbreviation(1, 0x11, False, *attributes) + b"\0",
        addresses=bytes(8) + pairs(0x2000, 0x2040),
        rnglists=bytes(12) + struct.pack("<I", 4) + entries,
    )
    return root_of(contents)


@pytest.mark.parametrize("low", [0, 0x7F, 0x80, 0x3FFF, 0x4000, 0x20_0000])
@pytest.mark.parametrize("high", [0x7F, 0x80, 0x3FFF, 0x4000, 0x20_0000])
def test_numbers_of_version_5_entries_have_any_length(low: int, high: int) -> None:
    entry = bytes([dw.DW_RLE_offset_pair]) + uleb(low) + uleb(high)
    root = version_5(entry * 2 + bytes([dw.DW_RLE_end_of_list]))
    assert RangeReader(root).read(dw.DW_FORM_rnglistx, 0) == [(0x1000 + low, 0x1000 + high)] * 2


def test_every_kind_of_version_5_entry() -> None:
    entries = (
        bytes([dw.DW_RLE_offset_pair]) + uleb(0x10) + uleb(0x290)
        + bytes([dw.DW_RLE_base_addressx, 1, dw.DW_RLE_offset_pair, 1, 2])
        + bytes([dw.DW_RLE_startx_endx, 0, 1])
        + bytes([dw.DW_RLE_startx_length, 1, 8])
        + bytes([dw.DW_RLE_base_address]) + pairs(0x3000) + bytes([dw.DW_RLE_offset_pair, 3, 4])
        + bytes([dw.DW_RLE_start_end]) + pairs(0x4000, 0x4004)
        + bytes([dw.DW_RLE_start_length]) + pairs(0x5000) + uleb(300)
        + bytes([dw.DW_RLE_end_of_list])
    )  # fmt: skip
    wanted = [
        *((0x1010, 0x1290), (0x2041, 0x2042), (0x2000, 0x2040), (0x2040, 0x2048)),
        *((0x3003, 0x3004), (0x4000, 0x4004), (0x5000, 0x512C)),
    ]
    reader = RangeReader(version_5(entries))
    assert reader.read(dw.DW_FORM_rnglistx, 0) == wanted
    assert reader.read(dw.DW_FORM_sec_offset, 16) == wanted


@pytest.mark.parametrize("entries", [b"", b"\x04\x01", b"\x09", b"\x06\x00"])
def test_damaged_version_5_list_is_an_error(entries: bytes) -> None:
    with pytest.raises((IndexError, ValueError, struct.error)):
        RangeReader(version_5(entries)).read(dw.DW_FORM_rnglistx, 0)


def test_one_list_named_by_every_die_exhausts_the_budget() -> None:
    ranges = b"".join(pairs(row, row + 1) for row in range(1, 200)) + pairs(0, 0)
    contents = sections(info=unit_4(b"\1"), abbrev=abbreviation(1, 0x11, False) + b"\0", ranges=ranges)
    reader = RangeReader(root_of(contents))
    # 200 pairs of 16 bytes, 199 entries each time: the 17th reading passes the size of the section.
    for _ in range(16):
        reader.read(dw.DW_FORM_sec_offset, 0)
    with pytest.raises(ValueError, match="more address ranges"):
        reader.read(dw.DW_FORM_sec_offset, 0)


@pytest.mark.parametrize(("form", "high"), [(dw.DW_FORM_addr, pairs(0x1040)), (dw.DW_FORM_data8, pairs(0x40))])
def test_high_pc_is_an_address_or_a_length_by_its_form(form: int, high: bytes) -> None:
    abbrev = abbreviation(1, 0x11, False, LOW_PC, (dw.DW_AT_high_pc, form)) + b"\0"
    root = root_of(sections(info=unit_4(b"\1" + pairs(0x1000) + high), abbrev=abbrev))
    assert die_ranges(root, RangeReader(root)) == [(0x1000, 0x1040)]


def test_aranges_sets_are_padded_and_terminated() -> None:
    def one_set(unit: int, *values: int) -> bytes:
        rest = struct.pack("<HIBB", 2, unit, 8, 0) + bytes(4) + pairs(*values, 0, 0)
        return struct.pack("<I", len(rest)) + rest

    damaged = struct.pack("<IHIBB", 4000, 2, 0, 8, 0)
    found = read_aranges(sections(aranges=one_set(7, 0x1000, 0x10) + one_set(9, 0x2000, 1, 0x3000, 2) + damaged))
    rows = zip(found.low.tolist(), found.high.tolist(), found.unit_offset.tolist(), strict=True)
    assert list(rows) == [(0x1000, 0x1010, 7), (0x2000, 0x2001, 9), (0x3000, 0x3002, 9)]
