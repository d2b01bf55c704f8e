"""Numbers for 64-bit keys: an open-addressing hash table over numpy columns.

Look-ups of known keys cost two gathers; everything is done for whole columns at once.
"""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column

# Multiplicative hashing: 2**64 / golden ratio, odd (Knuth, TAOCP vol. 3, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FREE = np.int32(0)
# More would save some probing, and cost memory that is touched for the first time.
_SLOTS_PER_KEY = 2


class Interner:
    """Keys are numbered from 0 in the order in which they are added.  Key 0 is not allowed: it stands for a free slot's."""

    def __init__(self, bits: int = 16) -> None:
        self._bits = bits
        # Slots hold places of ``_keys``, whose first element is the key of free slots: so a look-up needs no other test, and
        # the sparse table is as small as it can be.
        self._slots = np.zeros(1 << bits, np.int32)
        self._keys = np.zeros(1 << 10, np.uint64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def keys(self) -> UInt64Column:
        """All keys in the order of their numbers."""
        return self._keys[1 : self._count + 1].copy()

    def find(self, keys: UInt64Column) -> Int32Column:
        """The number of each key, -1 for one that was never added."""
        slot = self._first_slot(keys)
        places = self._slots[slot]
        other = np.flatnonzero(self._keys[places] != keys)
        if len(other):
            self._probe_further(keys[other], slot[other], other, places)
        return places - np.int32(1)

    def _probe_further(self, keys: UInt64Column, slot: Int64Column, rows: Int64Column, places: Int32Column) -> None:
        """Fills in ``places[rows]`` for keys that are not in their first slot."""
        going_on = np.flatnonzero(places[rows])
        while len(going_on):
            keys, rows = keys[going_on], rows[going_on]
            slot = (slot[going_on] + 1) & (len(self._slots) - 1)
            found = self._slots[slot]
            places[rows] = found
            going_on = np.flatnonzero((found != _FREE) & (self._keys[found] != keys))

    def add(self, keys: UInt64Column) -> Int32Column:
        """Numbers the keys, which are distinct and new, in the order given."""
        places = np.arange(self._count + 1, self._count + 1 + len(keys), dtype=np.int32)
        self._count += len(keys)
        if self._count >= len(self._keys):
            more = np.zeros(max(2 * len(self._keys), self._count + 1) - len(self._keys), np.uint64)
            self._keys = np.concatenate([self._keys, more])
        self._keys[places] = keys
        if self._count * _SLOTS_PER_KEY > len(self._slots):
            self._grow()
        else:
            self._place(keys, places)
        return places - np.int32(1)

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
        self._slots = np.zeros(1 << self._bits, np.int32)
        self._place(self._keys[1 : self._count + 1], np.arange(1, self._count + 1, dtype=np.int32))

    def _place(self, keys: UInt64Column, places: Int32Column) -> None:
        slot = self._first_slot(keys)
        while len(slot):
            free = np.flatnonzero(self._slots[slot] == _FREE)
            # Of several keys that want one slot the last writer gets it; the others see that and move on.
            self._slots[slot[free]] = places[free]
            waiting = np.flatnonzero(self._slots[slot] != places)
            slot = (slot[waiting] + 1) & (len(self._slots) - 1)
            places = places[waiting]


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
