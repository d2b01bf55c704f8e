"""What held for a key (a process, a thread) at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt64Column


class Timeline:
    """Changes ``(key, time, value)``, given in the order in which they take effect: later ones win at equal times.

    A value holds from its time until the key's next change; before its first change the first value holds.
    """

    def __init__(self, changes: Sequence[tuple[int, int, int]]) -> None:
        keys, times, values = zip(*changes, strict=True) if changes else ((), (), ())
        self._values = np.array(values, np.int32)
        self._keys, key_rank = np.unique(np.array(keys, np.uint64), return_inverse=True)
        self._times, time_rank = np.unique(np.array(times, np.uint64), return_inverse=True)
        self._width = len(self._times) + 1
        order = np.argsort(key_rank, kind="stable")
        # Rank 0 stands for "before every change".
        self._moments: Int64Column = key_rank[order] * self._width + time_rank[order] + 1
        self._values = self._values[order]
        self._first = np.searchsorted(key_rank[order], np.arange(len(self._keys)))

    def at(self, keys: UInt64Column, times: UInt64Column) -> Int32Column:
        """The value of each key at each time, -1 for a key that never appears."""
        if not len(self._keys):
            return np.full(len(keys), -1, np.int32)
        if len(keys) and (keys == keys[0]).all():
            span = np.array([times.min(), times.max()])
            first, last = self._changes_at(np.full(2, keys[0]), span).tolist()
            if first == last:
                return np.full(len(keys), self._values[first] if first >= 0 else -1, np.int32)
        change = self._changes_at(keys, times)
        return np.where(change >= 0, self._values[change], np.int32(-1))

    def _changes_at(self, keys: UInt64Column, times: UInt64Column) -> Int64Column:
        """Row of the change in force, -1 for unknown keys."""
        rank = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        moment = rank * self._width + np.searchsorted(self._times, times, "right")
        change = np.maximum(np.searchsorted(self._moments, moment, "right") - 1, self._first[rank])
        return np.where(self._keys[rank] == keys, change, -1)

    def changes_between(self, keys: UInt64Column, first: UInt64Column, last: UInt64Column) -> BoolColumn:
        """Whether another change is in force at ``last`` than at ``first``."""
        if not len(self._keys):
            return np.zeros(len(keys), np.bool_)
        changed: BoolColumn = self._changes_at(keys, first) != self._changes_at(keys, last)
        return changed
