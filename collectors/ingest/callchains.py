"""Callchains as the kernel recorded them, into frame lists.

The kernel's chain is leaf first, with PERF_CONTEXT_* markers that say whose addresses follow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collectors.ingest.address_spaces import MappingTable
from collectors.ingest.frame_lists import FrameLists
from collectors.ingest.places import Places
from collectors.ingest.ragged import reversed_positions, row_positions
from collectors.perf_data import spec
from collectors.perf_data.sample_fields import SampleFields
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.frame_table import CpuMode
from profiler.model.interner import Interner

_MARKER = np.uint64(spec.PERF_CONTEXT_MAX)
_KERNEL_HALF = np.uint64(1 << 63)
# Of user addresses on arm64; x86-64 has one less, and the kernel's half as much.
_ADDRESS_BITS = np.uint64(48)
_ADDRESS_LIMIT = np.uint64(1 << 48)
_KERNEL_START = np.uint64(2**64 - 2**48)
# Spaces per generation of the address table: as many as fit beside an address in one key, the kernel half left aside.
_GENERATION_BITS = 15
_USER_DEFERRED = np.uint64(spec.PERF_CONTEXT_USER_DEFERRED)
_GUEST_MARKERS = np.array([spec.PERF_CONTEXT_GUEST, spec.PERF_CONTEXT_GUEST_KERNEL, spec.PERF_CONTEXT_GUEST_USER], np.uint64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AddressLists:
    """Addresses of n samples, outermost first, markers removed; ``is_return_address`` per address.  ``mode`` (``CpuMode``)
    is ``None`` where the address itself tells: its upper half is the kernel's."""

    addresses: UInt64Column
    start: Int64Column
    is_return_address: BoolColumn
    mode: UInt8Column | None


def chain_addresses(fields: SampleFields, is_kernel_high: bool) -> AddressLists:
    """The callchains without their markers.  The innermost frame and the innermost user frame below a kernel stack hold
    exact addresses, all others return addresses."""
    first, length = fields.chain_start, fields.chain_length
    # Nearly every chain begins with a marker; to skip it here keeps it out of the large columns.
    head = fields.words[np.where(length > 0, first, 0)]
    has_marker = (length > 0) & (head >= _MARKER)
    needs_mode = not is_kernel_high or bool(np.isin(head[has_marker], _GUEST_MARKERS).any())
    if not needs_mode and not (head[has_marker] == _USER_DEFERRED).any():
        first, length = first + has_marker, length - has_marker
    positions, start = reversed_positions(first, length)
    raw = fields.words[positions]
    markers = np.flatnonzero(raw >= _MARKER)
    mode = None
    if needs_mode or np.isin(raw[markers], _GUEST_MARKERS).any():
        mode = _modes(raw, start, markers)
    is_return_address = np.ones(len(raw), np.bool_)
    is_return_address[start[1:][length > 0] - 1] = False
    # What a marker introduces stands before it here: the innermost address of that mode.
    is_return_address[markers[markers > 0] - 1] = False
    if len(markers):
        keep = np.ones(len(raw), np.bool_)
        keep[markers] = False
        deferring = markers[raw[markers] == _USER_DEFERRED]
        keep[deferring[~np.isin(deferring, start)] - 1] = False
        raw, is_return_address = raw[keep], is_return_address[keep]
        mode = None if mode is None else mode[keep]
        start = start - np.searchsorted(np.flatnonzero(~keep), start)
    return AddressLists(raw, start, is_return_address, mode)


def _modes(raw: UInt64Column, start: Int64Column, markers: Int64Column) -> UInt8Column:
    """For 32-bit kernels and guests: the mode of every address by the marker that introduced it, else by its half."""
    mode = np.where(raw >= _KERNEL_HALF, CpuMode.KERNEL, CpuMode.USER).astype(np.uint8)
    if not len(markers):
        return mode
    names = raw[markers]
    is_kernel = names == np.uint64(spec.PERF_CONTEXT_KERNEL)
    marker_mode = np.where(np.isin(names, _GUEST_MARKERS), CpuMode.GUEST, np.where(is_kernel, CpuMode.KERNEL, CpuMode.USER))
    governing = np.minimum(np.searchsorted(markers, np.arange(len(raw))), len(markers) - 1)
    row_end = np.repeat(start[1:], np.diff(start))
    is_governed = (markers[governing] >= np.arange(len(raw))) & (markers[governing] < row_end)
    return np.where(is_governed, marker_mode[governing], mode).astype(np.uint8)


def _is_high_below_user(lists: AddressLists) -> BoolColumn:
    """Addresses of the kernel's half that would have called user code: what a broken frame-pointer chain took for a return
    address, such as a negative number."""
    is_high = lists.addresses >= _KERNEL_HALF
    calls_user = is_high[:-1] > is_high[1:]
    ends = lists.start[1:-1]
    calls_user[ends[(ends > 0) & (ends < len(is_high))] - 1] = False
    if not calls_user.any():
        return np.zeros(len(is_high), np.bool_)
    row = np.repeat(np.arange(len(lists.start) - 1), np.diff(lists.start))
    innermost_user = np.full(len(lists.start) - 1, -1, np.int64)
    user = np.flatnonzero(~is_high)
    innermost_user[row[user]] = user  # the last assignment stays
    found: BoolColumn = is_high & (np.arange(len(is_high)) < innermost_user[row])
    return found


class AddressResolver:
    """Frame codes of runtime addresses; each distinct (address space, address) is resolved once."""

    def __init__(self, places: Places, mappings: MappingTable, is_kernel_high: bool) -> None:
        self._places = places
        self._is_kernel_high = is_kernel_high
        self._mappings = mappings
        self._generation = -1
        self._keys = Interner()
        self._place_of = np.zeros(0, np.int32)

    def frames(self, lists: AddressLists, space: Int32Column) -> FrameLists:
        """``space``: address space of each sample."""
        generations = distinct(space >> _GENERATION_BITS)
        if len(generations) == 1:
            places = self._generation_places(lists, space, int(generations[0]))
        else:
            places = self._several_generations(lists, space, generations)
        return FrameLists(places * 2 + lists.is_return_address, lists.start)

    def _several_generations(self, lists: AddressLists, space: Int32Column, generations: Int32Column) -> Int32Column:
        lengths = np.diff(lists.start)
        places = np.empty(len(lists.addresses), np.int32)
        for generation in generations.tolist():
            chosen = space >> _GENERATION_BITS == generation
            positions, start = row_positions(lists.start[:-1][chosen], lengths[chosen])
            mode = None if lists.mode is None else lists.mode[positions]
            part = AddressLists(lists.addresses[positions], start, lists.is_return_address[positions], mode)
            places[positions] = self._generation_places(part, space[chosen], generation)
        return places

    def _generation_places(self, lists: AddressLists, space: Int32Column, generation: int) -> Int32Column:
        if generation != self._generation:
            self._generation, self._keys, self._place_of = generation, Interner(), np.zeros(0, np.int32)
        if lists.mode is not None:
            return self._by_mode(lists, space)
        local = (space - (generation << _GENERATION_BITS)).astype(np.uint64) << _ADDRESS_BITS
        is_odd = lists.addresses - _ADDRESS_LIMIT < _KERNEL_START - _ADDRESS_LIMIT
        is_odd |= _is_high_below_user(lists)
        if is_odd.any() or (not lists.addresses.all() and not local.all()):
            return self._with_odd(lists, space, is_odd | (lists.addresses == 0))
        # Space and address share a key; kernel addresses have all of the space's bits set already.
        if len(local) and (local == local[0]).all():
            return self._interned(lists.addresses | local[0], generation)
        return self._interned(lists.addresses | np.repeat(local, np.diff(lists.start)), generation)

    def _interned(self, keys: UInt64Column, generation: int) -> Int32Column:
        numbers, new_keys = self._keys.intern(keys)
        if len(new_keys):
            is_kernel = new_keys >= _KERNEL_HALF
            places = np.empty(len(new_keys), np.int32)
            places[is_kernel] = self._places.kernel(new_keys[is_kernel])
            user = new_keys[~is_kernel]
            spaces = (user >> _ADDRESS_BITS).astype(np.int64) + (generation << _GENERATION_BITS)
            dso, offset = self._mappings.resolve(spaces, user & (_ADDRESS_LIMIT - np.uint64(1)))
            places[~is_kernel] = self._places.user(dso, offset)
            self._place_of = np.concatenate([self._place_of, places])
        return self._place_of[numbers]

    def _with_odd(self, lists: AddressLists, space: Int32Column, is_odd: BoolColumn) -> Int32Column:
        """Addresses that no process can have (broken frame-pointer chains) go past the table."""
        places = np.empty(len(is_odd), np.int32)
        places[is_odd] = self._places.user(np.full(int(is_odd.sum()), -1, np.int32), lists.addresses[is_odd])
        lengths = np.add.reduceat(np.append(~is_odd, False), lists.start[:-1]) if len(space) else np.zeros(0, np.int64)
        lengths = np.where(np.diff(lists.start) > 0, lengths, 0).astype(np.int64)
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        kept = AddressLists(lists.addresses[~is_odd], start, lists.is_return_address[~is_odd], None)
        places[~is_odd] = self._generation_places(kept, space, self._generation)
        return places

    def _by_mode(self, lists: AddressLists, space: Int32Column) -> Int32Column:
        mode = lists.mode
        assert mode is not None
        places = np.empty(len(lists.addresses), np.int32)
        user, kernel, guest = (mode == wanted for wanted in (CpuMode.USER, CpuMode.KERNEL, CpuMode.GUEST))
        spaces = np.repeat(space, np.diff(lists.start))[user].astype(np.int64)
        dso, offset = self._mappings.resolve(spaces, lists.addresses[user])
        places[user] = self._places.user(dso, offset)
        if self._is_kernel_high:
            # Samples can say "kernel" and hold a user address (the processor reported it late): neither map is right.
            is_lost = kernel & (lists.addresses < _KERNEL_HALF)
            places[is_lost] = self._places.user(np.full(int(is_lost.sum()), -1, np.int32), lists.addresses[is_lost])
            kernel &= ~is_lost
        places[kernel] = self._places.kernel(lists.addresses[kernel])
        places[guest] = self._places.guest(lists.addresses[guest])
        return places
