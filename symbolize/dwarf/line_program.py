"""Line number programs (DWARF 5, section 6.2.5) run into sorted columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column
from symbolize.dwarf.constants import (
    DW_LNE_define_file,
    DW_LNE_end_sequence,
    DW_LNE_set_address,
    DW_LNS_advance_line,
    DW_LNS_advance_pc,
    DW_LNS_const_add_pc,
    DW_LNS_copy,
    DW_LNS_fixed_advance_pc,
    DW_LNS_negate_stmt,
    DW_LNS_set_column,
    DW_LNS_set_file,
)
from symbolize.dwarf.leb128 import read_signed, read_unsigned, skip_number
from symbolize.dwarf.line_header import OPCODES, LineHeader, defined_file
from symbolize.dwarf.sections import DwarfSections, in_text

NO_FILE = -1
LARGEST_NUMBER = 0x7FFFFFFF
UNKNOWN_FILE = 0x7FFFFFFFFFFFFFFF
NO_ADDRESS_LIMIT = 1 << 200
REGISTER_MASK = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class LineTable:
    """Rows sorted by ``address`` (link address), of which a row holds up to the next one's.  ``file``: number in
    ``file_names``, -1 where no source line is known (behind a sequence).  ``column`` 0 = unknown."""

    address: UInt64Column
    file: Int32Column
    line: Int32Column
    column: Int32Column
    file_names: tuple[str, ...]


def run_line_program(header: LineHeader, sections: DwarfSections) -> LineTable:
    """All sequences of code that is in the file.  Raises one of MALFORMED when the program is damaged."""
    defined: list[str] = []
    rows, ends = _run(header, header.program_start, len(header.data), NO_ADDRESS_LIMIT, defined)
    return _sorted_table(rows, ends, (*header.file_names, *defined), sections)


def run_sequences(header: LineHeader, sections: DwarfSections, spans: Sequence[tuple[int, int, int]]) -> LineTable:
    """Parts of the program: (position of a sequence, position behind it, the last address that is asked for in it).

    ValueError when a sequence does not end where it should, or uses files that the program itself defines.
    """
    rows: list[int] = []
    ends: list[int] = []
    defined: list[str] = []
    for begin, end, last_address in spans:
        more_rows, more_ends = _run(header, begin, end, last_address, defined)
        if len(more_ends) != 1 or 4 * more_ends[0] != len(more_rows):
            raise ValueError("line sequence without its end")
        rows += more_rows
        ends.append(len(rows) // 4)
    table = _sorted_table(rows, ends, header.file_names, sections)
    if defined or np.any((table.file == NO_FILE) & (table.line > 0)):
        raise ValueError("files defined inside the line program")
    return table


def _run(header: LineHeader, position: int, end: int, last_address: int, defined: list[str]) -> tuple[list[int], list[int]]:
    """The state machine, with op_index 0: (address, file, line, column of all rows one behind the other, number of rows at the
    end of each sequence).  A row beyond ``last_address`` ends the run and counts as the end of its sequence.  Files that
    the program defines are added to ``defined``."""
    data = header.data
    base = header.opcode_base
    advance, step = _special_opcodes(base, header.line_base, header.line_range, header.minimum_instruction_length)
    rows: list[int] = []
    ends: list[int] = []
    add_row = rows.extend
    address, file, line, column = 0, 1, 1, 0
    while position < end:
        code = data[position]
        position += 1
        if code >= base:
            address += advance[code]
            line += step[code]
            add_row((address, file, line, column))
            if address > last_address:
                ends.append(len(rows) // 4)
                break
        elif code == DW_LNS_advance_line:
            delta = data[position]
            position += 1
            if delta >= 0x80:
                delta, position = read_signed(data, position - 1)
            elif delta >= 0x40:
                delta -= 0x80
            line += delta
        elif code == DW_LNS_set_column:
            column = data[position]
            position += 1
            if column >= 0x80:
                column, position = read_unsigned(data, position - 1)
        elif code == DW_LNS_set_file:
            file = data[position]
            position += 1
            if file >= 0x80:
                file, position = read_unsigned(data, position - 1)
        elif code == DW_LNS_copy:
            add_row((address, file, line, column))
        elif code == 0:
            address, position, is_end = _extended(header, position, address, defined)
            if is_end:
                add_row((address, UNKNOWN_FILE, 0, 0))
                ends.append(len(rows) // 4)
                address, file, line, column = 0, 1, 1, 0
        elif code != DW_LNS_negate_stmt:
            address, position = _rare(header, code, position, address + (advance[255] if code == DW_LNS_const_add_pc else 0))
    return rows, ends


@lru_cache(maxsize=16)
def _special_opcodes(base: int, line_base: int, line_range: int, factor: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(address advance, line advance) by opcode."""
    advance = tuple((code - base) // line_range * factor if code >= base else 0 for code in range(OPCODES))
    return advance, tuple(line_base + (code - base) % line_range for code in range(OPCODES))


def _extended(header: LineHeader, position: int, address: int, defined: list[str]) -> tuple[int, int, bool]:
    """(address, position, whether the sequence ends here) after an extended opcode, whose size is at ``position``."""
    data = header.data
    size, position = read_unsigned(data, position)
    opcode = data[position] if size else 0
    if opcode == DW_LNE_set_address and size == 9:
        address = int.from_bytes(data[position + 1 : position + 9], "little")
    elif opcode == DW_LNE_define_file:
        defined.append(defined_file(header, position + 1))
    return address, position + size, opcode == DW_LNE_end_sequence


def _rare(header: LineHeader, code: int, position: int, address: int) -> tuple[int, int]:
    """(address, position) after one of the other standard opcodes; unknown ones are skipped by their operand count."""
    data = header.data
    if code == DW_LNS_advance_pc:
        delta, position = read_unsigned(data, position)
        return address + delta * header.minimum_instruction_length, position
    if code == DW_LNS_fixed_advance_pc:
        return address + (data[position] | data[position + 1] << 8), position + 2
    for _ in range(header.operand_counts[code]):
        position = skip_number(data, position)
    return address, position


def _sorted_table(rows: list[int], ends: list[int], file_names: tuple[str, ...], sections: DwarfSections) -> LineTable:
    count = ends[-1] if ends else 0  # rows behind the last end of a sequence have no upper bound
    table = _unsigned(rows[: 4 * count]).reshape(-1, 4)
    table = table[_chosen_rows(table[:, 0], np.array(ends, np.int64), sections)]
    repeats = np.all(table[1:, 1:] == table[:-1, 1:], axis=1)
    table = table[np.concatenate([np.ones(min(len(table), 1), np.bool_), ~repeats])]
    address, file, line, column = np.ascontiguousarray(table.T)
    return LineTable(
        address=address,
        file=np.where(file < len(file_names), file.astype(np.int64), NO_FILE).astype(np.int32),
        line=np.where(line <= LARGEST_NUMBER, line, 0).astype(np.int32),
        column=np.where(column <= LARGEST_NUMBER, column, 0).astype(np.int32),
        file_names=file_names,
    )


def _unsigned(numbers: list[int]) -> UInt64Column:
    """Registers are 64 bits wide: the address of discarded code, -1 or -2, overflows when it is advanced."""
    try:
        return np.array(numbers, np.uint64)
    except OverflowError:
        return np.array([number & REGISTER_MASK for number in numbers], np.uint64)


def _chosen_rows(address: UInt64Column, ends: Int64Column, sections: DwarfSections) -> Int64Column:
    """Rows of the sequences of code that is in the file, in order of address; where one sequence ends at the start of the
    next, the end comes first, so rows at the very end of their own sequence, which hold for no address, are left out."""
    starts = np.concatenate([[0], ends])[:-1]
    lengths = ends - starts
    is_end = np.zeros(len(address), np.bool_)
    is_end[ends - 1] = True
    is_kept = np.repeat(in_text(sections, address[starts], address[ends - 1]), lengths)
    is_kept &= is_end | (address < np.repeat(address[ends - 1], lengths))
    rows = np.flatnonzero(is_kept)
    chosen = address[rows]
    if not np.all(chosen[1:] >= chosen[:-1]):
        rows = rows[np.lexsort([~is_end[rows], chosen])]
        chosen = address[rows]
    # Of rows at one address the last one holds.
    holds: Int64Column = rows[np.concatenate([chosen[1:] != chosen[:-1], np.ones(min(len(chosen), 1), np.bool_)])]
    return holds
