"""Distinct unwinding rules, each stored once, as columns that a batch of frames can be looked up in.

Programs repeat a few hundred combinations of rules over millions of code bytes, so a row number per code byte and a small
table of rows replace the rules themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from profiler.model.arrays import BoolColumn, Int64Column, UInt8Column, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.call_frame_program import CfaRule, RegisterRule, RuleKind
from symbolize.elf.dwarf_encoding import sleb128
from symbolize.unwind.registers import RBP, REGISTER_COUNT, RIP, RSP

NOT_COMPILED = 0  # what memory holds before anything is written to it
NO_RULES = 1
_FIRST_ROW = 2

_DW_OP_BREG0 = 0x70
_USUAL_RETURN_OFFSET = -8


# What the quick step must know of a row, as bits.
CFA_BY_FRAME_POINTER = 1
CFA_BY_EXPRESSION_BIT = 2
CFA_BY_OTHER_REGISTER = 4
POINTER_SAVED_AT_CFA = 8  # the caller's RBP is in memory at CFA + offset
POINTER_SAVED_AT_POINTER = 16  # ... at RBP + offset
ENDS_THREAD = 32  # the return address is undefined
NEEDS_ALL_REGISTERS = 64  # cannot be applied with RSP, RBP and RIP alone
HAS_NO_RULES = 128


class RuleRow(NamedTuple):
    """One distinct combination of rules, complete; ``rules`` by ascending register."""

    cfa: CfaRule
    rules: tuple[tuple[int, RegisterRule], ...]
    is_signal_frame: bool
    return_register: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RuleColumns:
    """The part of the rows that the quick step uses; indexed by row.

    ``flags``: the bits above.  ``cfa_register``: DWARF number, for ``CFA_BY_OTHER_REGISTER``.  ``cfa_offset``,
    ``pointer_offset``: modulo 2**64; the latter is 0 where RBP is not saved.  ``return_offset``: the return address lies at
    CFA + this.  ``uses_frame_pointer``: the CFA is computed from RBP and nothing else.
    """

    flags: UInt8Column
    cfa_register: Int64Column
    cfa_offset: UInt64Column
    pointer_offset: UInt64Column
    return_offset: UInt64Column
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
        if len(self._columns.flags) != len(self._packed):
            self._columns = _columns(self._packed)
        return self._columns


_PackedRow = tuple[int, int, int, int, int, bool, bool]


def _pack(row: RuleRow) -> _PackedRow:
    """One row of ``RuleColumns``."""
    rules = dict(row.rules)
    cfa_flags, register, offset = _packed_cfa(row.cfa)
    pointer_flags, pointer_offset = _packed_frame_pointer(rules.get(RBP))
    kind, value = rules.get(row.return_register, (RuleKind.UNDEFINED, 0))
    flags = cfa_flags | pointer_flags
    if kind == RuleKind.UNDEFINED:
        flags |= ENDS_THREAD
    if kind not in (RuleKind.OFFSET, RuleKind.UNDEFINED) or RSP in rules or row.is_signal_frame:
        flags |= NEEDS_ALL_REGISTERS
    return_offset = value if kind == RuleKind.OFFSET and isinstance(value, int) else _USUAL_RETURN_OFFSET
    return flags, register, offset, pointer_offset, return_offset, row.is_signal_frame, _uses_frame_pointer(row.cfa)


def _uses_frame_pointer(cfa: CfaRule) -> bool:
    if cfa is None:
        return False
    register, value = cfa
    return _registers_used(value) == {RBP} if isinstance(value, bytes) else register == RBP


def _registers_used(expression: bytes) -> frozenset[int]:
    from symbolize.unwind.expression import registers_used

    return registers_used(expression)


def _packed_cfa(cfa: CfaRule) -> tuple[int, int, int]:
    """(flags, register, offset)."""
    if cfa is None:
        return HAS_NO_RULES, 0, 0
    register, value = cfa
    if isinstance(value, bytes):
        is_known = _registers_used(value) <= {RSP, RBP, RIP}
        return (CFA_BY_EXPRESSION_BIT if is_known else NEEDS_ALL_REGISTERS), 0, 0
    if register in (RSP, RBP):
        return (CFA_BY_FRAME_POINTER if register == RBP else 0), register, value
    if register >= REGISTER_COUNT:
        return NEEDS_ALL_REGISTERS, 0, 0
    return CFA_BY_OTHER_REGISTER, register, value


def _packed_frame_pointer(rule: RegisterRule | None) -> tuple[int, int]:
    """(flags, offset)."""
    kind, value = rule or (RuleKind.SAME_VALUE, 0)
    if kind == RuleKind.SAME_VALUE:
        return 0, 0
    if kind == RuleKind.OFFSET and isinstance(value, int):
        return POINTER_SAVED_AT_CFA, value
    if kind == RuleKind.EXPRESSION and isinstance(value, bytes) and value[:1] == bytes([_DW_OP_BREG0 + RBP]):
        # Functions that realign their stack save RBP at (RBP), which need not be at a fixed distance from the CFA.
        try:
            offset, end = sleb128(value, 1)
        except IndexError:
            return NEEDS_ALL_REGISTERS, 0
        return (POINTER_SAVED_AT_POINTER, offset) if end == len(value) else (NEEDS_ALL_REGISTERS, 0)
    return NEEDS_ALL_REGISTERS, 0


def _columns(packed: list[_PackedRow]) -> RuleColumns:
    flags, register, offset, pointer_offset, return_offset, is_signal, by_pointer = zip(*packed, strict=True)
    return RuleColumns(
        flags=np.array(flags, np.uint8),
        cfa_register=np.array(register, np.int64),
        cfa_offset=_words(offset),
        pointer_offset=_words(pointer_offset),
        return_offset=_words(return_offset),
        is_signal_frame=np.array(is_signal, np.bool_),
        uses_frame_pointer=np.array(by_pointer, np.bool_),
    )


def _words(values: tuple[int, ...]) -> UInt64Column:
    """Signed offsets as the words that add up the same modulo 2**64."""
    return np.array([value % 2**64 for value in values], np.uint64)
