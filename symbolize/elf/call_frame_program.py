"""The instructions of an FDE, run to a table of unwinding rules (DWARF 5, 6.4.2 and 6.4.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from profiler.errors import FormatError
from symbolize.elf import call_frame_instructions as cfi
from symbolize.elf.call_frame_section import CallFrameSection, CommonInformation, FrameDescription
from symbolize.elf.dwarf_encoding import encoded_pointer, sleb128, uleb128

CFA_BY_EXPRESSION = -1
_NESTING_LIMIT = 1000


class RuleKind:
    """How the caller's value of a register is found; the value of the rule is named behind.

    Plain numbers, since every row of every FDE is hashed: the members of an ``IntEnum`` hash ten times slower.
    """

    UNDEFINED: Final = 0
    SAME_VALUE: Final = 1
    OFFSET: Final = 2  # in memory at CFA + value
    VALUE_OFFSET: Final = 3  # is CFA + value
    REGISTER: Final = 4  # in register number value
    EXPRESSION: Final = 5  # in memory at the address that expression value computes
    VALUE_EXPRESSION: Final = 6  # is what expression value computes


# (one of RuleKind, value)
RegisterRule: TypeAlias = tuple[int, int | bytes]
# (register, offset), (CFA_BY_EXPRESSION, expression), or None before the first definition.
CfaRule: TypeAlias = tuple[int, int | bytes] | None
InitialState: TypeAlias = tuple[CfaRule, dict[int, RegisterRule]]


class FrameRow(NamedTuple):
    """The rules in force from link address ``start`` up to the next row (or the end of the FDE).  Rows with the same rules may
    share the dictionary: it is not to be changed."""

    start: int
    cfa: CfaRule
    rules: dict[int, RegisterRule]


class FrameProgram:
    """Runs the instructions of one section's FDEs; those of each CIE are run once."""

    def __init__(self, section: CallFrameSection) -> None:
        self._section = section
        self._initial: dict[tuple[int, int], InitialState] = {}

    def rows(self, fde: FrameDescription) -> list[FrameRow]:
        """The rows of one FDE by ascending address, at least one.  Registers without a rule are absent from ``rules``.
        Raises ``FormatError`` for damaged instructions."""
        state = _Interpreter(self._section, fde.common, fde.start, self.initial_state(fde.common))
        self._run(state, fde.instructions)
        return state.finished_rows()

    def initial_state(self, common: CommonInformation) -> InitialState:
        """What the CIE sets up, and what DW_CFA_restore goes back to.  Raises ``FormatError`` for damaged instructions."""
        if common.instructions not in self._initial:
            state = _Interpreter(self._section, common, 0, (None, {}))
            self._run(state, common.instructions)
            last = state.finished_rows()[-1]
            self._initial[common.instructions] = (last.cfa, last.rules)
        return self._initial[common.instructions]

    def _run(self, state: _Interpreter, instructions: tuple[int, int]) -> None:
        try:
            state.run(*instructions)
        except (IndexError, ValueError) as error:
            message = f"damaged call frame instructions ({error})"
            raise FormatError(self._section.source, message, instructions[0]) from error


def frame_rows(section: CallFrameSection, fde: FrameDescription) -> list[FrameRow]:
    """The rows of a single FDE; see ``FrameProgram.rows``."""
    return FrameProgram(section).rows(fde)


class _Interpreter:
    """State of one run: location, CFA rule, register rules, and the stack of remembered states."""

    def __init__(self, section: CallFrameSection, common: CommonInformation, start: int, initial: InitialState) -> None:
        self._data = section.data
        self._section = section
        self._common = common
        self._location = start
        self._cfa, self._initial = initial
        self._rules = self._initial
        # Rows, remembered states and the CIE's state share one dictionary as long as nothing changes.
        self._rules_are_shared = True
        self._remembered: list[tuple[CfaRule, dict[int, RegisterRule]]] = []
        self._rows: list[FrameRow] = []

    def finished_rows(self) -> list[FrameRow]:
        self._close_row()
        return self._rows

    def run(self, position: int, end: int) -> None:
        data, common = self._data, self._common
        while position < end:
            opcode = data[position]
            position += 1
            operand = opcode & 0x3F
            high = opcode >> 6
            if high == 1:  # DW_CFA_advance_loc
                self._advance(operand)
            elif high == 2:  # DW_CFA_offset
                value, position = data[position], position + 1
                if value >= 0x80:
                    value, position = uleb128(data, position - 1)
                self._set_rule(operand, (RuleKind.OFFSET, value * common.data_alignment))
            elif high == 3:  # DW_CFA_restore
                self._restore(operand)
            elif opcode:
                handler = _HANDLERS.get(opcode)
                if handler is None:
                    raise ValueError(f"unknown instruction {opcode:#x}")
                position = handler(self, position)

    def _close_row(self) -> None:
        if self._rows and self._rows[-1].start == self._location:
            self._rows.pop()
        self._rows.append(FrameRow(self._location, self._cfa, self._rules))
        self._rules_are_shared = True

    def _advance(self, delta: int) -> None:
        self._close_row()
        self._location += delta * self._common.code_alignment

    def _set_rule(self, register: int, rule: RegisterRule) -> None:
        if self._rules_are_shared:
            self._rules = dict(self._rules)
            self._rules_are_shared = False
        self._rules[register] = rule

    def _restore(self, register: int) -> None:
        if register in self._initial:
            self._set_rule(register, self._initial[register])
        elif register in self._rules:
            self._rules = {number: rule for number, rule in self._rules.items() if number != register}
            self._rules_are_shared = False

    def advance_loc1(self, position: int) -> int:
        return self._advance_by(position, 1)

    def advance_loc2(self, position: int) -> int:
        return self._advance_by(position, 2)

    def advance_loc4(self, position: int) -> int:
        return self._advance_by(position, 4)

    def advance_loc8(self, position: int) -> int:
        return self._advance_by(position, 8)

    def _advance_by(self, position: int, size: int) -> int:
        if position + size > len(self._data):
            raise IndexError(position)
        self._advance(int.from_bytes(self._data[position : position + size], "little"))
        return position + size

    def set_loc(self, position: int) -> int:
        bases = (self._section.link_address, 0)
        location, position = encoded_pointer(self._data, position, self._common.pointer_encoding, bases)
        if location < self._location:
            raise ValueError("DW_CFA_set_loc goes back")
        self._close_row()
        self._location = location
        return position

    def offset_extended(self, position: int) -> int:
        return self._set_scaled(position, RuleKind.OFFSET, uleb128)

    def offset_extended_sf(self, position: int) -> int:
        return self._set_scaled(position, RuleKind.OFFSET, sleb128)

    def val_offset(self, position: int) -> int:
        return self._set_scaled(position, RuleKind.VALUE_OFFSET, uleb128)

    def val_offset_sf(self, position: int) -> int:
        return self._set_scaled(position, RuleKind.VALUE_OFFSET, sleb128)

    def _set_scaled(self, position: int, kind: int, read: Callable[[memoryview, int], tuple[int, int]]) -> int:
        register, position = uleb128(self._data, position)
        value, position = read(self._data, position)
        self._set_rule(register, (kind, value * self._common.data_alignment))
        return position

    def gnu_negative_offset_extended(self, position: int) -> int:
        register, position = uleb128(self._data, position)
        value, position = uleb128(self._data, position)
        self._set_rule(register, (RuleKind.OFFSET, -value * self._common.data_alignment))
        return position

    def restore_extended(self, position: int) -> int:
        register, position = uleb128(self._data, position)
        self._restore(register)
        return position

    def undefined(self, position: int) -> int:
        register, position = uleb128(self._data, position)
        self._set_rule(register, (RuleKind.UNDEFINED, 0))
        return position

    def same_value(self, position: int) -> int:
        register, position = uleb128(self._data, position)
        self._set_rule(register, (RuleKind.SAME_VALUE, 0))
        return position

    def register(self, position: int) -> int:
        register, position = uleb128(self._data, position)
        source, position = uleb128(self._data, position)
        self._set_rule(register, (RuleKind.REGISTER, source))
        return position

    def remember_state(self, position: int) -> int:
        if len(self._remembered) >= _NESTING_LIMIT:
            raise ValueError("DW_CFA_remember_state nested too deep")
        self._remembered.append((self._cfa, self._rules))
        self._rules_are_shared = True
        return position

    def restore_state(self, position: int) -> int:
        if not self._remembered:
            raise ValueError("DW_CFA_restore_state without a remembered state")
        self._cfa, self._rules = self._remembered.pop()
        self._rules_are_shared = True
        return position

    def def_cfa(self, position: int) -> int:
        register, position = uleb128(self._data, position)
        offset, position = uleb128(self._data, position)
        self._cfa = (register, offset)
        return position

    def def_cfa_sf(self, position: int) -> int:
        register, position = uleb128(self._data, position)
        offset, position = sleb128(self._data, position)
        self._cfa = (register, offset * self._common.data_alignment)
        return position

    def def_cfa_register(self, position: int) -> int:
        register, position = uleb128(self._data, position)
        self._cfa = (register, self._register_cfa()[1])
        return position

    def def_cfa_offset(self, position: int) -> int:
        offset, position = uleb128(self._data, position)
        self._cfa = (self._register_cfa()[0], offset)
        return position

    def def_cfa_offset_sf(self, position: int) -> int:
        offset, position = sleb128(self._data, position)
        self._cfa = (self._register_cfa()[0], offset * self._common.data_alignment)
        return position

    def _register_cfa(self) -> tuple[int, int | bytes]:
        if self._cfa is None or self._cfa[0] == CFA_BY_EXPRESSION:
            raise ValueError("the CFA is not a register and an offset")
        return self._cfa

    def def_cfa_expression(self, position: int) -> int:
        expression, position = self._block(position)
        self._cfa = (CFA_BY_EXPRESSION, expression)
        return position

    def expression(self, position: int) -> int:
        register, position = uleb128(self._data, position)
        block, position = self._block(position)
        self._set_rule(register, (RuleKind.EXPRESSION, block))
        return position

    def val_expression(self, position: int) -> int:
        register, position = uleb128(self._data, position)
        block, position = self._block(position)
        self._set_rule(register, (RuleKind.VALUE_EXPRESSION, block))
        return position

    def gnu_args_size(self, position: int) -> int:
        return uleb128(self._data, position)[1]

    def _block(self, position: int) -> tuple[bytes, int]:
        size, position = uleb128(self._data, position)
        if size > len(self._data) - position:
            raise IndexError(position)
        return bytes(self._data[position : position + size]), position + size


_HANDLERS: dict[int, Callable[[_Interpreter, int], int]] = {
    cfi.DW_CFA_set_loc: _Interpreter.set_loc,
    cfi.DW_CFA_advance_loc1: _Interpreter.advance_loc1,
    cfi.DW_CFA_advance_loc2: _Interpreter.advance_loc2,
    cfi.DW_CFA_advance_loc4: _Interpreter.advance_loc4,
    cfi.DW_CFA_offset_extended: _Interpreter.offset_extended,
    cfi.DW_CFA_restore_extended: _Interpreter.restore_extended,
    cfi.DW_CFA_undefined: _Interpreter.undefined,
    cfi.DW_CFA_same_value: _Interpreter.same_value,
    cfi.DW_CFA_register: _Interpreter.register,
    cfi.DW_CFA_remember_state: _Interpreter.remember_state,
    cfi.DW_CFA_restore_state: _Interpreter.restore_state,
    cfi.DW_CFA_def_cfa: _Interpreter.def_cfa,
    cfi.DW_CFA_def_cfa_register: _Interpreter.def_cfa_register,
    cfi.DW_CFA_def_cfa_offset: _Interpreter.def_cfa_offset,
    cfi.DW_CFA_def_cfa_expression: _Interpreter.def_cfa_expression,
    cfi.DW_CFA_expression: _Interpreter.expression,
    cfi.DW_CFA_offset_extended_sf: _Interpreter.offset_extended_sf,
    cfi.DW_CFA_def_cfa_sf: _Interpreter.def_cfa_sf,
    cfi.DW_CFA_def_cfa_offset_sf: _Interpreter.def_cfa_offset_sf,
    cfi.DW_CFA_val_offset: _Interpreter.val_offset,
    cfi.DW_CFA_val_offset_sf: _Interpreter.val_offset_sf,
    cfi.DW_CFA_val_expression: _Interpreter.val_expression,
    cfi.DW_CFA_MIPS_advance_loc8: _Interpreter.advance_loc8,
    cfi.DW_CFA_GNU_args_size: _Interpreter.gnu_args_size,
    cfi.DW_CFA_GNU_negative_offset_extended: _Interpreter.gnu_negative_offset_extended,
}
