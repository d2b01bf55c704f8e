from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.dwarf_bytes import sleb, uleb
from symbolize.dwarf import constants as dw
from symbolize.dwarf.attributes import AttributeSpec, read_value, row_reader, skipper

NUMBERS = st.integers(0, 255)


def encoded(form: int, value: int) -> tuple[bytes, int]:
    """(bytes, value that reading must give), from DWARF 5, section 7.5.6."""
    if form in dw.FIXED_FORM_SIZES:
        size = dw.FIXED_FORM_SIZES[form]
        return value.to_bytes(size, "little") if size else b"", value if size else 1
    if form == dw.DW_FORM_sdata:
        return sleb(-value), -value
    if form in dw.LEB128_FORMS:
        return uleb(value * 1000), value * 1000
    if form == dw.DW_FORM_block1:
        return bytes([value]) + bytes(value), 0
    if form == dw.DW_FORM_block2:
        return struct.pack("<H", value) + bytes(value), 0
    if form == dw.DW_FORM_block4:
        return struct.pack("<I", value) + bytes(value), 0
    if form == dw.DW_FORM_string:
        return b"t" * value + b"\0", 0
    return uleb(value) + bytes(value), 0


FORMS = sorted({*dw.FIXED_FORM_SIZES, *dw.LEB128_FORMS, *dw.BLOCK_FORMS, dw.DW_FORM_string} - {dw.DW_FORM_implicit_const})


@given(st.lists(st.tuples(st.sampled_from(FORMS), NUMBERS), min_size=1, max_size=12), st.integers(0, 3))
def test_skipping_and_reading_end_at_the_same_place(values: list[tuple[int, int]], padding: int) -> None:
    specs: tuple[AttributeSpec, ...] = tuple((0x40 + row, form, 0) for row, (form, _) in enumerate(values))
    parts = [encoded(form, value) for form, value in values]
    data = b"\xee" * padding + b"".join(part for part, _ in parts)
    wanted = tuple(0x40 + row for row in range(len(values)))
    fixed_size, skip = skipper(specs)
    assert skip(data, padding) == len(data)
    assert fixed_size in (-1, len(data) - padding)
    row, end = row_reader(specs, wanted)(data, padding)
    assert end == len(data)
    for (form, _), (_, expected), found in zip(values, parts, row, strict=True):
        if form in dw.FIXED_FORM_SIZES or form in dw.LEB128_FORMS:
            assert found == expected


def test_absent_attributes_read_as_zero_and_constants_need_no_bytes() -> None:
    specs = ((dw.DW_AT_call_file, dw.DW_FORM_implicit_const, 7), (dw.DW_AT_call_line, dw.DW_FORM_data2, 0))
    row, end = row_reader(specs, (dw.DW_AT_ranges, dw.DW_AT_call_line, dw.DW_AT_call_file))(b"\x34\x12", 0)
    assert (row, end) == ((0, 0x1234, 7), 2)


def test_indirect_form_is_read_from_the_data() -> None:
    spec = (dw.DW_AT_call_line, dw.DW_FORM_indirect, 0)
    assert read_value(bytes([dw.DW_FORM_data2, 0x34, 0x12]), 0, spec) == (dw.DW_FORM_data2, 0x1234, 3)
    with pytest.raises(ValueError, match="indirect"):
        read_value(bytes([dw.DW_FORM_indirect, dw.DW_FORM_indirect]), 0, spec)


def test_unknown_form_is_an_error() -> None:
    with pytest.raises(ValueError, match="0x7e"):
        skipper(((dw.DW_AT_name, 0x7E, 0),))


def test_values_past_the_end_are_errors() -> None:
    with pytest.raises(IndexError):
        read_value(b"\x01", 0, (dw.DW_AT_call_line, dw.DW_FORM_data4, 0))
    with pytest.raises(IndexError):
        read_value(b"\x01", 0, (dw.DW_AT_call_line, dw.DW_FORM_block2, 0))
