"""Prefix trees made small: rows that stand for the same path become one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column


@dataclass(frozen=True, slots=True)
class MergedTree:
    """``prefix``, ``label``: the merged rows (``prefix[i] < i``), by depth, then by prefix, then by label.
    ``row_of``: the merged row of each row that went in.  ``levels``: rows by depth, outermost first."""

    prefix: Int32Column
    label: Int64Column
    row_of: Int32Column
    levels: tuple[Int32Column, ...]


def merge_equal_paths(prefix: Int32Column, label: Int64Column, levels: Sequence[Int32Column]) -> MergedTree:
    """Merges rows whose paths from the outermost row carry the same labels (labels are not negative).

    ``levels`` as ``depth_levels(prefix)``.  The result depends on the set of labelled paths only, not on the order of rows.
    """
    row_of = np.full(len(prefix) + 1, -1, np.int32)  # the last element answers for prefix -1
    label_count = int(label.max(initial=-1)) + 1
    prefixes: list[Int32Column] = []
    labels: list[Int64Column] = []
    merged_levels: list[Int32Column] = []
    count = 0
    for level in levels:
        above = row_of[prefix[level]].astype(np.int64) + 1
        identity, inverse = np.unique(above * label_count + label[level], return_inverse=True)
        row_of[level] = count + inverse
        prefixes.append((identity // label_count - 1).astype(np.int32))
        labels.append(identity % label_count)
        merged_levels.append(np.arange(count, count + len(identity), dtype=np.int32))
        count += len(identity)
    return MergedTree(
        prefix=np.concatenate([np.zeros(0, np.int32), *prefixes]),
        label=np.concatenate([np.zeros(0, np.int64), *labels]),
        row_of=row_of[:-1],
        levels=tuple(merged_levels),
    )


def nearest_row(levels: Sequence[Int32Column], prefix: Int32Column, wanted: BoolColumn) -> Int32Column:
    """For each row the innermost row at or above it (itself, then its callers) where ``wanted`` holds, -1 without one."""
    nearest = np.full(len(prefix) + 1, -1, np.int32)
    nearest[:-1][wanted] = np.flatnonzero(wanted)
    for level in levels[1:]:
        open_rows = level[~wanted[level]]
        nearest[open_rows] = nearest[prefix[open_rows]]
    return nearest[:-1]


def sums_of_subtrees(levels: Sequence[Int32Column], prefix: Int32Column, values: Int64Column) -> Int64Column:
    """For each row the exact sum of ``values`` over the row and all rows below it (its callees)."""
    sums = values.copy()
    for level in reversed(levels[1:]):
        np.add.at(sums, prefix[level], sums[level])
    return sums
