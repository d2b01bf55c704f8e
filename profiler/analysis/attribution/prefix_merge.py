"""Prefix trees made small: rows that stand for the same path become one row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.attribution.level_order import Levels
from profiler.model.arrays import Int32Column, Int64Column
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MergedTree:
    """``prefix``, ``label``: the merged rows, sorted by depth, then by prefix, then by label.  ``row_of``: the merged row of
    each row that went in.  ``levels``: one slice of rows per depth."""

    prefix: Int32Column
    label: Int64Column
    row_of: Int32Column
    levels: Levels


def merge_equal_paths(prefix: Int32Column, label: Int64Column, levels: Sequence[Int32Column] | Sequence[slice]) -> MergedTree:
    """Merges rows whose paths from the outermost row carry the same labels (labels are not negative).

    ``levels``: the rows of each depth, outermost first.  The result depends on the set of labelled paths only, not on the
    order of rows.
    """
    row_of = np.full(len(prefix) + 1, -1, np.int32)  # the last element answers for prefix -1
    label_count = int(label.max(initial=-1)) + 1
    prefixes, labels = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    merged_levels: list[slice] = []
    count = 0
    for level in levels:
        above = row_of[prefix[level]].astype(np.int64) + 1
        identity, inverse = np.unique(above * label_count + label[level], return_inverse=True)
        row_of[level] = count + inverse
        above, own = np.divmod(identity, label_count)
        prefixes.append((above - 1).astype(np.int32))
        labels.append(own)
        merged_levels.append(slice(count, count + len(identity)))
        count += len(identity)
    return MergedTree(np.concatenate(prefixes), np.concatenate(labels), row_of[:-1], tuple(merged_levels))
