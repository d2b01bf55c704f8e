"""Numbers for 64-bit keys: an open-addressing hash table over numpy columns.

Look-ups of known keys cost two gathers; everything is done for whole columns at once.
"""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column

# Multiplicative hashing: 2**64 / golden ratio, odd (Knuth, TAOCP vol. 3, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_EMPTY = np.uint64(0)
# More would save some probing, and cost memory that is touched for the first time.
_SLOTS_PER_KEY = 2


class Interner:
    """Keys are numbered from 0 in the order in which they are added.  Key 0 is not allowed: it marks free slots."""

    def __init__(self, bits: int = 16) -> None:
        self._bits = bits
        self._slots = np.zeros(1 << bits, np.uint64)
        self._numbers = np.zeros(1 << bits, np.int32)
        self._pieces: list[UInt64Column] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def keys(self) -> UInt64Column:
        """All keys in the order of their numbers."""
        return np.concatenate(self._pieces) if self._pieces else np.zeros(0, np.uint64)

    def find(self, keys: UInt64Column) -> Int32Column:
        """The number of each key, -1 for one that was never added."""
        slot = self._first_slot(keys)
        numbers = self._numbers[slot]
        stored = self._slots[slot]
        other = np.flatnonzero(stored != keys)
        if len(other):
            self._probe_further(keys[other], slot[other], stored[other], other, numbers)
        return numbers

    def _probe_further(
        self, keys: UInt64Column, slot: Int64Column, stored: UInt64Column, rows: Int64Column, numbers: Int32Column
    ) -> None:
        """Fills in ``numbers[rows]`` for keys that are not in their first slot."""
        numbers[rows] = -1
        going_on = np.flatnonzero(stored != _EMPTY)
        while len(going_on):
            keys, rows = keys[going_on], rows[going_on]
            slot = (slot[going_on] + 1) & (len(self._slots) - 1)
            stored = self._slots[slot]
            is_found = stored == keys
            found = np.flatnonzero(is_found)
            numbers[rows[found]] = self._numbers[slot[found]]
            going_on = np.flatnonzero(~is_found & (stored != _EMPTY))

    def add(self, keys: UInt64Column) -> Int32Column:
        """Numbers the keys, which are distinct and new, in the order given."""
        numbers = np.arange(self._count, self._count + len(keys), dtype=np.int32)
        self._pieces.append(keys)
        self._count += len(keys)
        if self._count * _SLOTS_PER_KEY > len(self._slots):
            self._grow()
        else:
            self._place(keys, numbers)
        return numbers

    def intern(self, keys: UInt64Column) -> tuple[Int32Column, UInt64Column]:
        """(number of each key, the keys that were new, in the order of their numbers: that of their first occurrence)."""
        numbers = self.find(keys)
        missing = np.flatnonzero(numbers < 0)
        if not len(missing):
            return numbers, keys[:0]
        absent = keys[missing]
        first = first_rows(absent)
        is_new = first == np.arange(len(first))
        new_keys = absent[is_new]
        rank = np.cumsum(is_new, dtype=np.int32)
        numbers[missing] = rank[first] + np.int32(self._count - 1)
        self.add(new_keys)
        return numbers, new_keys

    def _first_slot(self, keys: UInt64Column) -> Int64Column:
        slot = keys * _GOLDEN
        slot >>= np.uint64(64 - self._bits)
        return slot.view(np.int64)

    def _grow(self) -> None:
        while self._count * _SLOTS_PER_KEY > 1 << self._bits:
            self._bits += 2
        self._slots = np.zeros(1 << self._bits, np.uint64)
        self._numbers = np.zeros(1 << self._bits, np.int32)
        self._pieces = [self.keys()]
        self._place(self._pieces[0], np.arange(self._count, dtype=np.int32))

    def _place(self, keys: UInt64Column, numbers: Int32Column) -> None:
        slot = self._first_slot(keys)
        while len(keys):
            free = np.flatnonzero(self._slots[slot] == _EMPTY)
            # Of several keys that want one slot the last writer gets it; the others see that and move on.
            self._slots[slot[free]] = keys[free]
            placed = self._slots[slot] == keys
            self._numbers[slot[placed]] = numbers[placed]
            keys, numbers = keys[~placed], numbers[~placed]
            slot = (slot[~placed] + 1) & (len(self._slots) - 1)


def first_rows(keys: UInt64Column) -> Int64Column:
    """For every row, the first row that has the same key.

    Keys are scattered over a table, last to first, so that the first of equal keys is left; those that find another key in
    their slot are sorted.
    """
    bits = max(len(keys) * _SLOTS_PER_KEY, 2).bit_length()
    slot = ((keys * _GOLDEN) >> np.uint64(64 - bits)).view(np.int64)
    table = np.empty(1 << bits, np.int64)
    table[slot[::-1]] = np.arange(len(keys) - 1, -1, -1)
    first = table[slot]
    other = np.flatnonzero(keys[first] != keys)
    if len(other):
        _, index, inverse = np.unique(keys[other], return_index=True, return_inverse=True)
        first[other] = other[index[inverse]]
    return first


def mixed(values: UInt64Column) -> UInt64Column:
    """A 64-bit finalizer (xor-shift-multiply, as in SplitMix64, Steele et al. 2014) of every value; overwrites its argument."""
    values *= _GOLDEN
    values ^= values >> np.uint64(29)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(32)
    return values
