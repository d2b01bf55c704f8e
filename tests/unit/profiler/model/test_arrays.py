"""What is done to whole columns, against Python's own sets and sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.model.arrays import distinct, is_among, ranked

VALUES = st.lists(st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1))


@given(VALUES)
def test_numbers_are_ranks_among_the_distinct_values(drawn: list[int]) -> None:
    values = np.array(drawn, np.int64)
    numbers, rows = ranked(values)
    ascending = sorted(set(drawn))
    assert [ascending[number] for number in numbers.tolist()] == drawn
    assert values[rows].tolist() == ascending
    assert distinct(values).tolist() == ascending


@given(VALUES, VALUES)
def test_among(drawn: list[int], wanted: list[int]) -> None:
    found = is_among(np.array(drawn, np.int64), np.array(sorted(wanted), np.int64))
    assert found.tolist() == [value in set(wanted) for value in drawn]
