"""Callchains as the kernel recorded them, into frame lists.

The kernel's chain is leaf first, with PERF_CONTEXT_* markers that say whose addresses follow.
"""

from __future__ import annotations

import numpy as np

from collectors.ingest.address_spaces import MappingTable
from collectors.ingest.frame_lists import FrameLists
from collectors.ingest.places import Places
from collectors.ingest.ragged import reversed_positions, row_positions, row_starts
from collectors.perf_data import spec
from collectors.perf_data.sample_fields import SampleFields
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.frame_table import CpuMode
from profiler.model.interner import Interner
from profiler.model.quick_dataclass import dataclass

_MARKER = np.uint64(spec.PERF_CONTEXT_MAX)
_KERNEL_HALF = np.uint64(1 << 63)
# Of user addresses on arm64; x86-64 has one less, and the kernel's half as much.
_ADDRESS_BITS = np.uint64(48)
_ADDRESS_LIMIT = np.uint64(1 << 48)
_KERNEL_START = np.uint64(2**64 - 2**48)
# Spaces per generation of the address table: as many as fit beside an address in one key, the kernel half left aside.
_GENERATION_BITS = 15
# Room for the addresses of most recordings: what is not used of it costs no memory, and growing means to place all again.
_KEY_BITS = 19
# So many words between chains for each in one, such as stack dumps, are not worth being looked through.
_SPARSE = 4
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
    parts = _parts(fields)
    positions, start = reversed_positions(parts.first, parts.length)
    addresses = fields.words[positions]
    is_return_address = np.ones(len(addresses), np.bool_)
    is_return_address[start[1:][parts.is_exact & (parts.length > 0)] - 1] = False
    has_guests = bool(np.isin(distinct(parts.marker), _GUEST_MARKERS).any())
    mode = _modes(addresses, parts) if has_guests or not is_kernel_high else None
    return AddressLists(addresses, start[parts.chain_start], is_return_address, mode)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Parts:
    """What lies between the markers of callchains, outermost part first: ``first`` word and ``length`` of each, the
    ``marker`` that introduces it (0 for none), and whether its innermost address is that of an instruction in execution.
    ``chain_start``: int64[n + 1], the first part of each chain."""

    first: Int64Column
    length: Int64Column
    marker: UInt64Column
    is_exact: BoolColumn
    chain_start: Int64Column


def _parts(fields: SampleFields) -> _Parts:
    chain_first, chain_end = fields.chain_start, fields.chain_start + fields.chain_length
    markers, chain = _markers(fields.words, chain_first, chain_end)
    # Of each chain, the part before its first marker and one behind every marker.
    chain_start = row_starts(np.bincount(chain, minlength=len(chain_first)) + 1)
    innermost = chain_start[1:] - 1
    markers_before = chain_start[:-1] - np.arange(len(chain_first))
    behind = innermost[chain] + markers_before[chain] - np.arange(1, len(markers) + 1)
    first, end = np.empty(int(chain_start[-1]), np.int64), np.empty(int(chain_start[-1]), np.int64)
    first[innermost], first[behind] = chain_first, markers + 1
    end[chain_start[:-1]], end[behind + 1] = chain_end, markers
    marker = np.zeros(len(first), np.uint64)
    marker[behind] = fields.words[markers]
    is_deferring = marker == _USER_DEFERRED
    if is_deferring.any():  # the word behind this marker is no address
        first = np.minimum(first + is_deferring, end)
    return _Parts(first, end - first, marker, ~is_deferring, chain_start)


def _markers(words: UInt64Column, first: Int64Column, end: Int64Column) -> tuple[Int64Column, Int64Column]:
    """(position of every marker, row of its chain) in the chains ``first`` .. ``end``, which ascend; other fields may hold
    such words too."""
    if not len(first):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    low, high = int(first[0]), int(end[-1])
    lengths = end - first
    if high - low > _SPARSE * int(lengths.sum()):
        positions, start = row_positions(first, lengths)
        found = np.flatnonzero(words[positions] >= _MARKER)
        return positions[found], np.searchsorted(start, found, "right") - 1
    large = np.flatnonzero(words[low:high] >= _MARKER) + low
    chain = np.searchsorted(first, large, "right") - 1
    is_inside = large < end[chain]
    return (large, chain) if is_inside.all() else (large[is_inside], chain[is_inside])


def _modes(addresses: UInt64Column, parts: _Parts) -> UInt8Column:
    """For 32-bit kernels and guests: the mode of every address by the marker that introduced it, else by its half."""
    is_kernel = parts.marker == np.uint64(spec.PERF_CONTEXT_KERNEL)
    marked = np.where(np.isin(parts.marker, _GUEST_MARKERS), CpuMode.GUEST, np.where(is_kernel, CpuMode.KERNEL, CpuMode.USER))
    by_half = np.where(addresses >= _KERNEL_HALF, CpuMode.KERNEL, CpuMode.USER)
    is_marked = np.repeat(parts.marker != 0, parts.length)
    return np.where(is_marked, np.repeat(marked, parts.length), by_half).astype(np.uint8)


def _is_high_below_user(lists: AddressLists) -> BoolColumn:
    """Addresses of the kernel's half that would have called user code: what a broken frame-pointer chain took for a return
    address, such as a negative number."""
    is_high = lists.addresses >= _KERNEL_HALF
    calls_user = is_high[:-1] > is_high[1:]
    ends = lists.start[1:-1]
    calls_user[ends[(ends > 0) & (ends < len(is_high))] - 1] = False
    found = np.zeros(len(is_high), np.bool_)
    # Chains that are broken so are few.
    rows = distinct(np.searchsorted(lists.start, np.flatnonzero(calls_user), "right") - 1)
    positions, start = row_positions(lists.start[:-1][rows], np.diff(lists.start)[rows])
    is_high = is_high[positions]
    row = np.repeat(np.arange(len(rows)), np.diff(start))
    innermost_user = np.full(len(rows), -1, np.int64)
    user = np.flatnonzero(~is_high)
    innermost_user[row[user]] = user  # the last assignment stays
    found[positions[is_high & (np.arange(len(is_high)) < innermost_user[row])]] = True
    return found


class AddressResolver:
    """Frame codes of runtime addresses; each distinct (address space, address) is resolved once."""

    def __init__(self, places: Places, mappings: MappingTable, is_kernel_high: bool) -> None:
        self._places = places
        self._is_kernel_high = is_kernel_high
        self._mappings = mappings
        self._generation = -1
        self._keys = Interner(bits=_KEY_BITS)
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
            self._generation, self._keys, self._place_of = generation, Interner(bits=_KEY_BITS), np.zeros(0, np.int32)
        if lists.mode is not None:
            return self._by_mode(lists, space)
        addresses = lists.addresses
        local = (space - (generation << _GENERATION_BITS)).astype(np.uint64) << _ADDRESS_BITS
        # Space and address share a key; kernel addresses have all of the space's bits set already.
        is_one_space = bool(len(local)) and bool((local == local[0]).all())
        keys = addresses | (local[0] if is_one_space else np.repeat(local, np.diff(lists.start)))
        is_odd = addresses - _ADDRESS_LIMIT < _KERNEL_START - _ADDRESS_LIMIT
        is_odd |= _is_high_below_user(lists)
        if not is_odd.any() and (addresses.all() or local.all()):
            return self._interned(keys, generation)
        return self._with_odd(lists, keys, np.flatnonzero(is_odd | (addresses == 0)), generation)

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
        return self._place_of.take(numbers)

    def _with_odd(self, lists: AddressLists, keys: UInt64Column, odd: Int64Column, generation: int) -> Int32Column:
        """Addresses that no process can have (broken frame-pointer chains) go past the table."""
        odd_places = self._places.user(np.full(len(odd), -1, np.int32), lists.addresses[odd])
        if len(odd) == len(keys):
            return odd_places
        is_usual = np.ones(len(keys), np.bool_)
        is_usual[odd] = False
        keys[odd] = keys[is_usual.argmax()]  # stands in for them, and is asked for anyway
        places = self._interned(keys, generation)
        places[odd] = odd_places
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
