from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from support.dwarf_bytes import abbreviation, sections, unit_4
from support.elf_programs import compile_program, load_image
from support.source_maps import described
from support.symbol_programs import CXX_VARIANTS, build_cxx
from symbolize.dwarf import constants as dw
from symbolize.dwarf import debug_info
from symbolize.dwarf.debug_info import DebugInfo
from symbolize.dwarf.sections import read_sections

SPAN = ((dw.DW_AT_low_pc, dw.DW_FORM_addr), (dw.DW_AT_high_pc, dw.DW_FORM_data4))
ABBREV = (
    abbreviation(1, dw.DW_TAG_compile_unit, True, *SPAN)
    + abbreviation(2, dw.DW_TAG_subprogram, False, *SPAN, (dw.DW_AT_name, dw.DW_FORM_string))
    + b"\0"
)


def unit(low: int, name: bytes) -> bytes:
    return unit_4(b"\1" + struct.pack("<QI", low, 0x100) + b"\2" + struct.pack("<QI", low, 0x100) + name + b"\0\0")


def test_only_units_that_are_hit_are_decoded() -> None:
    info = DebugInfo(sections(info=unit(0x1000, b"first") + unit(0x2000, b"second"), abbrev=ABBREV))
    known = info.extend(info.empty_map(), np.array([0x2010], np.uint64))
    assert known.is_outlined.tolist() == [False, True]
    assert described(known, 0x2010) == [("second", "", 0)]
    assert known.unanswered(np.array([0x1010, 0x2010, 0x9999], np.uint64)).tolist() == [0x1010]
    known = info.extend(known, np.array([0x1010], np.uint64))
    assert described(known, 0x1010) == [("first", "", 0)]
    assert described(known, 0x2010) == [("second", "", 0)]


def test_damaged_units_are_counted_and_the_others_stay() -> None:
    damaged = bytearray(unit(0x3000, b"broken"))
    damaged[-len(b"broken\0\0") - 13] = 0x63  # no such abbreviation
    wide = struct.pack("<IQ", 0xFFFFFFFF, 24) + struct.pack("<HBBQ", 5, 1, 8, 0) + bytes(12)
    info = DebugInfo(sections(info=unit(0x1000, b"first") + bytes(damaged) + wide + unit(0x2000, b"second"), abbrev=ABBREV))
    addresses = np.array([0x1010, 0x2010, 0x3010], np.uint64)
    known = info.extend(info.empty_map(), addresses)
    assert known.left_out == 2
    assert [described(known, address) for address in addresses.tolist()] == [[("first", "", 0)], [("second", "", 0)], []]
    assert len(known.unanswered(addresses)) == 0


def test_growing_address_by_address_equals_decoding_at_once(tmp_path: Path) -> None:
    program = build_cxx(tmp_path, CXX_VARIANTS["O2-dwarf5"])
    image = load_image(program)
    contents = read_sections(image)
    assert contents is not None
    text = image.sections[".text"]
    addresses = np.arange(text.link_address, text.link_address + text.size, 41).astype(np.uint64)
    info = DebugInfo(contents)
    at_once = info.extend(info.empty_map(), addresses)
    stepwise = info.empty_map()
    for address in np.random.default_rng(8).permutation(addresses):
        stepwise = info.extend(stepwise, np.array([address], np.uint64))
    assert max(len(described(at_once, address)) for address in addresses.tolist()) > 3
    for address in addresses.tolist():
        assert described(stepwise, address) == described(at_once, address)


def test_units_missing_from_aranges_are_found_by_their_own_ranges(tmp_path: Path) -> None:
    source = "int f(int x) { return x * 3; }\nint main(int c, char **v) { return f(c); }"
    program = compile_program(tmp_path, "plain.c", source, ["-O1", "-g", "-fno-inline"])
    contents = read_sections(load_image(program))
    assert contents is not None
    without = {name: getattr(contents, name) for name in type(contents).__slots__} | {"aranges": memoryview(b"")}
    with_aranges, by_ranges = (DebugInfo(each).empty_map() for each in (contents, type(contents)(**without)))
    addresses = np.arange(contents.text_low, contents.text_high).astype(np.uint64)
    assert with_aranges.units.lookup(addresses).tolist() == by_ranges.units.lookup(addresses).tolist()
    assert by_ranges.units.lookup(addresses).max() == 0


def test_no_debug_information_is_none(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "plain.c", "int main(void) { return 0; }", ["-O1"])
    assert read_sections(load_image(program)) is None


@pytest.mark.parametrize("size", [0, 1, 10, 11, 12, 30])
def test_truncated_info_section(size: int) -> None:
    info = DebugInfo(sections(info=unit(0x1000, b"first")[:size], abbrev=ABBREV))
    assert info.empty_map().units.lookup(np.array([0x1010], np.uint64)).tolist() == [-1]


def test_units_decoded_one_after_the_other_equal_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held in memory together is a matter of size alone."""
    image = load_image(build_cxx(tmp_path, CXX_VARIANTS["O2-dwarf5"]))
    contents = read_sections(image)
    assert contents is not None
    text = image.sections[".text"]
    addresses = np.arange(text.link_address, text.link_address + text.size, 7).astype(np.uint64)
    found = []
    for limit in (debug_info.BATCH_BYTES, 1):
        monkeypatch.setattr(debug_info, "BATCH_BYTES", limit)
        info = DebugInfo(contents)
        known = info.extend(info.empty_map(), addresses)
        assert known.is_outlined.sum() > 1
        found.append([described(known, address) for address in addresses.tolist()])
    assert found[0] == found[1]


@pytest.mark.parametrize("flags", [["-gdwarf-5"], ["-gdwarf-4"]])
def test_files_of_many_directories(tmp_path: Path, flags: list[str]) -> None:
    """Directory numbers of one byte and of two: 150 headers, each in a directory of its own."""
    for number in range(150):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}" / "h.h").write_text(
            f"__attribute__((noinline)) int f{number}(int x) {{ return x * {number + 3}; }}\n"
        )
    includes = "".join(f'#include "d{number}/h.h"\n' for number in range(150))
    image = load_image(compile_program(tmp_path, "many.c", includes + "int main(void) { return f149(1); }", ["-O1", *flags]))
    contents, table = read_sections(image), image.symbol_table()
    assert contents is not None
    starts = np.array([table.start(table.row_named(f"f{number}")) for number in range(150)], np.uint64)
    info = DebugInfo(contents)
    known = info.extend(info.empty_map(), starts)
    files = [known.strings.text(row) for row in known.answers.file[known.answer_rows(starts)].tolist()]
    assert [file.rpartition("/d")[2] for file in files] == [f"{number}/h.h" for number in range(150)]
