"""Call frame information: every row of real binaries against readelf, single instructions against the specification."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from profiler.errors import FormatError
from support.elf_programs import compile_program, load_image, system_library, tool_output
from symbolize.elf.call_frame_index import CallFrameIndex, call_frame_indexes
from symbolize.elf.call_frame_program import CFA_BY_EXPRESSION, FrameRow, RegisterRule, RuleKind, frame_rows
from symbolize.elf.call_frame_section import CallFrameSection
from symbolize.elf.dwarf_encoding import encoded_pointer, sleb128, uleb128
from symbolize.elf.image import ElfImage

REGISTERS = ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *[f"r{k}" for k in range(8, 16)], "ra"]
NUMBERS = {name: number for number, name in enumerate(REGISTERS)} | {"rip": 16}
SHORT = {
    RuleKind.UNDEFINED: lambda _: "u",
    RuleKind.SAME_VALUE: lambda _: "s",
    RuleKind.OFFSET: lambda value: f"c{value:+d}",
    RuleKind.VALUE_OFFSET: lambda value: f"v{value:+d}",
    RuleKind.REGISTER: lambda value: f"r{value} ({REGISTERS[value]})",
    RuleKind.EXPRESSION: lambda _: "exp",
    RuleKind.VALUE_EXPRESSION: lambda _: "vexp",
}

PROGRAM = r"""
#include <alloca.h>
#include <cstring>
#include <stdexcept>
#include <vector>
struct Guard { std::vector<int> v; ~Guard() { v.clear(); } };
__attribute__((noinline)) int realigned(int n) {
    alignas(64) char a[256];
    char* b = (char*)alloca(n);
    memset(a, n, sizeof a);
    memset(b, n, n);
    return a[n & 255] + b[n / 2];
}
__attribute__((noinline)) int thrower(int n) {
    Guard g;
    if (n > 3) throw std::runtime_error("n");
    g.v.push_back(n);
    return g.v.size();
}
int main(int c, char**) {
    try { return thrower(c) + realigned(c); } catch (const std::exception& e) { return 7; }
}
"""


def shown_rows(text: str) -> Iterator[tuple[int, int, list[tuple[int, dict[str, str]]]]]:
    """(start, end, [(location, column -> rule)]) of every FDE in readelf's interpreted dump."""
    blocks = re.split(r"\n(?=[0-9a-f]{8} [0-9a-f]{16} )", text)
    for block in blocks:
        head = re.match(r"[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", block)
        if not head:
            continue
        lines = block.splitlines()[1:]
        columns = lines[0].split() if lines else []
        table = [re.findall(r"\S+(?: \(\w+\))?", line) for line in lines[1:] if re.match(r"[0-9a-f]{16} ", line)]
        rows = [(int(parts[0], 16), dict(zip(columns[1:], parts[1:], strict=True))) for parts in table]
        yield int(head[1], 16), int(head[2], 16), rows


def written(row: FrameRow, columns: list[str]) -> dict[str, str]:
    """Our row in readelf's notation, for its columns."""
    assert row.cfa is not None
    register, value = row.cfa
    found = {"CFA": "exp" if register == CFA_BY_EXPRESSION else f"{REGISTERS[register]}{value:+d}"}
    for column in columns:
        if column != "CFA":
            kind, operand = row.rules.get(NUMBERS[column], (RuleKind.UNDEFINED, 0))
            found[column] = SHORT[kind](operand)
    return found


def first_index(image: ElfImage) -> CallFrameIndex:
    for make in call_frame_indexes(image):
        index = make()
        if index is not None:
            return index
    raise AssertionError("no call frame information")


def check_against_readelf(path: Path) -> int:
    index = first_index(load_image(path))
    compared = 0
    for start, end, rows in shown_rows(tool_output("readelf", "--debug-dump=frames-interp", str(path))):
        at = int(index.candidates(np.array([start], np.int64))[0])
        assert at >= 0
        fde = index.section.fde(int(index.offsets[at]))
        assert (fde.start, fde.end) == (start, end)
        if not rows:
            continue  # readelf prints no table for an FDE without instructions
        found = {row.start: row for row in frame_rows(index.section, fde)}
        wanted = dict(rows)  # of rows at one location the last is in force
        assert sorted(found) == sorted(wanted)
        for location, shown in wanted.items():
            assert written(found[location], list(shown)) == shown, hex(location)
            compared += 1
    return compared


def test_libc_equals_readelf() -> None:
    assert check_against_readelf(system_library("libc.so.6")) > 20_000


def test_loader_equals_readelf() -> None:
    assert check_against_readelf(system_library("ld-linux-x86-64.so.2")) > 1_000


@pytest.mark.parametrize("options", [["-O2", "-mavx2"], ["-O0"], ["-O3", "-fno-omit-frame-pointer"]])
def test_program_equals_readelf(tmp_path: Path, options: list[str]) -> None:
    assert check_against_readelf(compile_program(tmp_path, "frames.cpp", PROGRAM, options)) > 20


def test_static_program_without_search_table_equals_readelf(tmp_path: Path) -> None:
    source = "int main(void) { return 0; }\n"
    path = compile_program(tmp_path, "plain.c", source, ["-static", "-Wl,--no-eh-frame-hdr"])
    image = load_image(path)
    assert image.frame_header_segment is None
    assert check_against_readelf(path) > 5_000


def test_debug_frame_serves_where_eh_frame_is_absent(tmp_path: Path) -> None:
    options = ["-g", "-O2", "-fno-asynchronous-unwind-tables", "-fno-exceptions", "-nostartfiles", "-nostdlib", "-static"]
    source = (
        "int twice(int x) { volatile char b[64]; b[x & 63] = x; return b[1] + x; }\nvoid _start(void) { twice(1); for (;;); }\n"
    )
    image = load_image(compile_program(tmp_path, "bare.c", source, options))
    assert image.section_bytes(".eh_frame") is None
    index = first_index(image)
    assert not index.section.is_eh_frame
    shown = list(shown_rows(tool_output("readelf", "--debug-dump=frames-interp", image.name)))
    assert len(shown) == len(index) == 2
    assert [start for start, _, _ in shown] == index.starts.tolist() or sorted(s for s, _, _ in shown) == index.starts.tolist()


def test_search_table_equals_the_linear_index(tmp_path: Path) -> None:
    image = load_image(system_library("libc.so.6"))
    index = first_index(image)
    linear = sorted((start, offset) for start, _, offset in index.section.fde_ranges())
    assert linear == list(zip(index.starts.tolist(), index.offsets.tolist(), strict=True))


def test_index_without_section_headers(tmp_path: Path) -> None:
    path = compile_program(tmp_path, "frames.cpp", PROGRAM, ["-O2"])
    data = bytearray(path.read_bytes())
    wanted = first_index(load_image(path))
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HHH", data, 58, 0, 0, 0)
    bare = tmp_path / "no_sections"
    bare.write_bytes(data)
    found = first_index(load_image(bare))
    assert found.starts.tolist() == wanted.starts.tolist()
    assert frame_rows(found.section, found.section.fde(int(found.offsets[1]))) == frame_rows(
        wanted.section, wanted.section.fde(int(wanted.offsets[1]))
    )


def debug_frame(instructions: bytes, initial: bytes = b"\x0c\x07\x08\x90\x01", size: int = 0x100) -> CallFrameSection:
    """A .debug_frame with one CIE (code alignment 1, data alignment -8, return address 16) and one FDE at 0x1000."""
    cie = b"\xff\xff\xff\xff\x03\0\x01\x78\x10" + initial
    fde = struct.pack("<IQQ", 0, 0x1000, size) + instructions
    data = struct.pack("<I", len(cie)) + cie + struct.pack("<I", len(fde)) + fde
    return CallFrameSection(memoryview(data), 0, False, "made")


def rows_of(section: CallFrameSection) -> list[tuple[int, object, dict[int, RegisterRule]]]:
    ((_, _, offset),) = section.fde_ranges()
    return [(row.start, row.cfa, row.rules) for row in frame_rows(section, section.fde(offset))]


RETURN_ADDRESS = {16: (RuleKind.OFFSET, -8)}


@pytest.mark.parametrize(
    ("instructions", "cfa", "rules"),
    [
        ("", (7, 8), {}),
        ("0e10", (7, 16), {}),  # def_cfa_offset 16
        ("0e10 8602", (7, 16), {6: (RuleKind.OFFSET, -16)}),  # offset rbp
        ("0d06", (6, 8), {}),  # def_cfa_register
        ("0c0310", (3, 16), {}),  # def_cfa rbx + 16
        ("12037e", (3, 16), {}),  # def_cfa_sf rbx, -2 * -8
        ("137c", (7, 32), {}),  # def_cfa_offset_sf -4 * -8
        ("0f027708", (CFA_BY_EXPRESSION, b"\x77\x08"), {}),  # def_cfa_expression
        ("050c03", (7, 8), {12: (RuleKind.OFFSET, -24)}),  # offset_extended r12
        ("110c7d", (7, 8), {12: (RuleKind.OFFSET, 24)}),  # offset_extended_sf
        ("2f0c03", (7, 8), {12: (RuleKind.OFFSET, 24)}),  # GNU_negative_offset_extended
        ("140c03", (7, 8), {12: (RuleKind.VALUE_OFFSET, -24)}),  # val_offset
        ("150c7d", (7, 8), {12: (RuleKind.VALUE_OFFSET, 24)}),  # val_offset_sf
        ("0703", (7, 8), {3: (RuleKind.UNDEFINED, 0)}),
        ("0803", (7, 8), {3: (RuleKind.SAME_VALUE, 0)}),
        ("09030c", (7, 8), {3: (RuleKind.REGISTER, 12)}),
        ("1003027608", (7, 8), {3: (RuleKind.EXPRESSION, b"\x76\x08")}),
        ("1603027608", (7, 8), {3: (RuleKind.VALUE_EXPRESSION, b"\x76\x08")}),
        ("8602 c6", (7, 8), {}),  # offset, restore
        ("8602 0606", (7, 8), {}),  # offset, restore_extended
        ("0a 0e20 8602 0b", (7, 8), {}),  # remember_state, changes, restore_state
        ("2e8001 00 00", (7, 8), {}),  # GNU_args_size, nops
    ],
)
def test_single_instructions(instructions: str, cfa: object, rules: dict[int, RegisterRule]) -> None:
    assert rows_of(debug_frame(bytes.fromhex(instructions))) == [(0x1000, cfa, RETURN_ADDRESS | rules)]


@pytest.mark.parametrize(
    ("advance", "distance"),
    [("44", 4), ("0220", 0x20), ("033412", 0x1234), ("0400000100", 0x10000), ("1d0000000001000000", 1 << 32)],
)
def test_locations_advance(advance: str, distance: int) -> None:
    section = debug_frame(bytes.fromhex(advance + "0e10"))
    assert rows_of(section) == [(0x1000, (7, 8), RETURN_ADDRESS), (0x1000 + distance, (7, 16), RETURN_ADDRESS)]


def test_location_is_set() -> None:
    section = debug_frame(b"\x01" + struct.pack("<Q", 0x1040) + b"\x0e\x10")
    assert [row[0] for row in rows_of(section)] == [0x1000, 0x1040]


def test_no_advance_gives_no_second_row() -> None:
    assert rows_of(debug_frame(bytes.fromhex("0e10 40 0e18"))) == [(0x1000, (7, 24), RETURN_ADDRESS)]


@pytest.mark.parametrize(
    "instructions",
    ["3f", "0b", "0e", "0e80", "02", "0300", "0f7f77", "10030f76", "0f0177 0e10", "01" + "00" * 8, "0a" * 1001],
)
def test_damaged_instructions_are_format_errors(instructions: str) -> None:
    with pytest.raises(FormatError, match=r"made: byte \d+"):
        rows_of(debug_frame(bytes.fromhex(instructions)))


def test_64_bit_lengths() -> None:
    cie = b"\xff" * 8 + b"\x04\0\x08\x00\x01\x78\x10\x0c\x07\x08\x90\x01"  # version 4: address and segment sizes
    fde = struct.pack("<QQQ", 0, 0x2000, 0x40) + b"\x0e\x10"
    data = b"".join(b"\xff\xff\xff\xff" + struct.pack("<Q", len(entry)) + entry for entry in (cie, fde))
    section = CallFrameSection(memoryview(data), 0, False, "made")
    assert [(start, end) for start, end, _ in section.fde_ranges()] == [(0x2000, 0x2040)]
    assert rows_of(section) == [(0x2000, (7, 16), RETURN_ADDRESS)]


def test_cut_sections_and_wild_pointers_end_quietly() -> None:
    whole = bytes(debug_frame(bytes.fromhex("0e10 8602")).data)
    for size in range(len(whole)):
        section = CallFrameSection(memoryview(whole[:size]), 0, False, "cut")
        assert list(section.fde_ranges()) == []
        for offset in range(0, size, 3):
            with pytest.raises(FormatError):
                section.fde(offset)
    wild = struct.pack("<III", 12, 0x7FFFFFF0, 0) + bytes(8)
    assert list(CallFrameSection(memoryview(wild), 0x400000, True, "wild").fde_ranges()) == []


@pytest.mark.parametrize(
    ("data", "unsigned", "signed"),
    [
        ("02", 2, 2),
        ("7f", 127, -1),
        ("8001", 128, 128),
        ("ff7e", 16255, -129),
        ("e58e26", 624485, 624485),
        ("c0bb78", 1973696, -123456),
    ],
)
def test_leb128_as_in_the_specification(data: str, unsigned: int, signed: int) -> None:
    raw = bytes.fromhex(data)
    assert uleb128(raw, 0) == (unsigned, len(raw))
    assert sleb128(raw, 0) == (signed, len(raw))
    with pytest.raises(IndexError):
        uleb128(raw[:-1], 0)


@pytest.mark.parametrize(
    ("encoding", "data", "wanted"),
    [
        (0x00, "efcdab8967452301", 0x0123456789ABCDEF),
        (0x02, "feff", 0xFFFE),
        (0x03, "feffffff", 0xFFFFFFFE),
        (0x1B, "f0ffffff", 0x4000 - 16),  # pcrel sdata4
        (0x3B, "10000000", 0x9010),  # datarel sdata4
        (0x0A, "feff", 2**64 - 2),
        (0x01, "8001", 128),
        (0x09, "7f", 2**64 - 1),
    ],
)
def test_encoded_pointers(encoding: int, data: str, wanted: int) -> None:
    raw = memoryview(bytes.fromhex(data))
    assert encoded_pointer(raw, 0, encoding, (0x4000, 0x9000)) == (wanted, len(raw))


def test_unknown_pointer_encodings_are_value_errors() -> None:
    for encoding in (0x07, 0x2B, 0x53):
        with pytest.raises(ValueError, match="pointer encoding"):
            encoded_pointer(memoryview(bytes(16)), 0, encoding)
