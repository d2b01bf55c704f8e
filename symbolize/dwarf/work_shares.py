"""Divides what is to be decoded into shares that take about equally long."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, Int64Column, UInt64Column
from symbolize.dwarf.source_map import SourceMap

# Measured on C++ and C of GCC 12; their proportion is what matters.
NS_PER_UNIT_BYTE = 15
NS_PER_ADDRESS = 25_000
# A further process and putting its answers to the others take about 20 ms.
SMALLEST_SHARE_NS = 50_000_000


def divide(known: SourceMap, unit_bytes: Int64Column, addresses: UInt64Column, most: int) -> list[UInt64Column]:
    """The addresses without an answer, all those of a unit together, in at most ``most`` shares that are worth a process each.
    ``unit_bytes``: size of each unit.  Units that are outlined already are in the first share."""
    asked = known.unanswered(addresses)
    units, place, counts = np.unique(known.units.lookup(asked), return_inverse=True, return_counts=True)
    is_outlined = known.is_outlined[units]
    cost = counts * NS_PER_ADDRESS + np.where(is_outlined, 0, unit_bytes[units] * NS_PER_UNIT_BYTE)
    total, kept = int(cost.sum()), int(cost[is_outlined].sum())
    count = min(most, total // SMALLEST_SHARE_NS)
    if count < 2:
        return [asked]
    cost[is_outlined] = 0
    first = max(total / count - kept, 0)
    other = (total - kept - first) / (count - 1)
    middle = np.cumsum(cost) - cost / 2
    share = np.clip((middle - first) // max(other, 1) + 1, 0, count - 1).astype(np.int64)
    share = _worth_a_process(share, cost, is_outlined)
    return [part for each in range(count) if len(part := asked[share[place] == each]) or each == 0]


def _worth_a_process(share: Int64Column, cost: Int64Column, is_outlined: BoolColumn) -> Int64Column:
    """Shares of units: the heaviest is the first, which needs no process, and takes those that are too small for one."""
    sizes = np.bincount(share, weights=cost)
    heaviest = int(np.argmax(sizes))
    chosen = np.where(share == heaviest, 0, np.where(share == 0, heaviest, share))
    sizes[[0, heaviest]] = sizes[[heaviest, 0]]
    return np.where(is_outlined | (sizes[chosen] < SMALLEST_SHARE_NS / 2), 0, chosen)
