"""Symbols by how their names begin, without a look at the names themselves: a library has thousands of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.model.arrays import Int64Column
from symbolize.elf.symbol_records import SymbolRecords

LONGEST = 8


def rows_beginning(records: SymbolRecords, strings: memoryview, beginnings: Sequence[bytes]) -> Int64Column:
    """Rows of the records whose names begin with one of these texts of at most ``LONGEST`` bytes; a zero byte in a text is the
    end of the name."""
    table = np.frombuffer(strings, np.uint8)
    name = records["st_name"].astype(np.int64)
    inside = np.flatnonzero(name < len(table))
    if not len(inside):
        return inside
    at = name[inside][:, None] + np.arange(LONGEST)
    first = np.where(at < len(table), table[np.minimum(at, len(table) - 1)], 0).astype(np.uint8).view("<u8")[:, 0]
    wanted = np.zeros(len(first), np.bool_)
    for text in beginnings:
        mask = np.uint64((1 << 8 * len(text)) - 1)
        wanted |= (first & mask) == np.uint64(int.from_bytes(text, "little"))
    return inside[wanted]
