from __future__ import annotations

import pytest

from support.dwarf_bytes import abbreviation
from symbolize.dwarf import constants as dw
from symbolize.dwarf.abbreviations import AbbreviationReader

IMPLICIT = dw.DW_FORM_implicit_const


@pytest.mark.parametrize("constant", [0, 1, 0x21, -1, 300])
def test_implicit_constants_do_not_end_a_list_early(constant: int) -> None:
    """A last constant 0 puts three zeros at the end of the list; a constant 0x21 looks like the form itself."""
    first = abbreviation(
        1, dw.DW_TAG_subprogram, False, (dw.DW_AT_name, dw.DW_FORM_strp), (dw.DW_AT_decl_file, IMPLICIT, constant)
    )
    second = abbreviation(2, dw.DW_TAG_namespace, True, (dw.DW_AT_name, dw.DW_FORM_strp))
    table = AbbreviationReader(first + second + b"\0").table(0)
    assert {code: entry.tag for code, entry in table.items()} == {1: dw.DW_TAG_subprogram, 2: dw.DW_TAG_namespace}
    assert table[1].shape.specs[1] == (dw.DW_AT_decl_file, IMPLICIT, constant)
    assert table[1].shape.fixed_size == 4


def test_one_entry_is_found_without_the_rest_of_the_table() -> None:
    section = b"\xff" + abbreviation(200, 0x4109, True) + b"\x80"  # damaged behind the entry
    reader = AbbreviationReader(section)
    assert reader.entry(1, 200).tag == dw.DW_TAG_GNU_call_site
    with pytest.raises(IndexError):
        reader.table(1)


def test_missing_code_is_an_error() -> None:
    with pytest.raises(KeyError):
        AbbreviationReader(abbreviation(1, dw.DW_TAG_namespace, False) + b"\0").entry(0, 2)


def test_sibling_is_found_behind_attributes_that_vary_in_size() -> None:
    pairs = ((dw.DW_AT_name, dw.DW_FORM_string), (dw.DW_AT_sibling, dw.DW_FORM_ref4), (dw.DW_AT_decl_file, dw.DW_FORM_data1))
    entry = AbbreviationReader(abbreviation(1, dw.DW_TAG_class_type, True, *pairs) + b"\0").table(0)[1]
    assert entry.can_jump
    assert entry.shape.sibling_from_end == 5


def test_functions_with_code_are_scopes() -> None:
    pairs = ((dw.DW_AT_low_pc, dw.DW_FORM_addr), (dw.DW_AT_high_pc, dw.DW_FORM_data8), (dw.DW_AT_sibling, dw.DW_FORM_ref4))
    section = abbreviation(1, dw.DW_TAG_subprogram, True, *pairs) + abbreviation(
        2, dw.DW_TAG_subprogram, True, pairs[0], pairs[2]
    )
    table = AbbreviationReader(section + b"\0").table(0)
    assert [table[code].is_scope for code in (1, 2)] == [True, False]


def test_namespaces_are_never_stepped_over() -> None:
    section = abbreviation(1, dw.DW_TAG_namespace, True, (dw.DW_AT_sibling, dw.DW_FORM_ref4)) + b"\0"
    assert not AbbreviationReader(section).table(0)[1].can_jump
