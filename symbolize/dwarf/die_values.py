"""Attributes of many DIEs of a unit, read at once where they have fixed places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from profiler.model.arrays import Int64Column, UInt8Column, UInt64Column, distinct
from symbolize.dwarf.abbreviations import SCOPE_ATTRIBUTES, Shape
from symbolize.dwarf.attributes import AttributeSpec
from symbolize.dwarf.constants import FIXED_FORM_SIZES, DW_FORM_implicit_const
from symbolize.dwarf.unit_reader import OpenUnit

REGISTER_BYTES = 8
LARGEST_REGISTER = 0xFFFFFFFFFFFFFFFF


def scope_values(unit: OpenUnit, code: Int64Column, position: Int64Column) -> npt.NDArray[np.uint64]:
    """uint64[n, SCOPE_ATTRIBUTES], 0 = absent, of DIEs by their abbreviation's code and the position of their attributes.
    Raises one of MALFORMED when a value is outside of the unit or has more than 64 bits."""
    values = np.zeros((len(code), len(SCOPE_ATTRIBUTES)), np.uint64)
    data = np.frombuffer(unit.data, np.uint8)
    for each in distinct(code).tolist():
        rows = np.flatnonzero(code == each)
        values[rows] = _values(data, unit, unit.abbreviations[each].shape, position[rows])
    return values


def _values(data: UInt8Column, unit: OpenUnit, shape: Shape, position: Int64Column) -> npt.NDArray[np.uint64]:
    places = _places(shape.specs)
    if places is None:
        rows = [shape.scope_reader(unit.data, at)[0] for at in position.tolist()]
        return np.array([[_unsigned(value) for value in row] for row in rows], np.uint64).reshape(-1, len(SCOPE_ATTRIBUTES))
    values = np.zeros((len(position), len(SCOPE_ATTRIBUTES)), np.uint64)
    for slot, offset, size, constant in places:
        values[:, slot] = _numbers(data, position + offset, size) if size else _unsigned(constant)
    return values


def _unsigned(value: int) -> int:
    return value if value >= 0 else value & LARGEST_REGISTER


def _numbers(data: UInt8Column, position: Int64Column, size: int) -> UInt64Column:
    table = np.zeros((len(position), REGISTER_BYTES), np.uint8)
    for byte in range(size):
        table[:, byte] = data[position + byte]
    return table.view("<u8").reshape(-1)


def _places(specs: Sequence[AttributeSpec]) -> list[tuple[int, int, int, int]] | None:
    """(place in a row, bytes from the first attribute on, size, value where the size is 0) of the attributes that count; None
    when one has no fixed place or no number of fixed size."""
    places: list[tuple[int, int, int, int]] = []
    offset = 0
    left = sum(attribute in SCOPE_ATTRIBUTES for attribute, _, _ in specs)
    for attribute, form, constant in specs:
        size = 0 if form == DW_FORM_implicit_const else FIXED_FORM_SIZES.get(form, -1)
        if left and size < 0:
            return None
        if attribute in SCOPE_ATTRIBUTES:
            if size > REGISTER_BYTES or (size == 0 and form != DW_FORM_implicit_const):
                return None
            places.append((SCOPE_ATTRIBUTES.index(attribute), offset, size, constant))
            left -= 1
        offset += size
    return places
