"""The frames of many samples, one list behind the other."""

from __future__ import annotations

import numpy as np

from collectors.ingest.ragged import row_positions, row_starts
from profiler.model.arrays import Int32Column, Int64Column
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrameLists:
    """``codes_root_first``: frame codes (see ``places``); sample i has ``start[i]:start[i + 1]``.  ``start``: int64[n + 1]."""

    codes_root_first: Int32Column
    start: Int64Column

    @property
    def lengths(self) -> Int64Column:
        return np.diff(self.start)


def joined(outer: FrameLists, inner: FrameLists) -> FrameLists:
    """Per sample, the frames of ``outer`` and, called by them, those of ``inner``."""
    start = row_starts(outer.lengths + inner.lengths)
    codes = np.empty(int(start[-1]), np.int32)
    codes[row_positions(start[:-1], outer.lengths)[0]] = outer.codes_root_first
    codes[row_positions(start[:-1] + outer.lengths, inner.lengths)[0]] = inner.codes_root_first
    return FrameLists(codes, start)


def replaced_where_empty(lists: FrameLists, codes: Int32Column) -> FrameLists:
    """The lists, where the empty ones hold the one frame of ``codes`` (one per sample)."""
    is_empty = lists.lengths == 0
    if not is_empty.any():
        return lists
    filler = FrameLists(codes[is_empty], row_starts(is_empty.astype(np.int64)))
    return joined(lists, filler)
