"""Line programs written by hand after DWARF 5, section 6.2.5."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from support.dwarf_bytes import END_SEQUENCE, abbreviation, line_unit_4, line_unit_5, sections, set_address, uleb, unit_4
from symbolize.dwarf import constants as dw
from symbolize.dwarf.line_header import LineHeader, read_line_header
from symbolize.dwarf.line_program import LineTable, run_line_program, run_sequences
from symbolize.dwarf.line_sequences import find_sequences
from symbolize.dwarf.sections import DwarfSections
from symbolize.dwarf.unit_reader import UnitReader
from symbolize.dwarf.unit_root import MALFORMED

ATTRIBUTES = (
    (dw.DW_AT_stmt_list, dw.DW_FORM_sec_offset),
    (dw.DW_AT_name, dw.DW_FORM_string),
    (dw.DW_AT_comp_dir, dw.DW_FORM_string),
)
ABBREV = abbreviation(1, dw.DW_TAG_compile_unit, False, *ATTRIBUTES) + b"\0"
INFO = unit_4(b"\1" + bytes(4) + b"main.c\0/build\0")


def run(line: bytes) -> LineTable:
    contents = sections(info=INFO, abbrev=ABBREV, line=line)
    return run_line_program(read_line_header(UnitReader(contents).root(0)), contents)


def rows(table: LineTable) -> list[tuple[int, str, int, int]]:
    names = [table.file_names[file] if file >= 0 else "" for file in table.file.tolist()]
    return list(zip(table.address.tolist(), names, table.line.tolist(), table.column.tolist(), strict=True))


def special(address_advance: int, line_advance: int) -> bytes:
    return bytes([(line_advance + 5) + 14 * address_advance + 13])


def test_each_opcode_does_what_the_standard_says() -> None:
    program = (
        set_address(0x1000) + bytes([dw.DW_LNS_copy])
        + special(2, 3)  # 0x1002, line 4
        + bytes([dw.DW_LNS_set_column, 0x85, 0x01, dw.DW_LNS_advance_line]) + b"\xe4\x00" + bytes([dw.DW_LNS_copy])  # +100
        + bytes([dw.DW_LNS_advance_pc]) + uleb(300) + bytes([dw.DW_LNS_negate_stmt, dw.DW_LNS_copy])  # 0x112e
        + bytes([dw.DW_LNS_const_add_pc, dw.DW_LNS_set_file, 2, dw.DW_LNS_copy])  # + (255 - 13) // 14 = 17
        + bytes([dw.DW_LNS_fixed_advance_pc, 0x00, 0x01, dw.DW_LNS_set_basic_block, dw.DW_LNS_set_isa, 9])
        + bytes([dw.DW_LNS_advance_line, 0x7E]) + special(0, 0)  # 0x123f, -2
        + b"\0\x02\x04\x05"  # DW_LNE_set_discriminator
        + bytes([dw.DW_LNS_advance_pc, 1]) + END_SEQUENCE
    )  # fmt: skip
    found = rows(run(line_unit_4([b"a.c", b"/abs/b.h"], program)))
    assert found == [
        (0x1000, "/build/a.c", 1, 0),
        # The row at 0x1002 before the column was set is superseded; the one at 0x112e says nothing new.
        (0x1002, "/build/a.c", 104, 133),
        (0x113F, "/abs/b.h", 104, 133),
        (0x123F, "/abs/b.h", 102, 133),
        (0x1240, "", 0, 0),
    ]


def test_version_4_counts_files_from_one_and_joins_directories_once() -> None:
    program = set_address(0x1000) + bytes([dw.DW_LNS_copy, dw.DW_LNS_advance_pc, 4]) + END_SEQUENCE
    table = run(line_unit_4([b"a.c"], program, directories=[b"src"]))
    assert rows(table)[0] == (0x1000, "/build/src/a.c", 1, 0)


def test_version_5_counts_files_and_directories_from_zero() -> None:
    program = set_address(0x1000) + bytes([dw.DW_LNS_copy, dw.DW_LNS_set_file, 0]) + special(1, 1)
    program += bytes([dw.DW_LNS_set_file, 2]) + special(1, 1) + special(1, 0) + END_SEQUENCE
    table = run(line_unit_5([b"/build", b"inc", b"/usr/include"], [(b"main.c", 0), (b"b.h", 1), (b"c.h", 2)], program))
    assert rows(table) == [
        (0x1000, "/build/inc/b.h", 1, 0),
        (0x1001, "/build/main.c", 2, 0),
        (0x1002, "/usr/include/c.h", 3, 0),
        (0x1003, "", 0, 0),
    ]


def test_discarded_sequences_are_left_out() -> None:
    """GNU ld leaves address 0, lld -1 or -2, for code that --gc-sections dropped."""
    body = bytes([dw.DW_LNS_copy, dw.DW_LNS_advance_pc, 4]) + END_SEQUENCE
    program = b"".join(set_address(address) + body for address in (0, 2**64 - 1, 2**64 - 2, 0x2000, 0xF0000))
    assert [address for address, *_ in rows(run(line_unit_4([b"a.c"], program)))] == [0x2000, 0x2004]


def test_the_end_of_one_sequence_comes_before_the_start_of_the_next() -> None:
    """Sequences in any order; the zero-length row at the end of the first must not leak into the second."""
    second = set_address(0x2004) + bytes([dw.DW_LNS_copy, dw.DW_LNS_advance_pc, 4]) + END_SEQUENCE
    first = set_address(0x2000) + special(0, 5) + special(4, 5) + END_SEQUENCE
    found = rows(run(line_unit_4([b"a.c"], second + first)))
    assert found == [(0x2000, "/build/a.c", 6, 0), (0x2004, "/build/a.c", 1, 0), (0x2008, "", 0, 0)]


def test_rows_without_end_of_sequence_are_left_out() -> None:
    assert rows(run(line_unit_4([b"a.c"], set_address(0x1000) + bytes([dw.DW_LNS_copy])))) == []


def test_file_numbers_beyond_the_table_are_unknown() -> None:
    program = set_address(0x1000) + bytes([dw.DW_LNS_set_file, 77, dw.DW_LNS_copy, dw.DW_LNS_advance_pc, 1]) + END_SEQUENCE
    assert rows(run(line_unit_4([b"a.c"], program)))[0] == (0x1000, "", 1, 0)


@pytest.mark.parametrize("cut", range(4, 60, 5))
def test_truncated_programs_are_errors_or_shorter(cut: int) -> None:
    program = set_address(0x1000) + bytes([dw.DW_LNS_copy, dw.DW_LNS_advance_pc, 4]) + END_SEQUENCE
    whole = line_unit_4([b"a.c"], program)
    damaged = struct.pack("<I", max(min(cut, len(whole)) - 4, 0)) + whole[4:cut]
    try:
        found = rows(run(damaged))
    except MALFORMED:
        return
    assert len(found) <= 2


def test_zero_line_range_and_endless_tables_are_errors() -> None:
    whole = bytearray(line_unit_4([b"a.c"], b""))
    whole[14] = 0  # line_range: length 4, version 2, header_length 4, three bytes, line_base
    with pytest.raises(ValueError, match="impossible"):
        run(bytes(whole))
    endless = line_unit_5([b"/build"], [(b"a" * 20, 0)], b"")
    position = endless.index(bytes([2, 1, 8, 2, 15]))
    with pytest.raises(ValueError, match="more files"):
        run(endless[:position] + bytes([0]) + uleb(2**60) + endless[position + 2 :])


def program_of(*functions: tuple[int, int]) -> bytes:
    """Sequences as GNU as writes them: column and file first, then the address; (address, rows of 4 bytes each)."""
    out = b""
    for address, count in functions:
        out += bytes([dw.DW_LNS_set_column, 0x83, 0x01, dw.DW_LNS_set_file, 1]) + set_address(address)
        out += bytes([dw.DW_LNS_copy]) + special(4, 1) * (count - 1) + bytes([dw.DW_LNS_advance_pc, 4]) + END_SEQUENCE
    return out


def header_of(program: bytes) -> tuple[LineHeader, DwarfSections]:
    contents = sections(info=INFO, abbrev=ABBREV, line=line_unit_4([b"a.c"], program))
    return read_line_header(UnitReader(contents).root(0)), contents


@pytest.mark.parametrize(
    ("operand", "advance"),
    [(b"\x3f", 63), (b"\x40", -64), (b"\x7f", -1), (b"\xc0\x00", 64), (b"\x9c\x7f", -100), (b"\x80\x80\x7f", -16384)],
)
def test_lines_advance_by_signed_numbers_of_any_length(operand: bytes, advance: int) -> None:
    """Encodings: DWARF 5, section 7.6."""
    forward = bytes([dw.DW_LNS_advance_line]) + b"\x80\x80\x04"  # 0x10000, in signed LEB128
    program = set_address(0x1000) + forward + bytes([dw.DW_LNS_advance_line]) + operand + bytes([dw.DW_LNS_copy])
    found = rows(run(line_unit_4([b"a.c"], program + bytes([dw.DW_LNS_advance_pc, 1]) + END_SEQUENCE)))
    assert found[0] == (0x1000, "/build/a.c", 1 + 0x10000 + advance, 0)


def test_opcodes_that_the_standard_does_not_know_are_skipped_by_their_operand_counts() -> None:
    """opcode_base 15: opcode 13 with two operands, opcode 14 with none; the address advances of special opcodes move along."""
    unknown = b"".join(
        bytes([13]) + uleb(first) + uleb(second) for first, second in ((1, 2), (300, 5), (6, 70000), (2**40, 2**20))
    )
    program = set_address(0x1000) + unknown + bytes([14, dw.DW_LNS_copy]) + unknown + bytes([20 + 14 * 2])  # 2, line 0
    whole = line_unit_4([b"a.c"], program + END_SEQUENCE)
    counts = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    (length, header_length) = struct.unpack_from("<IxxI", whole)
    place = whole.index(bytes([13]) + counts)
    whole = whole[:place] + bytes([15]) + counts + bytes([2, 0]) + whole[place + 1 + len(counts) :]
    whole = struct.pack("<I", length + 2) + whole[4:6] + struct.pack("<I", header_length + 2) + whole[10:]
    assert rows(run(whole)) == [(0x1000, "/build/a.c", 1, 0), (0x1002, "", 0, 0)]


def test_sequences_are_found_without_running_them() -> None:
    header, _ = header_of(program_of((0x1000, 3), (0, 2), (0x2000, 5)))
    found = find_sequences(header)
    assert found is not None
    assert found.address.tolist() == [0x1000, 0, 0x2000]
    assert found.begin[0] == header.program_start
    assert found.begin[1:].tolist() == found.end[:-1].tolist()
    assert found.end[-1] == len(header.data)


def test_single_sequences_give_the_rows_of_the_whole_program() -> None:
    header, contents = header_of(program_of((0x1000, 3), (0x3000, 4), (0x2000, 5)))
    found = find_sequences(header)
    assert found is not None
    whole = rows(run_line_program(header, contents))
    for address, begin, end in zip(found.address.tolist(), found.begin.tolist(), found.end.tolist(), strict=True):
        asked = np.arange(address, address + 0x100, dtype=np.uint64)
        part = rows(run_sequences(header, contents, [(begin, end)], asked))
        assert part == [row for row in whole if address <= row[0] < address + 0x100]


def test_only_rows_that_hold_for_what_is_asked_are_given() -> None:
    header, contents = header_of(program_of((0x1000, 200)))
    asked = np.array([0xFFF, 0x1009, 0x100B, 0x1010], np.uint64)
    part = rows(run_sequences(header, contents, [(header.program_start, len(header.data))], asked))
    assert [(address, line) for address, _, line, _ in part] == [(0x1008, 3), (0x1010, 5)]


def test_a_part_that_is_no_sequence_is_an_error() -> None:
    header, contents = header_of(program_of((0x1000, 3), (0x2000, 3)))
    for begin, end in ((header.program_start, len(header.data)), (header.program_start, header.program_start + 18)):
        with pytest.raises(ValueError, match="without its end"):
            run_sequences(header, contents, [(begin, end)], np.array([0x1000], np.uint64))


def test_a_program_that_does_not_begin_with_an_address_is_not_cut() -> None:
    header, _ = header_of(bytes([dw.DW_LNS_copy]) + program_of((0x1000, 3)))
    assert find_sequences(header) is None


def test_files_defined_inside_the_program_are_numbered_on() -> None:
    """DW_LNE_define_file: name, directory, time, length, as in the header (DWARF 4, section 6.2.5.3)."""
    operands = b"late.c\0" + bytes([1, 0, 0])
    define = b"\0" + uleb(1 + len(operands)) + bytes([dw.DW_LNE_define_file]) + operands
    program = (
        *(set_address(0x1000), bytes([dw.DW_LNS_copy, dw.DW_LNS_advance_pc, 8]), END_SEQUENCE),
        *(define, set_address(0x1010), bytes([dw.DW_LNS_set_file, 2, dw.DW_LNS_copy, dw.DW_LNS_advance_pc, 8]), END_SEQUENCE),
    )
    found = rows(run(line_unit_4([b"a.c"], b"".join(program), [b"sub"])))
    assert found == [
        (0x1000, "/build/sub/a.c", 1, 0),
        (0x1008, "", 0, 0),
        (0x1010, "/build/sub/late.c", 1, 0),
        (0x1018, "", 0, 0),
    ]


def test_a_part_of_a_program_that_uses_files_of_another_part_is_refused() -> None:
    """The caller runs the whole program then."""
    program = set_address(0x1000) + bytes([dw.DW_LNS_set_file, 2, dw.DW_LNS_copy, dw.DW_LNS_advance_pc, 8]) + END_SEQUENCE
    contents = sections(info=INFO, abbrev=ABBREV, line=line_unit_4([b"a.c"], program))
    header = read_line_header(UnitReader(contents).root(0))
    with pytest.raises(ValueError, match="defined inside"):
        run_sequences(header, contents, [(header.program_start, len(header.data))], np.array([0x1004], np.uint64))
