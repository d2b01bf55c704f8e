"""Places: distinct (DSO, offset) pairs, and the frame codes made from them.

A frame code is ``2 * place + is_return_address``.  Places are interned by one 64-bit key:

* kernel: the runtime address itself, which is >= 2**63;
* user: ``(DSO row + 1) << 47 | offset``;
* what fits neither (garbage that frame-pointer chains contain, guests): the row of its value in a side table.
"""

from __future__ import annotations

import numpy as np

from collectors.ingest.dso_table import DsoTable
from profiler.model.arrays import Int32Column, UInt64Column
from profiler.model.interner import Interner
from profiler.model.quick_dataclass import dataclass

_OFFSET_BITS = np.uint64(47)
_OFFSET_LIMIT = np.uint64(1 << 47)
_KERNEL_HALF = np.uint64(1 << 63)
_ODD_ROWS = {DsoTable.UNKNOWN: 65534, DsoTable.GUEST: 65533}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlaceColumns:
    """All places in the order of their numbers; kernel places have the DSO row of the kernel."""

    dso: Int32Column
    offset: UInt64Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlaceKeys:
    """All places of one table in the order of their numbers.  ``odd``: the side table."""

    key: UInt64Column
    odd: UInt64Column


class Places:
    """Numbers places; ``place`` arguments and results are int32 columns."""

    def __init__(self) -> None:
        self._interner = Interner(bits=18)
        self._odd = Interner(bits=8)

    def __len__(self) -> int:
        return len(self._interner)

    def kernel(self, addresses: UInt64Column) -> Int32Column:
        """Places of kernel code at runtime addresses; those of 32-bit kernels lie in the lower half and are marked."""
        return self._interner.intern(addresses | _KERNEL_HALF)[0]

    def user(self, dso: Int32Column, offsets: UInt64Column) -> Int32Column:
        """Places in DSOs; -1 stands for "nothing mapped", its offsets are runtime addresses."""
        row = np.maximum(dso, DsoTable.UNKNOWN)
        if (offsets >= _OFFSET_LIMIT).any():
            is_odd = offsets >= _OFFSET_LIMIT
            places = np.empty(len(dso), np.int32)
            places[~is_odd] = self.user(dso[~is_odd], offsets[~is_odd])
            places[is_odd] = self._odd_places(DsoTable.UNKNOWN, offsets[is_odd])
            return places
        keys = (row.astype(np.uint64) + np.uint64(1)) << _OFFSET_BITS
        keys |= offsets
        return self._interner.intern(keys)[0]

    def guest(self, addresses: UInt64Column) -> Int32Column:
        return self._odd_places(DsoTable.GUEST, addresses)

    def unknown(self) -> int:
        """The place of a sample that carries no address at all."""
        return int(self.user(np.full(1, -1, np.int32), np.zeros(1, np.uint64))[0])

    def _odd_places(self, row: int, addresses: UInt64Column) -> Int32Column:
        # Shifted by one, because 0 cannot be interned; an address of all ones is no code either way.
        numbers = self._odd.intern(addresses + np.uint64(1) + (addresses == np.uint64(2**64 - 1)))[0]
        keys = (np.uint64(_ODD_ROWS[row]) << _OFFSET_BITS) | numbers.astype(np.uint64)
        return self._interner.intern(keys)[0]

    def keys(self) -> PlaceKeys:
        return PlaceKeys(self._interner.keys(), self._odd.keys())

    def add_keys(self, places: PlaceKeys) -> Int32Column:
        """The place of each place of another table, whose DSO rows are the same."""
        keys = places.key.copy()
        for code in _ODD_ROWS.values():
            chosen = np.flatnonzero(keys >> _OFFSET_BITS == np.uint64(code))
            row = (keys[chosen] & (_OFFSET_LIMIT - np.uint64(1))).astype(np.int64)
            keys[chosen] = (np.uint64(code) << _OFFSET_BITS) | self._odd.intern(places.odd[row])[0].astype(np.uint64)
        return self._interner.intern(keys)[0]

    def columns(self, is_kernel_high: bool) -> PlaceColumns:
        """``is_kernel_high``: kernel addresses are in the upper half, as on every 64-bit machine."""
        keys = self._interner.keys()
        is_kernel = keys >= _KERNEL_HALF
        row = np.where(is_kernel, np.int64(DsoTable.KERNEL), ((keys >> _OFFSET_BITS).astype(np.int64)) - 1)
        offset = np.where(is_kernel, keys, keys & (_OFFSET_LIMIT - np.uint64(1)))
        if not is_kernel_high:
            offset = np.where(is_kernel, keys & ~_KERNEL_HALF, offset)
        odd_addresses = self._odd.keys() - np.uint64(1)
        for dso, code in _ODD_ROWS.items():
            chosen = row == code - 1
            offset[chosen] = odd_addresses[offset[chosen].astype(np.int64)]
            row[chosen] = dso
        return PlaceColumns(row.astype(np.int32), offset)
