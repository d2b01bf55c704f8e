"""Symbols by how their names begin, in a table written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from symbolize.elf.symbol_records import SYMBOL_RECORD
from symbolize.unwind.name_beginnings import rows_beginning

STRINGS = b"\0clone\0clone3\0__libc_start_main\0cl"
#          0 1      7       14                  32
NAMES = {"": 0, "clone": 1, "clone3": 7, "__libc_start_main": 14, "start_main": 21, "cl": 32, "outside": 4000}


def rows(beginnings: list[bytes], strings: bytes = STRINGS) -> list[str]:
    records = np.zeros(len(NAMES), SYMBOL_RECORD)
    records["st_name"] = list(NAMES.values())
    names = list(NAMES)
    return [names[row] for row in rows_beginning(records, memoryview(strings), beginnings).tolist()]


@pytest.mark.parametrize(
    ("beginnings", "expected"),
    [
        ([b"clone"], ["clone", "clone3"]),
        ([b"clone\0"], ["clone"]),
        ([b"__libc_s", b"clone3\0"], ["clone3", "__libc_start_main"]),
        ([b"start_ma"], ["start_main"]),
        ([b"cl"], ["clone", "clone3", "cl"]),
        ([b"cl\0"], ["cl"]),
        ([b"clx"], []),
        ([], []),
    ],
)
def test_names_that_begin_so(beginnings: list[bytes], expected: list[str]) -> None:
    assert rows(beginnings) == expected


def test_no_strings() -> None:
    assert rows([b"clone"], b"") == []
