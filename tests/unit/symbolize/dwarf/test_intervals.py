from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.dwarf.intervals import paint

RANGES = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 20)), max_size=12)


@given(RANGES)
def test_the_last_range_that_covers_an_address_owns_it(ranges: list[tuple[int, int]]) -> None:
    low = np.array([start for start, _ in ranges], np.uint64)
    high = low + np.array([length for _, length in ranges], np.uint64)
    intervals = paint(low, high, np.arange(len(ranges), dtype=np.int32))
    addresses = np.arange(0, 70, dtype=np.uint64)
    expected = [
        max((row for row, (start, length) in enumerate(ranges) if start <= address < start + length), default=-1)
        for address in range(70)
    ]
    assert intervals.lookup(addresses).tolist() == expected


def test_adjacent_ranges_hand_over_at_the_boundary() -> None:
    intervals = paint(np.array([30, 10], np.uint64), np.array([40, 30], np.uint64), np.array([5, 6], np.int32))
    assert intervals.lookup(np.array([9, 10, 29, 30, 39, 40], np.uint64)).tolist() == [-1, 6, 6, 5, 5, -1]


def test_endless_overlap_is_refused() -> None:
    count = 40_000
    low = np.arange(1, count + 1, dtype=np.uint64)
    with pytest.raises(ValueError, match="overlap"):
        paint(low, np.full(count, 10**6, np.uint64), np.zeros(count, np.int32))
