"""Passes over prefix trees, on a tree small enough to see.

0 main            1 clone
2 a (0)  3 b (0)  4 a (1)
5 a (2)  6 c (3)  7 a (4)
8 b (5)
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.attribution.level_order import (
    nearest_row,
    outermost_occurrences,
    preorder,
    stable_order,
    sums_of_subtrees,
)
from profiler.analysis.attribution.prefix_merge import merge_equal_paths
from profiler.model.stack_table import depth_levels

PREFIX = np.array([-1, -1, 0, 0, 1, 2, 3, 4, 5], np.int32)
LEVELS = (slice(0, 2), slice(2, 5), slice(5, 8), slice(8, 9))
MAIN, CLONE, A, B, C = range(5)
NAME = np.array([MAIN, CLONE, A, B, A, A, C, A, B], np.int32)


def test_nearest_row() -> None:
    assert nearest_row(LEVELS, PREFIX, NAME == A).tolist() == [-1, -1, 2, -1, 4, 5, -1, 7, 5]


def test_sums_of_subtrees() -> None:
    values = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256], np.int64)
    expected = [1 + 4 + 8 + 32 + 64 + 256, 2 + 16 + 128, 4 + 32 + 256, 8 + 64, 16 + 128, 32 + 256, 64, 128, 256]
    assert sums_of_subtrees(LEVELS, PREFIX, values).tolist() == expected
    assert values.tolist() == [1, 2, 4, 8, 16, 32, 64, 128, 256]


def test_preorder_holds_each_subtree_in_one_interval() -> None:
    enter, end = preorder(LEVELS, PREFIX)
    assert sorted(enter.tolist()) == list(range(9))
    assert (end - enter).tolist() == [6, 3, 3, 2, 2, 2, 1, 1, 1]
    for row in range(9):
        walk = row
        while walk >= 0:
            assert enter[walk] <= enter[row] < end[walk]
            walk = int(PREFIX[walk])


def test_outermost_occurrences() -> None:
    # Row 5 is a below a, row 7 too; row 8 is b, but below a only.
    found = outermost_occurrences(*preorder(LEVELS, PREFIX), NAME)
    assert np.flatnonzero(~found).tolist() == [5, 7]


def test_empty_tree() -> None:
    nothing = np.zeros(0, np.int32)
    enter, end = preorder((), nothing)
    assert len(outermost_occurrences(enter, end, nothing)) == 0
    assert len(merge_equal_paths(nothing, nothing.astype(np.int64), ()).prefix) == 0


@given(st.lists(st.integers(0, 2**31 - 1), max_size=30))
def test_stable_order(values: list[int]) -> None:
    expected = sorted(range(len(values)), key=lambda row: values[row])
    assert stable_order(np.array(values, np.int32)).tolist() == expected


def test_equal_paths_become_one_row() -> None:
    prefix = np.array([-1, 0, -1, 2, 3, 1, 0], np.int32)
    label = np.array([7, 8, 7, 8, 9, 9, 8], np.int64)
    merged = merge_equal_paths(prefix, label, depth_levels(prefix))
    assert merged.prefix.tolist() == [-1, 0, 1]
    assert merged.label.tolist() == [7, 8, 9]
    assert merged.row_of.tolist() == [0, 1, 0, 1, 2, 2, 1]
    assert merged.levels == (slice(0, 1), slice(1, 2), slice(2, 3))
