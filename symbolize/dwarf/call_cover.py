"""Which addresses an inlined call covers, read from its DIE without the rest of its attributes.

Most calls of a function cover none of the addresses that are asked for, so this is what looking into functions spends its time
with.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Sequence

from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.abbreviations import Shape
from symbolize.dwarf.attributes import STRUCT_CODES, AttributeSpec
from symbolize.dwarf.constants import (
    FIXED_FORM_SIZES,
    INDEXED_ADDRESS_FORMS,
    DW_AT_high_pc,
    DW_AT_low_pc,
    DW_AT_ranges,
    DW_FORM_addr,
)
from symbolize.dwarf.ranges import ADDRESS_MASK, Range, RangeReader, scope_ranges
from symbolize.dwarf.unit_reader import OpenUnit

Unpacker = Callable[[bytes, int], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Layout:
    """``span``: reads (address, length) of the call, ``listed``: (DW_AT_ranges,), each None where the DIE states something
    else, or at no fixed place.  ``form``: of DW_AT_ranges."""

    span: Unpacker | None
    listed: Unpacker | None
    form: int


class CallCover:
    """The calls of one unit."""

    def __init__(self, unit: OpenUnit) -> None:
        self._unit = unit
        self._ranges = RangeReader(unit.root)
        self._layouts: dict[int, _Layout] = {}

    def covered(self, code: int, position: int, addresses: Sequence[int]) -> Sequence[int]:
        """Those of ``addresses``, ascending, that the DIE with abbreviation ``code`` and attributes at ``position`` covers.
        Raises one of MALFORMED."""
        layout = self._layouts.get(code)
        if layout is None:
            layout = self._layouts[code] = _layout(self._unit.abbreviations[code].shape)
        if layout.span is not None:
            low, size = layout.span(self._unit.data, position)
            high = low + size & ADDRESS_MASK
            if low > addresses[-1] or high <= addresses[0]:
                return ()
            return addresses[bisect_left(addresses, low) : bisect_left(addresses, high)]
        found: list[int] = []
        first, last = addresses[0], addresses[-1]
        for low, high in self._listed(layout, code, position):
            if low <= last and first < high:
                found += addresses[bisect_left(addresses, low) : bisect_left(addresses, high)]
        return found if len(found) < 2 else sorted(set(found))

    def _listed(self, layout: _Layout, code: int, position: int) -> list[Range]:
        unit = self._unit
        if layout.listed is not None:
            return self._ranges.read(layout.form, layout.listed(unit.data, position)[0])
        shape = unit.abbreviations[code].shape
        return scope_ranges(unit.root, self._ranges, shape.forms, shape.scope_reader(unit.data, position)[0])


def _layout(shape: Shape) -> _Layout:
    forms = shape.forms
    if DW_AT_ranges in forms:
        return _Layout(None, _unpacker(shape.specs, (DW_AT_ranges,)), forms[DW_AT_ranges])
    is_length = forms[DW_AT_high_pc] not in INDEXED_ADDRESS_FORMS | {DW_FORM_addr}
    if is_length and forms[DW_AT_low_pc] == DW_FORM_addr:
        return _Layout(_unpacker(shape.specs, (DW_AT_low_pc, DW_AT_high_pc)), None, 0)
    return _Layout(None, None, 0)


def _unpacker(specs: tuple[AttributeSpec, ...], wanted: tuple[int, ...]) -> Unpacker | None:
    """Reads attributes that follow one another in this order; None when their places vary."""
    layout, left = "<", list(wanted)
    for attribute, form, _ in specs:
        size = FIXED_FORM_SIZES.get(form)
        if size is None:
            return None
        if attribute != left[0]:
            layout += f"{size}x"
            continue
        if not STRUCT_CODES.get(size):
            return None
        layout += STRUCT_CODES[size]
        left.pop(0)
        if not left:
            return struct.Struct(layout).unpack_from
    return None
