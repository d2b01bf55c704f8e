"""Examples of DWARF 5, section 7.6, tables 7.7 and 7.8."""

from __future__ import annotations

import pytest

from symbolize.dwarf.leb128 import read_signed, read_unsigned, skip_number

UNSIGNED = {2: "02", 127: "7f", 128: "8001", 129: "8101", 12857: "b964"}
SIGNED = {2: "02", -2: "7e", 127: "ff00", -127: "817f", 128: "8001", -128: "807f", 129: "8101", -129: "ff7e"}


@pytest.mark.parametrize(("value", "encoded"), UNSIGNED.items())
def test_unsigned_examples_of_the_standard(value: int, encoded: str) -> None:
    data = bytes.fromhex("ff" + encoded + "55")
    assert read_unsigned(data, 1) == (value, len(data) - 1)
    assert skip_number(data, 1) == len(data) - 1


@pytest.mark.parametrize(("value", "encoded"), SIGNED.items())
def test_signed_examples_of_the_standard(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded + "55")
    assert read_signed(data, 0) == (value, len(data) - 1)


@pytest.mark.parametrize("read", [read_unsigned, read_signed, skip_number])
def test_a_number_without_end_is_an_error(read: object) -> None:
    with pytest.raises(IndexError):
        read(b"\x80\x80\x80", 0)  # type: ignore[operator]
