"""The DIE walk over a unit written by hand."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from support.dwarf_bytes import abbreviation, sections, uleb, unit_4, unit_5

from symbolize.dwarf import constants as dw
from symbolize.dwarf.inline_tree import InlineTree, read_inline_tree
from symbolize.dwarf.unit_reader import UnitReader
from symbolize.dwarf.unit_root import MALFORMED

SPAN = ((dw.DW_AT_low_pc, dw.DW_FORM_addr), (dw.DW_AT_high_pc, dw.DW_FORM_data4))
CALL = (
    (dw.DW_AT_call_file, dw.DW_FORM_data1),
    (dw.DW_AT_call_line, dw.DW_FORM_data2),
    (dw.DW_AT_call_column, dw.DW_FORM_implicit_const, 5),
)
ABBREV = (
    abbreviation(1, dw.DW_TAG_compile_unit, True)
    + abbreviation(2, dw.DW_TAG_subprogram, True, *SPAN)
    + abbreviation(3, dw.DW_TAG_inlined_subroutine, True, (dw.DW_AT_abstract_origin, dw.DW_FORM_ref4), *SPAN, *CALL)
    + abbreviation(4, 0x0B, True)  # DW_TAG_lexical_block
    + abbreviation(5, dw.DW_TAG_subprogram, False, (dw.DW_AT_name, dw.DW_FORM_string))
    + abbreviation(6, dw.DW_TAG_structure_type, True, (dw.DW_AT_sibling, dw.DW_FORM_ref4))
    + abbreviation(7, dw.DW_TAG_inlined_subroutine, False, (dw.DW_AT_abstract_origin, dw.DW_FORM_ref_addr), *SPAN)
    + abbreviation(8, 0x24, False, (dw.DW_AT_name, dw.DW_FORM_string))  # DW_TAG_base_type
    + b"\0"
)
ROOT_AT = 11


def span(low: int, size: int) -> bytes:
    return struct.pack("<QI", low, size)


def tree(body: bytes) -> InlineTree:
    return read_inline_tree(UnitReader(sections(info=unit_4(body), abbrev=ABBREV)).open(0))


def owners(found: InlineTree, *addresses: int) -> list[int]:
    return found.scopes.lookup(np.array(addresses, np.uint64)).tolist()


def test_calls_nest_through_lexical_blocks() -> None:
    body = (
        b"\1"
        + b"\5name\0"  # abstract function at ROOT_AT + 1
        + b"\2" + span(0x1000, 0x100)
        + b"\4"
        + b"\3" + struct.pack("<I", ROOT_AT + 1) + span(0x1010, 0x40) + struct.pack("<BH", 2, 77)
        + b"\3" + struct.pack("<I", ROOT_AT + 1) + span(0x1020, 0x10) + struct.pack("<BH", 3, 300)
        + b"\0\0\0\0"
        + b"\2" + span(0x1100, 0x10) + b"\0\0"
    )  # fmt: skip
    found = tree(body)
    assert found.parent.tolist() == [-1, 0, 1, -1]
    assert found.die.tolist() == [ROOT_AT + 7, ROOT_AT + 1, ROOT_AT + 1, found.die[3]]
    assert found.call_file.tolist() == [0, 2, 3, 0]
    assert found.call_line.tolist() == [0, 77, 300, 0]
    assert found.call_column.tolist() == [0, 5, 5, 0]
    assert owners(found, 0xFFF, 0x1000, 0x1010, 0x1020, 0x102F, 0x1030, 0x1050, 0x1100, 0x1110) == [-1, 0, 1, 2, 2, 1, 0, 3, -1]


def test_sibling_jumps_over_types_and_a_bad_one_is_ignored() -> None:
    function = b"\2" + span(0x1000, 0x10) + b"\0"
    members = b"\x08int\0" * 3 + b"\0"
    target = ROOT_AT + 1 + 5 + len(members)
    for sibling in (target, 3, 100_000):
        found = tree(b"\1" + b"\6" + struct.pack("<I", sibling) + members + function + b"\0")
        assert owners(found, 0x1008) == [0]


def test_calls_outside_of_any_code_are_no_nodes() -> None:
    """An abstract function may describe calls inlined into it, without a place."""
    abstract = abbreviation(9, dw.DW_TAG_subprogram, True, (dw.DW_AT_name, dw.DW_FORM_string))
    info = unit_4(b"\1" + b"\x09f\0" + b"\7" + struct.pack("<I", 12) + span(0x1000, 4) + b"\0\0")
    contents = sections(info=info, abbrev=ABBREV[:-1] + abstract + b"\0")
    assert len(read_inline_tree(UnitReader(contents).open(0)).parent) == 0


def test_reference_into_another_unit_is_absolute() -> None:
    first = unit_4(b"\1\5name\0\0")
    second = unit_4(b"\1" + b"\2" + span(0x1000, 0x10) + b"\7" + struct.pack("<I", ROOT_AT + 1) + span(0x1000, 4) + b"\0\0")
    reader = UnitReader(sections(info=first + second, abbrev=ABBREV))
    assert read_inline_tree(reader.open(1)).die.tolist() == [len(first) + ROOT_AT + 1, ROOT_AT + 1]


def test_indexed_addresses_of_version_5() -> None:
    abbrev = (
        abbreviation(1, dw.DW_TAG_compile_unit, True, (dw.DW_AT_addr_base, dw.DW_FORM_sec_offset))
        + abbreviation(
            2, dw.DW_TAG_subprogram, False, (dw.DW_AT_low_pc, dw.DW_FORM_addrx), (dw.DW_AT_high_pc, dw.DW_FORM_data4)
        )
        + abbreviation(
            3, dw.DW_TAG_subprogram, False, (dw.DW_AT_low_pc, dw.DW_FORM_addrx1), (dw.DW_AT_high_pc, dw.DW_FORM_addrx1)
        )
        + b"\0"
    )
    body = b"\1" + struct.pack("<I", 8) + b"\2" + uleb(1) + struct.pack("<I", 0x20) + b"\3\0\2" + b"\0"
    addresses = bytes(8) + struct.pack("<3Q", 0x3000, 0x2000, 0x3010)
    found = read_inline_tree(UnitReader(sections(info=unit_5(body), abbrev=abbrev, addresses=addresses)).open(0))
    assert owners(found, 0x2000, 0x201F, 0x2020, 0x3000, 0x300F, 0x3010) == [0, 0, -1, 1, 1, -1]


@pytest.mark.parametrize("low", [0, 1, 2**64 - 1, 2**64 - 2, 0x500000])
def test_discarded_functions_own_nothing(low: int) -> None:
    found = tree(b"\1" + b"\2" + span(low, 0x10) + b"\0" + b"\2" + span(0x1000, 0x10) + b"\0\0")
    assert found.scopes.start.tolist() == [0x1000, 0x1010]


@pytest.mark.parametrize("body", [b"\1\x63", b"\1\2\0\0", b"\1\x80"])
def test_damaged_units_are_errors_of_the_expected_kinds(body: bytes) -> None:
    with pytest.raises(MALFORMED):
        tree(body)
