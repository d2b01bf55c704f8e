"""Passes over prefix trees whose rows are sorted by depth: one numpy step per level.

``Levels`` holds the rows of each depth as one slice, outermost first; ``prefix`` is the caller's row, -1 for an outermost
row.
"""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column

Levels = tuple[slice, ...]
_DIGIT_BITS = 16


def nearest_row(levels: Levels, prefix: Int32Column, wanted: BoolColumn) -> Int32Column:
    """For each row the innermost row at or above it (itself, then its callers) where ``wanted`` holds, -1 without one."""
    nearest = np.where(wanted, np.arange(len(prefix), dtype=np.int32), np.int32(-1))
    for level in levels[1:]:
        np.copyto(nearest[level], nearest[prefix[level]], where=~wanted[level])
    return nearest


def sums_of_subtrees(levels: Levels, prefix: Int32Column, values: Int64Column) -> Int64Column:
    """For each row the exact sum of ``values`` over the row and all rows below it (its callees)."""
    sums = values.copy()
    for level in reversed(levels[1:]):
        np.add.at(sums, prefix[level], sums[level].copy())  # numpy copies all of ``sums`` when the operands overlap
    return sums


def preorder(levels: Levels, prefix: Int32Column) -> tuple[Int64Column, Int64Column]:
    """(enter, end): row r and everything below it hold the preorder numbers ``enter[r] .. end[r] - 1``."""
    size = sums_of_subtrees(levels, prefix, np.ones(len(prefix), np.int64))
    enter = np.zeros(len(prefix), np.int64)
    for level in levels:
        row = level.start + np.argsort(prefix[level], kind="stable")
        before = np.cumsum(size[row]) - size[row]
        caller = prefix[row]
        is_first = np.ones(len(row), np.bool_)
        is_first[1:] = caller[1:] != caller[:-1]
        first = np.maximum.accumulate(np.where(is_first, np.arange(len(row)), 0))
        base = np.where(caller >= 0, enter[caller] + 1, 0)
        # Outermost rows have no caller to count from; their own sizes put them one after the other.
        enter[row] = base + before - before[first]
    return enter, enter + size


def outermost_occurrences(enter: Int64Column, end: Int64Column, name: Int32Column) -> BoolColumn:
    """bool[rows]: no caller of the row has the same name, so that recursion counts once in a total.

    ``enter``, ``end`` as made by ``preorder``; names are not negative.
    """
    row_count = len(name)
    by_enter = np.empty(row_count, np.int64)
    by_enter[enter] = np.arange(row_count)
    order = by_enter[stable_order(name[by_enter])]
    base = name[order].astype(np.int64) * (row_count + 1)
    covered_to = np.maximum.accumulate(base + end[order])
    is_nested = np.zeros(row_count, np.bool_)
    is_nested[order[1:]] = covered_to[:-1] > (base + enter[order])[1:]
    return ~is_nested


def stable_order(values: Int32Column) -> Int64Column:
    """The stable sorting order of values that are not negative, digit by digit: numpy sorts 16-bit numbers by counting."""
    order = np.argsort((values & 0xFFFF).astype(np.uint16), kind="stable")
    if int(values.max(initial=0)) >> _DIGIT_BITS:
        high = (values >> _DIGIT_BITS).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order
