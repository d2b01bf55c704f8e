"""Nested or overlapping address ranges turned into a sorted list of boundaries that a binary search can answer."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import Int32Column, UInt64Column, distinct
from profiler.model.quick_dataclass import dataclass

# Cells that painting may touch: nesting is a few dozen levels deep, damaged input could make it quadratic.
CELLS_PER_RANGE = 256
CELLS_ALWAYS = 4_000_000
NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intervals:
    """``owner[i]`` owns the addresses from ``start[i]`` up to ``start[i + 1]``, the last one without end; -1 = nobody.
    ``start`` is sorted; the first matching entry from the right counts."""

    start: UInt64Column
    owner: Int32Column

    def lookup(self, addresses: UInt64Column) -> Int32Column:
        """Owner of each address, -1 = nobody."""
        if not len(self.start):
            return np.full(len(addresses), NOBODY, np.int32)
        row = np.searchsorted(self.start, addresses, side="right") - 1
        found: Int32Column = np.where(row >= 0, self.owner[np.maximum(row, 0)], NOBODY).astype(np.int32)
        return found

    def ranges_of(self, owner: int) -> list[tuple[int, int]]:
        """(low, high) of what ``owner`` owns, ascending; without the part that has no end."""
        rows = np.flatnonzero(self.owner[:-1] == owner)
        return list(zip(self.start[rows].tolist(), self.start[rows + 1].tolist(), strict=True))


def paint(low: UInt64Column, high: UInt64Column, owner: Int32Column) -> Intervals:
    """Ranges ``low`` <= a < ``high`` laid over one another: of several owners the last one in the columns' order wins, so
    that inner scopes come after outer ones.  ValueError when the ranges overlap more than any real program's."""
    order = np.argsort(low, kind="stable")
    if np.all(high[order][:-1] <= low[order][1:]):
        return _disjoint(low[order], high[order], owner[order])
    bounds = distinct(np.concatenate([low, high]))
    first, last = np.searchsorted(bounds, low), np.searchsorted(bounds, high)
    if int((last - first).sum()) > CELLS_PER_RANGE * len(low) + CELLS_ALWAYS:
        raise ValueError("address ranges overlap without end")
    cells = np.full(len(bounds), NOBODY, np.int32)
    for start, end, who in zip(first.tolist(), last.tolist(), owner.tolist(), strict=True):
        cells[start:end] = who
    changes = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))
    return Intervals(bounds[changes], cells[changes])


def _disjoint(low: UInt64Column, high: UInt64Column, owner: Int32Column) -> Intervals:
    start = np.stack([low, high], axis=1).reshape(-1)
    who = np.stack([owner, np.full(len(owner), NOBODY, np.int32)], axis=1).reshape(-1)
    return Intervals(start, who.astype(np.int32))
