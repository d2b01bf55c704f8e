"""Line number programs (DWARF 5, section 6.2.5) run into sorted columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.constants import (
    DW_LNE_define_file,
    DW_LNE_end_sequence,
    DW_LNE_set_address,
    DW_LNS_advance_line,
    DW_LNS_advance_pc,
    DW_LNS_const_add_pc,
    DW_LNS_copy,
    DW_LNS_fixed_advance_pc,
    DW_LNS_set_column,
    DW_LNS_set_file,
)
from symbolize.dwarf.line_header import LineHeader, defined_file
from symbolize.dwarf.line_opcodes import (
    EXTENDED,
    OPCODES,
    ExtendedOpcodes,
    LineOpcodes,
    eight_bytes,
    extended_opcodes,
    find_opcodes,
)
from symbolize.dwarf.sections import DwarfSections, in_text

NO_FILE = -1
LARGEST_NUMBER = 0x7FFFFFFF
UNKNOWN_FILE = 0x7FFFFFFFFFFFFFFF
ADDRESS_BYTES = 8


@dataclass(frozen=True, slots=True)
class LineTable:
    """Rows sorted by ``address`` (link address), of which a row holds up to the next one's.  ``file``: number in
    ``file_names``, -1 where no source line is known (behind a sequence).  ``column`` 0 = unknown."""

    address: UInt64Column
    file: Int32Column
    line: Int32Column
    column: Int32Column
    file_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Rows:
    """Rows as the program emits them.  ``opcode``: row of the opcode that does; ``address``; ``start``: row of the first opcode
    of its sequence; ``ends``: number of rows at the end of each sequence."""

    opcode: Int64Column
    address: UInt64Column
    start: Int64Column
    ends: Int64Column


def run_line_program(header: LineHeader, sections: DwarfSections) -> LineTable:
    """All sequences of code that is in the file.  Raises one of MALFORMED when the program is damaged."""
    opcodes = find_opcodes(header.data[header.program_start :], header.opcode_base, header.operand_counts)
    extended = extended_opcodes(opcodes)
    defined = extended.operand[extended.code == DW_LNE_define_file] + header.program_start
    names = [defined_file(header, position) for position in defined.tolist()]
    return _table(header, opcodes, extended, (*header.file_names, *names), sections)


def run_sequences(
    header: LineHeader, sections: DwarfSections, spans: Sequence[tuple[int, int]], asked: UInt64Column
) -> LineTable:
    """Parts of the program: (position of a sequence, position behind it).  Rows that hold for no address of ``asked`` are left
    out: each of the others holds for those of them up to the next one's.

    ValueError when a sequence does not end where it should, or uses files that the program itself defines.
    """
    program = b"".join(header.data[begin:end] for begin, end in spans)
    opcodes = find_opcodes(program, header.opcode_base, header.operand_counts)
    extended = extended_opcodes(opcodes)
    ends = extended.row[extended.code == DW_LNE_end_sequence] + 1
    expected = np.cumsum([end - begin for begin, end in spans])
    if not np.array_equal(np.append(opcodes.position, len(program))[ends], expected):
        raise ValueError("line sequence without its end")
    table = _table(header, opcodes, extended, header.file_names, sections, asked)
    if np.any(extended.code == DW_LNE_define_file) or np.any((table.file == NO_FILE) & (table.line > 0)):
        raise ValueError("files defined inside the line program")
    return table


def _rows(header: LineHeader, opcodes: LineOpcodes, extended: ExtendedOpcodes) -> _Rows:
    """Rows without what follows the last end of a sequence, which has no upper bound."""
    code, base = opcodes.code, header.opcode_base
    ends = extended.row[extended.code == DW_LNE_end_sequence]
    is_row = code >= base
    is_row[_standard(header, code, DW_LNS_copy)] = True
    is_row[ends] = True
    opcode = np.flatnonzero(is_row[: ends[-1] + 1 if len(ends) else 0])
    row_ends = np.searchsorted(opcode, ends) + 1
    start = np.repeat(np.concatenate([[0], ends + 1])[:-1], np.diff(row_ends, prepend=0))
    return _Rows(opcode, _addresses(header, opcodes, extended, opcode, start), start, row_ends)


def _addresses(
    header: LineHeader, opcodes: LineOpcodes, extended: ExtendedOpcodes, rows: Int64Column, start: Int64Column
) -> UInt64Column:
    """What advances the address is summed up; what sets it counts from there on.  Modulo 2**64: the address of discarded code,
    -1 or -2, overflows."""
    code = opcodes.code
    advance = _address_advances(header)[code]
    given = _standard(header, code, DW_LNS_advance_pc)
    advance[given] = opcodes.unsigned(given) * np.uint64(header.minimum_instruction_length)
    given = _standard(header, code, DW_LNS_fixed_advance_pc)
    advance[given] = opcodes.two_bytes(given)
    sums = np.cumsum(advance)
    is_set = (extended.code == DW_LNE_set_address) & (extended.size == ADDRESS_BYTES)
    sets = extended.row[is_set]
    initial = np.uint64(0) - np.concatenate([np.zeros(1, np.uint64), sums])[start]
    return sums[rows] + _last_set(rows, start, sets, eight_bytes(opcodes, extended.operand[is_set]) - sums[sets], initial)


def _lines(header: LineHeader, opcodes: LineOpcodes, rows: Int64Column, start: Int64Column) -> UInt64Column:
    step = _line_advances(header.opcode_base, header.line_base, header.line_range)[opcodes.code]
    given = _standard(header, opcodes.code, DW_LNS_advance_line)
    step[given] = opcodes.signed(given)
    sums = np.concatenate([[0], np.cumsum(step)])
    lines: UInt64Column = (sums[rows + 1] - sums[start] + 1).view(np.uint64)
    return lines


def _numbers_set(
    header: LineHeader, opcodes: LineOpcodes, rows: Int64Column, start: Int64Column, opcode: int, initial: int
) -> UInt64Column:
    """The register that ``opcode`` sets, ``initial`` at the start of a sequence."""
    sets = _standard(header, opcodes.code, opcode)
    return _last_set(rows, start, sets, opcodes.unsigned(sets), np.full(len(rows), initial, np.uint64))


def _last_set(
    rows: Int64Column, start: Int64Column, sets: Int64Column, values: UInt64Column, initial: UInt64Column
) -> UInt64Column:
    """Value of the last of the opcodes ``sets`` up to each of ``rows``; ``initial`` where its sequence, from ``start`` on, has
    none."""
    if not len(sets):
        return initial
    last = np.searchsorted(sets, rows, side="right") - 1
    found: UInt64Column = np.where((last >= 0) & (sets[last] >= start), values[last], initial)
    return found


def _standard(header: LineHeader, code: UInt8Column, wanted: int) -> Int64Column:
    """Rows of a standard opcode; in a program with few of them its number may be that of a special one."""
    return np.flatnonzero(code == wanted) if wanted < header.opcode_base else np.zeros(0, np.int64)


def _address_advances(header: LineHeader) -> UInt64Column:
    """By opcode, of the special ones and DW_LNS_const_add_pc."""
    number = np.maximum(np.arange(OPCODES) - header.opcode_base, 0)
    advance = number // header.line_range * header.minimum_instruction_length
    if header.opcode_base > DW_LNS_const_add_pc:
        advance[DW_LNS_const_add_pc] = advance[OPCODES - 1]
    return advance.astype(np.uint64)


def _line_advances(base: int, line_base: int, line_range: int) -> Int64Column:
    """By opcode, of the special ones."""
    number = np.arange(OPCODES) - base
    return np.where(number >= 0, line_base + number % line_range, 0)


def _table(
    header: LineHeader,
    opcodes: LineOpcodes,
    extended: ExtendedOpcodes,
    file_names: tuple[str, ...],
    sections: DwarfSections,
    asked: UInt64Column | None = None,
) -> LineTable:
    """The state machine, with op_index 0, run for all opcodes at once."""
    every = _rows(header, opcodes, extended)
    chosen = _chosen_rows(every.address, every.ends, sections)
    if asked is not None:
        held = np.searchsorted(every.address[chosen], asked, side="right") - 1
        chosen = chosen[distinct(held[held >= 0])]
    address, rows, start = every.address[chosen], every.opcode[chosen], every.start[chosen]
    file = _numbers_set(header, opcodes, rows, start, DW_LNS_set_file, 1)
    line = _lines(header, opcodes, rows, start)
    column = _numbers_set(header, opcodes, rows, start, DW_LNS_set_column, 0)
    at_end = opcodes.code[rows] == EXTENDED
    file[at_end], line[at_end], column[at_end] = UNKNOWN_FILE, 0, 0
    is_new = np.ones(len(address), np.bool_)
    is_new[1:] = (file[1:] != file[:-1]) | (line[1:] != line[:-1]) | (column[1:] != column[:-1])
    file, line, column = file[is_new], line[is_new], column[is_new]
    return LineTable(
        address=address[is_new],
        file=np.where(file < len(file_names), file.astype(np.int64), NO_FILE).astype(np.int32),
        line=np.where(line <= LARGEST_NUMBER, line, 0).astype(np.int32),
        column=np.where(column <= LARGEST_NUMBER, column, 0).astype(np.int32),
        file_names=file_names,
    )


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
