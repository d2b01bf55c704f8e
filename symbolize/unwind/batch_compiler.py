"""Call frame instructions of many FDEs at once: one instruction of every FDE per numpy step.

Compilers use a dozen instructions for nearly everything; an FDE that needs another one, or is unusual in any other way, is left
to the interpreter in ``symbolize.elf.call_frame_program``, whose rows these are equal to.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import BoolColumn, Int64Column, UInt8Column, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.elf import call_frame_instructions as cfi
from symbolize.elf.call_frame_program import CfaRule, FrameProgram, RegisterRule, RuleKind
from symbolize.elf.call_frame_section import CallFrameSection, CommonInformation

_TRACKED = (3, 6, 12, 13, 14, 15, 16)  # what functions save: RBX, RBP, R12 to R15, and the return address
_COLUMNS = 2 + len(_TRACKED)  # CFA register, CFA offset, and the offset of every tracked register's rule
_NO_RULE = -(2**62)
_COLUMN_OF = np.full(256, -1, np.int64)
_COLUMN_OF[list(_TRACKED)] = range(2, _COLUMNS)
_NESTING = 4
_FEW = 24  # so few programs still running are cheaper to interpret one by one
_POINTER_ENCODING = 0x1B  # pcrel, sdata4
_SHORTEST_FDE = 13  # CIE pointer, two 4-byte numbers and the size of the augmentation data
_LONGEST_LEB = 4
_ADDRESS_LIMIT = 2**62


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CompiledRows:
    """Rows of the FDEs ``fde`` (positions in what was asked, ascending; rows of one FDE by ascending address).

    ``pattern``: row of ``patterns``, the distinct (CFA rule, register rules).  ``code_end``: end of the FDE's code.
    """

    fde: Int64Column
    start: Int64Column
    code_end: Int64Column
    pattern: Int64Column
    patterns: list[tuple[CfaRule, dict[int, RegisterRule]]]


def compile_batch(section: CallFrameSection, program: FrameProgram, offsets: Int64Column) -> CompiledRows:
    """Rows of those FDEs at ``offsets`` (of .eh_frame) that have nothing unusual; the others are absent."""
    if not section.is_eh_frame or section.link_address >= _ADDRESS_LIMIT:
        nothing = np.zeros(0, np.int64)
        return CompiledRows(nothing, nothing, nothing, nothing, [])
    machine = _Machine(_programs(section, program, offsets))
    machine.run()
    return machine.rows()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Programs:
    """n programs: ``position`` .. ``end`` in ``code``; code from link address ``start`` to ``code_end``; ``initial``: state
    set up by the CIE, int64[n, columns]; ``is_usual``: False for those that are not for this compiler."""

    code: UInt8Column
    position: Int64Column
    end: Int64Column
    start: Int64Column
    code_end: Int64Column
    initial: Int64Column
    code_alignment: Int64Column
    data_alignment: Int64Column
    is_usual: BoolColumn


def _programs(section: CallFrameSection, program: FrameProgram, offsets: Int64Column) -> _Programs:
    code = np.frombuffer(section.data, np.uint8)
    length = _unsigned32(code, offsets)
    end = offsets + 4 + length
    common_offset = offsets + 4 - _unsigned32(code, offsets + 4)
    distinct, which = np.unique(common_offset, return_inverse=True)
    states = [_common_state(section, program, offset) for offset in distinct.tolist()]
    initial = np.array([state[0] for state in states], np.int64).reshape(len(states), _COLUMNS)
    alignments = np.array([state[1:3] for state in states], np.int64).reshape(len(states), 2)
    is_usual = np.array([state[3] for state in states], np.bool_)[which]
    is_usual &= (length >= _SHORTEST_FDE) & (length < 2**31) & (end <= len(code))
    start = section.link_address + offsets + 8 + _signed32(code, offsets + 8)
    augmentation, position = _uleb(code, offsets + 16)
    return _Programs(
        code=code,
        position=position + augmentation,
        end=end,
        start=start,
        code_end=start + _unsigned32(code, offsets + 12),
        initial=initial[which],
        code_alignment=alignments[which, 0],
        data_alignment=alignments[which, 1],
        is_usual=is_usual & (augmentation >= 0) & (start >= 0),
    )


def _common_state(section: CallFrameSection, program: FrameProgram, offset: int) -> tuple[list[int], int, int, bool]:
    """(initial state, code alignment, data alignment, is it a CIE that this compiler knows)."""
    unknown = ([_NO_RULE] * _COLUMNS, 1, 1, False)
    try:
        common = section.common(offset)
        cfa, rules = program.initial_state(common)
    except FormatError:
        return unknown
    if cfa is None or isinstance(cfa[1], bytes) or not _is_usual(common, rules):
        return unknown
    state = [cfa[0], cfa[1], *[_NO_RULE] * len(_TRACKED)]
    for register, (_, value) in rules.items():
        state[_COLUMN_OF[register]] = int(value)
    return state, common.code_alignment, common.data_alignment, True


def _is_usual(common: CommonInformation, rules: dict[int, RegisterRule]) -> bool:
    return (
        common.pointer_encoding == _POINTER_ENCODING
        and common.has_augmentation_data
        and not common.is_signal_frame
        and max(common.code_alignment, abs(common.data_alignment)) < 2**16
        and all(kind == RuleKind.OFFSET and register in _TRACKED for register, (kind, _) in rules.items())
    )


class _Machine:
    """Runs all programs side by side.  ``at`` arguments are the programs that an operation concerns."""

    def __init__(self, programs: _Programs) -> None:
        count = len(programs.position)
        self._programs = programs
        self._code = programs.code
        self._position = programs.position.copy()
        self._location = programs.start.copy()
        self._state = programs.initial.copy()
        self._saved = np.zeros((_NESTING, count, _COLUMNS), np.int64)
        self._depth = np.zeros(count, np.int64)
        self._is_usual = programs.is_usual.copy()
        self._emitted: list[tuple[Int64Column, Int64Column, Int64Column]] = []
        self._operations: dict[int, Callable[[Int64Column], None]] = {
            cfi.DW_CFA_nop: lambda at: None,
            cfi.DW_CFA_advance_loc1: lambda at: self._advance(at, self._operand(at, 1)),
            cfi.DW_CFA_advance_loc2: lambda at: self._advance(at, self._operand(at, 2)),
            cfi.DW_CFA_advance_loc4: lambda at: self._advance(at, self._operand(at, 4)),
            cfi.DW_CFA_remember_state: self._remember,
            cfi.DW_CFA_restore_state: self._restore_remembered,
            cfi.DW_CFA_def_cfa: self._define_cfa,
            cfi.DW_CFA_def_cfa_register: lambda at: self._set(at, 0),
            cfi.DW_CFA_def_cfa_offset: lambda at: self._set(at, 1),
            cfi.DW_CFA_GNU_args_size: lambda at: self._skip_leb(at),
        }

    def run(self) -> None:
        end = self._programs.end
        running = np.flatnonzero(self._is_usual & (self._position < end))
        while len(running) > _FEW:
            opcode = self._byte(running)
            self._position[running] += 1
            high, low = opcode >> 6, opcode & 0x3F
            self._advance(running[high == 1], low[high == 1])
            self._save_register(running[high == 2], low[high == 2])
            self._restore_register(running[high == 3], low[high == 3])
            plain = high == 0
            for number in np.flatnonzero(np.bincount(low[plain], minlength=64)).tolist():
                self._operations.get(number, self._give_up)(running[plain & (low == number)])
            running = running[self._is_usual[running] & (self._position[running] < end[running])]
        self._give_up(running)

    def rows(self) -> CompiledRows:
        self._give_up(np.flatnonzero(self._position > self._programs.end))  # the last operand was cut off
        self._emit(np.flatnonzero(self._is_usual))
        fde, start, state = (np.concatenate(parts) for parts in zip(*self._emitted, strict=True))
        order = np.argsort(fde, kind="stable")
        fde, start, state = fde[order], start[order], state[order]
        # Of rows at one location the last is in force, and nothing counts behind the function's end.
        is_last = np.append((fde[1:] != fde[:-1]) | (start[1:] != start[:-1]), True)[: len(fde)]
        kept = np.flatnonzero(is_last & self._is_usual[fde] & (start < self._programs.code_end[fde]))
        pattern, patterns = _distinct(state[kept])
        return CompiledRows(fde[kept], start[kept], self._programs.code_end[fde[kept]], pattern, patterns)

    def _emit(self, at: Int64Column) -> None:
        self._emitted.append((at, self._location[at], self._state[at]))

    def _give_up(self, at: Int64Column) -> None:
        self._is_usual[at] = False

    def _byte(self, at: Int64Column) -> Int64Column:
        return self._code[np.minimum(self._position[at], len(self._code) - 1)].astype(np.int64)

    def _operand(self, at: Int64Column, size: int) -> Int64Column:
        value = np.zeros(len(at), np.int64)
        for byte in range(size):
            value |= self._byte(at) << (8 * byte)
            self._position[at] += 1
        return value

    def _leb(self, at: Int64Column) -> Int64Column:
        value, self._position[at] = _uleb(self._code, self._position[at])
        self._give_up(at[value < 0])
        return value

    def _skip_leb(self, at: Int64Column) -> None:
        self._leb(at)

    def _advance(self, at: Int64Column, delta: Int64Column) -> None:
        if len(at):
            self._emit(at)
            self._location[at] += delta * self._programs.code_alignment[at]

    def _save_register(self, at: Int64Column, register: Int64Column) -> None:
        if len(at):
            column = _COLUMN_OF[register]
            offset = self._leb(at) * self._programs.data_alignment[at]
            known = column >= 0
            self._state[at[known], column[known]] = offset[known]
            self._give_up(at[~known])

    def _restore_register(self, at: Int64Column, register: Int64Column) -> None:
        if len(at):
            column = _COLUMN_OF[register]
            known = column >= 0
            self._state[at[known], column[known]] = self._programs.initial[at[known], column[known]]
            self._give_up(at[~known])

    def _remember(self, at: Int64Column) -> None:
        fits = self._depth[at] < _NESTING
        self._give_up(at[~fits])
        at = at[fits]
        self._saved[self._depth[at], at] = self._state[at]
        self._depth[at] += 1

    def _restore_remembered(self, at: Int64Column) -> None:
        has_saved = self._depth[at] > 0
        self._give_up(at[~has_saved])
        at = at[has_saved]
        self._depth[at] -= 1
        self._state[at] = self._saved[self._depth[at], at]

    def _define_cfa(self, at: Int64Column) -> None:
        self._set(at, 0)
        self._set(at, 1)

    def _set(self, at: Int64Column, column: int) -> None:
        self._state[at, column] = self._leb(at)


def _distinct(state: Int64Column) -> tuple[Int64Column, list[tuple[CfaRule, dict[int, RegisterRule]]]]:
    """(pattern of each row, the patterns)."""
    _, first, which = np.unique(_hash(state), return_index=True, return_inverse=True)
    if not np.array_equal(state[first][which], state):  # two patterns with one hash
        _, first, which = np.unique(state, axis=0, return_index=True, return_inverse=True)
    found: list[tuple[CfaRule, dict[int, RegisterRule]]] = []
    for register, offset, *saved in state[first].tolist():
        rules = {number: (RuleKind.OFFSET, value) for number, value in zip(_TRACKED, saved, strict=True) if value != _NO_RULE}
        found.append(((register, offset), rules))
    return which.astype(np.int64), found


def _hash(state: Int64Column) -> UInt64Column:
    """A number per row that is seldom equal for different rows."""
    mixed = np.zeros(len(state), np.uint64)
    for column in range(state.shape[1]):
        mixed ^= state[:, column].view(np.uint64)
        mixed *= np.uint64(0x9E37_79B9_7F4A_7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _unsigned32(code: UInt8Column, position: Int64Column) -> Int64Column:
    value = np.zeros(len(position), np.int64)
    for byte in range(4):
        value |= code[np.clip(position + byte, 0, len(code) - 1)].astype(np.int64) << (8 * byte)
    return value


def _signed32(code: UInt8Column, position: Int64Column) -> Int64Column:
    return _unsigned32(code, position).astype(np.int32).astype(np.int64)


def _uleb(code: UInt8Column, position: Int64Column) -> tuple[Int64Column, Int64Column]:
    """(value, position behind it); -1 for more than four bytes."""
    last = len(code) - 1
    value, position = np.zeros(len(position), np.int64), position.copy()
    pending = np.arange(len(position))
    for byte in range(_LONGEST_LEB):
        read = code[np.minimum(position[pending], last)].astype(np.int64)
        value[pending] |= (read & 0x7F) << (7 * byte)
        position[pending] += 1
        pending = pending[read >= 0x80]
        if not len(pending):
            return value, position
    value[pending] = -1
    return value, position
