"""Line programs of any opcodes: the bytes are made while the registers are kept by hand (DWARF 5, section 6.2.2), then read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from support.dwarf_bytes import END_SEQUENCE, abbreviation, line_unit_4, sections, set_address, uleb, unit_4
from symbolize.dwarf import constants as dw
from symbolize.dwarf.line_header import read_line_header
from symbolize.dwarf.line_program import LineTable, run_line_program
from symbolize.dwarf.unit_reader import UnitReader

ATTRIBUTES = (
    (dw.DW_AT_stmt_list, dw.DW_FORM_sec_offset),
    (dw.DW_AT_name, dw.DW_FORM_string),
    (dw.DW_AT_comp_dir, dw.DW_FORM_string),
)
INFO = unit_4(b"\1" + bytes(4) + b"main.c\0/build\0")
ABBREV = abbreviation(1, dw.DW_TAG_compile_unit, False, *ATTRIBUTES) + b"\0"
FILES = (b"a.c", b"b.c", b"c.c")
# Of ``line_unit_4``.
LINE_BASE, LINE_RANGE, OPCODE_BASE = -5, 14, 13
CONST_ADD_PC = (255 - OPCODE_BASE) // LINE_RANGE
NO_FILE = -1
Row = tuple[int, int, int, int]  # registers: address, file, line, column


@dataclass
class Machine:
    """Registers, and the rows and bytes so far."""

    address: int
    file: int = 1
    line: int = 1
    column: int = 0
    rows: list[Row] = field(default_factory=list)
    program: bytes = b""

    def emit(self) -> None:
        self.rows.append((self.address, self.file, self.line, self.column))

    def step(self, code: int, operand: int) -> None:
        """Runs and encodes one opcode."""
        self.program += bytes([code])
        if code >= OPCODE_BASE:
            self.address += (code - OPCODE_BASE) // LINE_RANGE
            self.line += LINE_BASE + (code - OPCODE_BASE) % LINE_RANGE
            self.emit()
        elif code == dw.DW_LNS_copy:
            self.emit()
        elif code == dw.DW_LNS_advance_pc:
            self.program += uleb(operand)
            self.address += operand
        elif code == dw.DW_LNS_advance_line:
            self.program += sleb(operand - 200)
            self.line += operand - 200
        elif code == dw.DW_LNS_set_file:
            self.program += uleb(operand)
            self.file = operand
        elif code == dw.DW_LNS_set_column:
            self.program += uleb(operand)
            self.column = operand
        elif code == dw.DW_LNS_const_add_pc:
            self.address += CONST_ADD_PC
        elif code == dw.DW_LNS_fixed_advance_pc:
            self.program += operand.to_bytes(2, "little")
            self.address += operand
        elif code == dw.DW_LNS_set_isa:
            self.program += uleb(operand)
        elif code == 0:
            self.program += b"\x02\x04" + bytes([operand % 128])  # DW_LNE_set_discriminator

    def end(self, size: int) -> None:
        self.program += bytes([dw.DW_LNS_advance_pc]) + uleb(size) + END_SEQUENCE
        self.rows.append((self.address + size, NO_FILE, 0, 0))


def sleb(value: int) -> bytes:
    out = b""
    while not -64 <= value < 64:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value & 0x7F])


def told(row: Row) -> tuple[int, str, int, int]:
    """What a table says of a row: no line is negative."""
    address, file, line, column = row
    name = f"/build/{FILES[file - 1].decode()}" if 1 <= file <= len(FILES) else "main.c" if file == 0 else ""
    return address, name, max(line, 0), column


def holding(rows: list[Row]) -> list[Row]:
    """Of rows at one address the last, and of equal ones that follow one another the first: the others tell nothing."""
    last = {row[0]: row for row in rows}
    kept: list[Row] = []
    for row in last.values():
        if not kept or kept[-1][1:] != row[1:]:
            kept.append(row)
    return kept


CODES = st.one_of(st.integers(0, OPCODE_BASE - 1), st.integers(OPCODE_BASE, 255))
OPCODES = st.tuples(CODES, st.sampled_from([0, 1, 2, 3, 4, 63, 64, 127, 128, 199, 300, 5000, 20000]))
SEQUENCE = st.tuples(st.lists(OPCODES, max_size=30), st.integers(1, 300))


@given(st.lists(SEQUENCE, min_size=1, max_size=4))
def test_any_program_gives_the_rows_of_its_opcodes(sequences: list[tuple[list[tuple[int, int]], int]]) -> None:
    program, expected = b"", []
    for number, (opcodes, size) in enumerate(sequences):
        start = (number + 1) << 24  # further than any of these can advance
        machine = Machine(start)
        for code, operand in opcodes:
            machine.step(code, operand)
        machine.end(size)
        program += set_address(start) + machine.program
        if machine.rows[0][0] < machine.rows[-1][0]:  # it covers something
            expected += holding(machine.rows)
    contents = sections(info=INFO, abbrev=ABBREV, line=line_unit_4(list(FILES), program))
    wide = replace(contents, text_low=1, text_high=1 << 40)
    assert rows_of(run_line_program(read_line_header(UnitReader(wide).root(0)), wide)) == [
        told(row) for row in holding(expected)
    ]


def rows_of(table: LineTable) -> list[tuple[int, str, int, int]]:
    names = [table.file_names[file] if file >= 0 else "" for file in table.file.tolist()]
    return list(zip(table.address.tolist(), names, table.line.tolist(), table.column.tolist(), strict=True))
