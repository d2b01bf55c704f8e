"""The walk into functions, over units written by hand."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from support.dwarf_bytes import abbreviation, sections, uleb, unit_4, unit_5
from symbolize.dwarf import constants as dw
from symbolize.dwarf.inline_chains import InlineChains
from symbolize.dwarf.sections import DwarfSections
from symbolize.dwarf.unit_outline import read_outline
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


ADDRESSES = tuple(range(0x1000, 0x1120))


def chains_of(contents: DwarfSections, unit: int = 0, addresses: tuple[int, ...] = ADDRESSES) -> InlineChains:
    """The chains of all addresses that a function of the unit covers."""
    opened = UnitReader(contents).open(unit)
    outline = read_outline(opened, [])
    owner = outline.covered.lookup(np.array(addresses, np.uint64))
    chains = InlineChains(opened)
    for row, die in enumerate(outline.die.tolist()):
        hit = [address for address, each in zip(addresses, owner.tolist(), strict=True) if each == row]
        if hit:
            chains.add_function(die, hit)
    return chains


def tree(body: bytes) -> InlineChains:
    return chains_of(sections(info=unit_4(body), abbrev=ABBREV))


def owners(found: InlineChains, *addresses: int) -> list[int]:
    return [found.node_of.get(address, -1) for address in addresses]


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
    nodes = found.nodes()
    assert nodes.parent.tolist() == [-1, 0, 1, -1]
    assert nodes.die.tolist()[:3] == [ROOT_AT + 7, ROOT_AT + 1, ROOT_AT + 1]
    assert nodes.call_file.tolist() == [0, 2, 3, 0]
    assert nodes.call_line.tolist() == [0, 77, 300, 0]
    assert nodes.call_column.tolist() == [0, 5, 5, 0]
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
    assert chains_of(contents).nodes().parent.tolist() == []


def test_reference_into_another_unit_is_absolute() -> None:
    first = unit_4(b"\1\5name\0\0")
    second = unit_4(b"\1" + b"\2" + span(0x1000, 0x10) + b"\7" + struct.pack("<I", ROOT_AT + 1) + span(0x1000, 4) + b"\0\0")
    found = chains_of(sections(info=first + second, abbrev=ABBREV), unit=1)
    assert found.nodes().die.tolist() == [len(first) + ROOT_AT + 1, ROOT_AT + 1]


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
    contents = sections(info=unit_5(body), abbrev=abbrev, addresses=addresses)
    found = chains_of(contents, addresses=(0x2000, 0x201F, 0x2020, 0x3000, 0x300F, 0x3010))
    assert owners(found, 0x2000, 0x201F, 0x2020, 0x3000, 0x300F, 0x3010) == [0, 0, -1, 1, 1, -1]


@pytest.mark.parametrize("low", [0, 1, 2**64 - 1, 2**64 - 2, 0x500000])
def test_discarded_functions_own_nothing(low: int) -> None:
    info = unit_4(b"\1" + b"\2" + span(low, 0x10) + b"\0" + b"\2" + span(0x1000, 0x10) + b"\0\0")
    outline = read_outline(UnitReader(sections(info=info, abbrev=ABBREV)).open(0), [])
    assert outline.covered.start.tolist() == [0x1000, 0x1010]


SIBLING = (dw.DW_AT_sibling, dw.DW_FORM_ref4)
NESTED = (
    abbreviation(1, dw.DW_TAG_compile_unit, True)
    + abbreviation(2, dw.DW_TAG_subprogram, True, *SPAN, SIBLING)
    + abbreviation(3, dw.DW_TAG_class_type, True, SIBLING)
    + abbreviation(4, dw.DW_TAG_subprogram, True, *SPAN)
    + abbreviation(5, dw.DW_TAG_inlined_subroutine, False, *SPAN)
    + b"\0"
)


def nested_unit() -> bytes:
    """A function at 0x1000 whose local class has a method at 0x1010, into which a call is inlined at 0x1014."""
    method = b"\4" + span(0x1010, 0x10) + b"\5" + span(0x1014, 4) + b"\0"
    local_class = ROOT_AT + 1 + 17
    after_class = local_class + 5 + len(method) + 1
    function = b"\2" + span(0x1000, 0x10) + struct.pack("<I", after_class + 1)
    return unit_4(b"\1" + function + b"\3" + struct.pack("<I", after_class) + method + b"\0" + b"\0" + b"\0")


def test_methods_of_local_classes_are_functions_of_their_own() -> None:
    opened = UnitReader(sections(info=nested_unit(), abbrev=NESTED)).open(0)
    outline = read_outline(opened, [(0x1000, 0x1020)])
    assert outline.covered.lookup(np.array([0x1000, 0x100F, 0x1010, 0x101F, 0x1020], np.uint64)).tolist() == [0, 0, 1, 1, -1]
    chains = InlineChains(opened)
    chains.add_function(int(outline.die[1]), [0x1010, 0x1014])
    chains.add_function(int(outline.die[0]), [0x1000])
    assert owners(chains, 0x1010, 0x1014, 0x1000) == [0, 1, 2]


def test_bodies_are_searched_only_when_something_is_missing() -> None:
    """Without the method's range, stepping over the body finds all that the unit covers."""
    opened = UnitReader(sections(info=nested_unit(), abbrev=NESTED)).open(0)
    assert len(read_outline(opened, [(0x1000, 0x1010)]).die) == 1
    # Padding up to the next aligned address is nothing that is missing.
    assert len(read_outline(opened, [(0x0FF8, 0x1010)]).die) == 1


@pytest.mark.parametrize("body", [b"\1\x63", b"\1\2\0\0", b"\1\x80"])
def test_damaged_units_are_errors_of_the_expected_kinds(body: bytes) -> None:
    opened = UnitReader(sections(info=unit_4(body), abbrev=ABBREV)).open(0)
    with pytest.raises(MALFORMED):
        read_outline(opened, [])
