"""Order in a prefix tree: which rows lie below which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.prefix_merge import sums_of_subtrees
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column


def preorder(levels: Sequence[Int32Column], prefix: Int32Column) -> tuple[Int64Column, Int64Column]:
    """(enter, end): row r and everything below it hold the preorder numbers ``enter[r] .. end[r] - 1``."""
    size = sums_of_subtrees(levels, prefix, np.ones(len(prefix), np.int64))
    enter = np.zeros(len(prefix), np.int64)
    for level in levels:
        row = level[np.argsort(prefix[level], kind="stable")]
        before = np.cumsum(size[row]) - size[row]
        caller = prefix[row]
        is_first = np.ones(len(row), np.bool_)
        is_first[1:] = caller[1:] != caller[:-1]
        first = np.maximum.accumulate(np.where(is_first, np.arange(len(row)), 0))
        base = np.where(caller >= 0, enter[caller] + 1, 0)
        enter[row] = base + before - before[first]
    return enter, enter + size


def outermost_occurrences(enter: Int64Column, end: Int64Column, name: Int32Column) -> BoolColumn:
    """bool[rows]: no caller of the row has the same name, so that recursion counts once in a total."""
    row_count = len(name)
    order = np.lexsort((enter, name))
    base = name[order].astype(np.int64) * (row_count + 1)
    covered_to = np.maximum.accumulate(base + end[order]) if row_count else base
    is_nested = np.zeros(row_count, np.bool_)
    is_nested[order[1:]] = covered_to[:-1] > (base + enter[order])[1:]
    return ~is_nested
