from __future__ import annotations

import struct

from support.dwarf_bytes import unit_4, unit_5
from symbolize.dwarf.units import read_unit_headers


def test_headers_of_both_versions() -> None:
    info = unit_4(b"\1abc", abbrev_offset=7) + unit_5(b"\2", abbrev_offset=9)
    units, refused = read_unit_headers(memoryview(info))
    assert refused == 0
    # 4 length + 7 header in version 4, 4 + 8 in version 5.
    assert [(unit.offset, unit.first_die, unit.end) for unit in units] == [(0, 11, 15), (15, 27, 28)]
    assert [(unit.version, unit.unit_type, unit.abbrev_offset) for unit in units] == [(4, 1, 7), (5, 1, 9)]


def test_skeleton_header_is_longer_by_the_dwo_id() -> None:
    units, _ = read_unit_headers(memoryview(unit_5(bytes(8) + b"\1", unit_type=4)))
    assert units[0].first_die == 20


def test_foreign_and_type_units_are_refused_and_skipped() -> None:
    info = unit_4(b"\1", version=6) + unit_5(bytes(12), unit_type=2) + unit_4(b"\1")
    units, refused = read_unit_headers(memoryview(info))
    assert refused == 2
    assert [unit.offset for unit in units] == [len(info) - len(unit_4(b"\1"))]


def test_units_of_64_bit_dwarf_have_wider_headers() -> None:
    """Unit length and offset in .debug_abbrev take 4 bytes more each, behind the mark ffffffff (DWARF 5, section 7.4)."""
    fifth = struct.pack("<IQ", 0xFFFFFFFF, 20) + struct.pack("<HBBQ", 5, 1, 8, 0x123456789) + bytes(8)
    fourth = struct.pack("<IQ", 0xFFFFFFFF, 12) + struct.pack("<HQB", 4, 7, 8) + b"\1"
    units, refused = read_unit_headers(memoryview(fifth + fourth + unit_4(b"\1")))
    assert refused == 0
    found = [(each.offset, each.first_die - each.offset, each.version, each.abbrev_offset, each.offset_bytes) for each in units]
    assert found == [(0, 24, 5, 0x123456789, 8), (32, 23, 4, 7, 8), (56, 11, 4, 0, 4)]


def test_a_length_beyond_the_section_ends_the_scan() -> None:
    info = unit_4(b"\1") + struct.pack("<I", 5000) + bytes(20)
    units, refused = read_unit_headers(memoryview(info))
    assert (len(units), refused) == (1, 1)


def test_zero_length_does_not_loop() -> None:
    assert read_unit_headers(memoryview(bytes(64))) == ([], 1)
