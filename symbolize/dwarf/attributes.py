"""Reading and skipping the attributes of a DIE (DWARF 5, section 7.5.5).

Every value is an ``int`` here: a number, an offset, an index, or for DW_FORM_string the position of the text in the unit's
bytes.  What it means depends on the form, which the caller keeps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from operator import itemgetter
from typing import Any, NamedTuple

from symbolize.dwarf.constants import (
    BLOCK_FORMS,
    FIXED_FORM_SIZES,
    LEB128_FORMS,
    WIDE_FORM,
    DW_FORM_implicit_const,
    DW_FORM_indirect,
    DW_FORM_sdata,
    DW_FORM_string,
)
from symbolize.dwarf.leb128 import read_signed, read_unsigned, skip_number

# Values of chosen attributes in the order asked; 0 = attribute absent.
Row = tuple[int, ...]
RowReader = Callable[[bytes, int], tuple[Row, int]]
# (bytes of all attributes or -1 when they vary, function that gives the position behind them)
Skipper = tuple[int, Callable[[bytes, int], int]]
# (attribute, form or WIDE_FORM | form, value of DW_FORM_implicit_const): one pair of an abbreviation
AttributeSpec = tuple[int, int, int]
STRUCT_CODES = {0: "", 1: "B", 2: "H", 4: "I", 8: "Q"}


class StepKind(IntEnum):
    FIXED = 0
    LEB128 = 1
    SIGNED_LEB128 = 2
    BLOCK = 3
    TEXT = 4
    CONSTANT = 5
    INDIRECT = 6


class Step(NamedTuple):
    """``amount``: bytes of a FIXED value or of a BLOCK's length field (0 = LEB128), value of a CONSTANT.
    ``slot``: where the value goes in the row, -1 = nowhere."""

    kind: StepKind
    amount: int
    slot: int


def read_value(data: bytes, position: int, spec: AttributeSpec) -> tuple[int, int, int]:
    """(form, value, position behind) of one attribute; a block's value is its position.  IndexError past the end,
    ValueError for an unknown form."""
    _, form, constant = spec
    if form == DW_FORM_indirect:
        form, position = read_unsigned(data, position)
        if form in (DW_FORM_indirect, DW_FORM_implicit_const):
            raise ValueError("form cannot be indirect")
    step = _step(form, constant, 0)
    value, position = _read_step(data, position, step)
    return form & ~WIDE_FORM, value, position


def _step(form: int, constant: int, slot: int) -> Step:
    if form == DW_FORM_implicit_const:
        return Step(StepKind.CONSTANT, constant, slot)
    if form in FIXED_FORM_SIZES:
        return Step(StepKind.FIXED, FIXED_FORM_SIZES[form], slot)
    if form in LEB128_FORMS:
        return Step(StepKind.SIGNED_LEB128 if form == DW_FORM_sdata else StepKind.LEB128, 0, slot)
    if form in BLOCK_FORMS:
        return Step(StepKind.BLOCK, BLOCK_FORMS[form], slot)
    if form == DW_FORM_string:
        return Step(StepKind.TEXT, 0, slot)
    if form == DW_FORM_indirect:
        return Step(StepKind.INDIRECT, 0, slot)
    raise ValueError(f"unknown attribute form 0x{form:x}")


def _read_step(data: bytes, position: int, step: Step) -> tuple[int, int]:
    kind, amount, _ = step
    if kind == StepKind.FIXED:
        end = position + amount
        if end > len(data):
            raise IndexError("attribute past the end of the unit")
        return int.from_bytes(data[position:end], "little") if amount else 1, end
    if kind == StepKind.LEB128:
        return read_unsigned(data, position)
    if kind == StepKind.SIGNED_LEB128:
        return read_signed(data, position)
    if kind == StepKind.TEXT:
        return position, data.index(0, position) + 1
    if kind == StepKind.CONSTANT:
        return amount, position
    if kind == StepKind.INDIRECT:
        _, value, end = read_value(data, position, (0, DW_FORM_indirect, 0))
        return value, end
    return position, _block_end(data, position, amount)


def _block_end(data: bytes, position: int, length_bytes: int) -> int:
    if length_bytes:
        end = position + length_bytes
        if end > len(data):
            raise IndexError("block past the end of the unit")
        return end + int.from_bytes(data[position:end], "little")
    size, position = read_unsigned(data, position)
    return position + size


def with_wide_forms(specs: tuple[AttributeSpec, ...], wide: frozenset[int]) -> tuple[AttributeSpec, ...]:
    """``specs`` with the forms of ``wide`` marked as taking 8 bytes."""
    return tuple([(attribute, WIDE_FORM | form if form in wide else form, value) for attribute, form, value in specs])


def skipper(specs: tuple[AttributeSpec, ...]) -> Skipper:
    """How to get behind the attributes; ValueError for an unknown form."""
    steps = _merge_fixed([_step(form, 0, -1) for _, form, _ in specs])
    variable = [step for step in steps if step.kind != StepKind.FIXED]
    if not variable:
        size = sum(step.amount for step in steps)
        return size, lambda data, position: position + size
    before = steps[0].amount if steps[0].kind == StepKind.FIXED else 0
    after = steps[-1].amount if steps[-1].kind == StepKind.FIXED else 0
    if len(variable) == 1 and variable[0].kind in (StepKind.LEB128, StepKind.SIGNED_LEB128):
        return -1, lambda data, position: skip_number(data, position + before) + after
    if len(variable) == 1 and variable[0].kind == StepKind.TEXT:
        return -1, lambda data, position: data.index(0, position + before) + 1 + after
    if len(variable) == 1 and variable[0] == Step(StepKind.BLOCK, 0, -1):
        return -1, _one_block_skipper(before, after)
    return -1, _general_skipper(steps)


def _merge_fixed(steps: list[Step]) -> list[Step]:
    merged: list[Step] = []
    for step in steps:
        if step.kind == StepKind.CONSTANT or (step.kind == StepKind.FIXED and step.amount == 0):
            continue
        if step.kind == StepKind.FIXED and merged and merged[-1].kind == StepKind.FIXED:
            merged[-1] = Step(StepKind.FIXED, merged[-1].amount + step.amount, -1)
        else:
            merged.append(step)
    return merged


def _one_block_skipper(before: int, after: int) -> Callable[[bytes, int], int]:
    behind_length = before + 1 + after

    def skip(data: bytes, position: int) -> int:
        size = data[position + before]
        if size < 0x80:
            return position + behind_length + size
        return _block_end(data, position + before, 0) + after

    return skip


def _general_skipper(steps: list[Step]) -> Callable[[bytes, int], int]:
    plan = [(int(step.kind), step.amount, step) for step in steps]

    def skip(data: bytes, position: int) -> int:
        for kind, amount, step in plan:
            if kind == 0:
                position += amount
            elif kind <= 2:
                while data[position] >= 0x80:
                    position += 1
                position += 1
            elif kind == 3 and not amount and data[position] < 0x80:
                position += data[position] + 1
            else:
                position = _read_step(data, position, step)[1]
        return position

    return skip


def row_reader(specs: tuple[AttributeSpec, ...], wanted: tuple[int, ...]) -> RowReader:
    """A function (data, position) -> (values of the ``wanted`` attributes, position behind all attributes)."""
    steps = [
        _step(form, constant, wanted.index(attribute) if attribute in wanted else -1) for attribute, form, constant in specs
    ]
    if all(step.kind in (StepKind.FIXED, StepKind.CONSTANT) for step in steps) and all(
        step.slot < 0 or step.kind == StepKind.CONSTANT or step.amount in STRUCT_CODES for step in steps
    ):
        return _fixed_row_reader(steps, len(wanted))
    return _general_row_reader(steps, len(wanted))


def _fixed_row_reader(steps: list[Step], row_length: int) -> RowReader:
    """One ``struct`` call reads all values; a pick puts them into the order of a row."""
    layout, size = "<", 0
    unpacked: list[int] = []
    constants = [0]
    constant_slots: dict[int, int] = {}
    for step in steps:
        if step.kind == StepKind.CONSTANT or step.amount == 0:
            constant_slots[step.slot] = len(constants)
            constants.append(step.amount if step.kind == StepKind.CONSTANT else 1)
            continue
        size += step.amount
        if step.slot < 0:
            layout += f"{step.amount}x"
        else:
            layout += STRUCT_CODES[step.amount]
            unpacked.append(step.slot)
    unpack = struct.Struct(layout).unpack_from
    sources = [
        unpacked.index(slot) if slot in unpacked else len(unpacked) + constant_slots.get(slot, 0) for slot in range(row_length)
    ]
    pick: Callable[[tuple[Any, ...]], Row] = itemgetter(*sources) if row_length > 1 else lambda values: (values[sources[0]],)
    tail = tuple(constants)
    return lambda data, position: (pick(unpack(data, position) + tail), position + size)


def _general_row_reader(steps: list[Step], row_length: int) -> RowReader:
    empty = [0] * row_length

    def read(data: bytes, position: int) -> tuple[Row, int]:
        row = empty.copy()
        for step in steps:
            value, position = _read_step(data, position, step)
            if step.slot >= 0:
                row[step.slot] = value
        return tuple(row), position

    return read
