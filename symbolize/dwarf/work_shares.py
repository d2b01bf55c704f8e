"""Divides what is to be decoded into shares that take about equally long."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import Int64Column, UInt64Column
from symbolize.dwarf.source_map import SourceMap

# Measured on C++ and C of GCC 12; their proportion is what matters.
NS_PER_UNIT_BYTE = 15
NS_PER_ADDRESS = 25_000
# A further process and putting its answers to the others take about 20 ms.
SMALLEST_SHARE_NS = 50_000_000
# Who divides also puts together.
FIRST_SHARE = 1.0


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
    first = max(FIRST_SHARE * total / count - kept, 0)
    other = (total - kept - first) / (count - 1)
    middle = np.cumsum(cost) - cost / 2
    share = np.clip((middle - first) // max(other, 1) + 1, 0, count - 1).astype(np.int64)
    share[is_outlined] = 0
    return [asked[share[place] == each] for each in range(count)]
