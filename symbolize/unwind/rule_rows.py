"""Distinct unwinding rules, each stored once, as columns that a batch of frames can be looked up in.

Programs repeat a few hundred combinations of rules over millions of code bytes, so a row number per code byte and a small
table of rows replace the rules themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from profiler.model.arrays import BoolColumn, Int8Column, Int64Column, UInt64Column
from symbolize.elf.call_frame_program import CFA_BY_EXPRESSION, CfaRule, RegisterRule, RuleKind
from symbolize.elf.dwarf_encoding import sleb128
from symbolize.unwind.expression import registers_used
from symbolize.unwind.registers import RBP, REGISTER_COUNT, RIP, RSP

NOT_COMPILED = 0
NO_RULES = 1
_FIRST_ROW = 2

_DW_OP_BREG0 = 0x70


class CfaBase(IntEnum):
    """What the canonical frame address is computed from."""

    STACK_POINTER = 0
    FRAME_POINTER = 1
    EXPRESSION = 2
    OTHER_REGISTER = 3
    NONE = 4


class FramePointerRule(IntEnum):
    """Where the caller's RBP is: unchanged, in memory at CFA + offset, in memory at RBP + offset."""

    SAME = 0
    AT_CFA = 1
    AT_FRAME_POINTER = 2


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One distinct combination of rules, complete."""

    cfa: CfaRule
    rules: tuple[tuple[int, RegisterRule], ...]
    is_signal_frame: bool
    return_register: int


@dataclass(frozen=True, slots=True)
class RuleColumns:
    """The part of the rows that the quick step uses; indexed by row.

    ``needs_all_registers``: the row cannot be applied with RSP, RBP and RIP alone.  ``return_offset``: the return address
    lies at CFA + this.  ``ends_thread``: the return address is undefined.  ``uses_frame_pointer``: the CFA is computed from
    RBP and nothing else.
    """

    cfa_base: Int8Column
    cfa_register: Int64Column
    cfa_offset: UInt64Column
    frame_pointer_rule: Int8Column
    frame_pointer_offset: UInt64Column
    return_offset: UInt64Column
    ends_thread: BoolColumn
    needs_all_registers: BoolColumn
    is_signal_frame: BoolColumn
    uses_frame_pointer: BoolColumn


class RuleRows:
    """Interning table; grows, rows never change."""

    def __init__(self) -> None:
        nothing = RuleRow(None, (), False, RIP)
        self._rows = [nothing] * _FIRST_ROW
        self._numbers: dict[RuleRow, int] = {}
        self._packed = [_pack(nothing)] * _FIRST_ROW
        self._columns = _columns(self._packed)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, number: int) -> RuleRow:
        return self._rows[number]

    def intern(self, row: RuleRow) -> int:
        """The number of ``row``, at least 2; ``NO_RULES`` for a row that defines no CFA."""
        number = self._numbers.get(row)
        if number is None:
            number = len(self._rows) if row.cfa is not None else NO_RULES
            self._numbers[row] = number
            if number != NO_RULES:
                self._rows.append(row)
                self._packed.append(_pack(row))
        return number

    def columns(self) -> RuleColumns:
        """All rows as columns; made anew only after rows were added."""
        if len(self._columns.cfa_base) != len(self._packed):
            self._columns = _columns(self._packed)
        return self._columns


_PackedRow = tuple[int, int, int, int, int, int, bool, bool, bool, bool]


def _pack(row: RuleRow) -> _PackedRow:
    rules = dict(row.rules)
    base, register, offset, cfa_is_simple = _packed_cfa(row.cfa)
    pointer_rule, pointer_offset, pointer_is_simple = _packed_frame_pointer(rules.get(RBP))
    kind, value = rules.get(row.return_register, (RuleKind.UNDEFINED, 0))
    return_offset = value if kind == RuleKind.OFFSET and isinstance(value, int) else 0
    is_simple = (
        cfa_is_simple
        and pointer_is_simple
        and kind in (RuleKind.OFFSET, RuleKind.UNDEFINED)
        and RSP not in rules
        and not row.is_signal_frame
    )
    return (
        base,
        register,
        offset,
        pointer_rule,
        pointer_offset,
        return_offset,
        kind == RuleKind.UNDEFINED,
        not is_simple,
        row.is_signal_frame,
        _uses_frame_pointer(row.cfa),
    )


def _uses_frame_pointer(cfa: CfaRule) -> bool:
    if cfa is None:
        return False
    register, value = cfa
    return registers_used(value) == {RBP} if isinstance(value, bytes) else register == RBP


def _packed_cfa(cfa: CfaRule) -> tuple[CfaBase, int, int, bool]:
    """(base, register, offset, can be computed from RSP, RBP and RIP)."""
    if cfa is None:
        return CfaBase.NONE, 0, 0, True
    register, value = cfa
    if register == CFA_BY_EXPRESSION and isinstance(value, bytes):
        return CfaBase.EXPRESSION, 0, 0, registers_used(value) <= {RSP, RBP, RIP}
    offset = value if isinstance(value, int) else 0
    bases = {RSP: CfaBase.STACK_POINTER, RBP: CfaBase.FRAME_POINTER}
    return bases.get(register, CfaBase.OTHER_REGISTER), register, offset, True


def _packed_frame_pointer(rule: RegisterRule | None) -> tuple[FramePointerRule, int, bool]:
    """(rule, offset, is one of the three simple ones)."""
    kind, value = rule or (RuleKind.SAME_VALUE, 0)
    if kind == RuleKind.SAME_VALUE:
        return FramePointerRule.SAME, 0, True
    if kind == RuleKind.OFFSET and isinstance(value, int):
        return FramePointerRule.AT_CFA, value, True
    if kind == RuleKind.EXPRESSION and isinstance(value, bytes) and value[:1] == bytes([_DW_OP_BREG0 + RBP]):
        # Functions that realign their stack save RBP at (RBP), which need not be at a fixed distance from the CFA.
        try:
            offset, end = sleb128(value, 1)
        except IndexError:
            return FramePointerRule.SAME, 0, False
        return FramePointerRule.AT_FRAME_POINTER, offset, end == len(value)
    return FramePointerRule.SAME, 0, False


def _columns(packed: list[_PackedRow]) -> RuleColumns:
    columns = list(zip(*packed, strict=True))
    numbers = [np.array(column, np.int64) for column in (columns[0], columns[1], columns[3])]
    words = [_words(columns[position]) for position in (2, 4, 5)]
    flags = [np.array(column, np.bool_) for column in columns[6:]]
    return RuleColumns(
        cfa_base=numbers[0].astype(np.int8),
        cfa_register=np.clip(numbers[1], 0, REGISTER_COUNT - 1),
        cfa_offset=words[0],
        frame_pointer_rule=numbers[2].astype(np.int8),
        frame_pointer_offset=words[1],
        return_offset=words[2],
        ends_thread=flags[0],
        needs_all_registers=flags[1],
        is_signal_frame=flags[2],
        uses_frame_pointer=flags[3],
    )


def _words(values: tuple[int, ...]) -> UInt64Column:
    """Signed offsets as the words that add up the same modulo 2**64."""
    return np.array([value % 2**64 for value in values], np.uint64)
