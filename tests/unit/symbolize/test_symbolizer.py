from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from profiler.model.arrays import UInt64Column
from profiler.model.dso import Dso, DsoKind
from profiler.model.function import NameSource
from profiler.model.symbols import DsoSymbols, FileCaveats
from support.elf_programs import compile_program, load_image, tool_output
from symbolize.cache import SymbolCache
from symbolize.elf.image import ElfImage
from symbolize.locate import Locator, own_vdso
from symbolize.symbolizer import Symbolizer

NO_RETURN = r"""
#include <unistd.h>
volatile int x;
__attribute__((noinline, noreturn)) void nr() { x = 2; _exit(0); }
__attribute__((noinline)) void calls_noreturn() { nr(); }
__attribute__((noinline)) void after_it() { x = 1; }
int main(int argc, char **argv) { if (argc > 5) after_it(); calls_noreturn(); }
"""
INLINED = r"""
volatile int sink;
struct S { int v; __attribute__((always_inline)) int get(int k) const { return v * k + sink; } };
int main(int argc, char **) { S s{argc}; return s.get(3); }
"""


def symbol(program: Path, name: str) -> tuple[int, int]:
    """(link address, size) by nm."""
    rows = [line.split() for line in tool_output("nm", "-S", str(program)).splitlines()]
    return next((int(row[0], 16), int(row[1], 16)) for row in rows if row[-1] == name)


def recorded(program: Path, kind: DsoKind = DsoKind.FILE) -> Dso:
    return Dso(str(program), load_image(program).build_id, kind)


def offsets_of(program: Path, *addresses: int) -> UInt64Column:
    return load_image(program).file_offsets(np.array(addresses, np.uint64))


def names(symbols: DsoSymbols, row: int = 0) -> list[str]:
    start, end = symbols.chains.start[row : row + 2].tolist()
    return [symbols.functions[each].name for each in symbols.chains.function[start:end].tolist()]


def test_return_addresses_are_looked_up_one_byte_before(tmp_path: Path) -> None:
    """A call that does not return is the last instruction of its function: the address behind it is the next function's."""
    program = compile_program(
        tmp_path, "noreturn.c", NO_RETURN, ["-O1", "-g", "-fno-align-functions", "-fno-reorder-functions"]
    )
    start, size = symbol(program, "calls_noreturn")
    next_start, _ = symbol(program, "after_it")
    assert start + size == next_start
    offsets = np.repeat(offsets_of(program, start + size), 2)
    symbols = Symbolizer(Locator(), None).symbolize(recorded(program), offsets, np.array([True, False]))
    assert names(symbols, 0) == ["calls_noreturn"]
    assert names(symbols, 1) == ["after_it"]


def test_unresolved_frames_show_the_offset_as_recorded(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "plain.c", "int main(void) { return 0; }", ["-O1"])
    symbols = Symbolizer(Locator(), None).symbolize(recorded(program), np.array([0x4_0000], np.uint64), np.array([True]))
    assert names(symbols) == ["plain+0x40000"]
    assert symbols.functions[0].name_source == NameSource.UNRESOLVED


def test_missing_and_foreign_files_are_named_in_the_status(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "plain.c", "int main(void) { return 0; }", ["-O1"])
    offsets, flags = np.array([0x1130], np.uint64), np.zeros(1, np.bool_)
    symbolizer = Symbolizer(Locator(), None)
    gone = symbolizer.symbolize(Dso(str(tmp_path / "gone.so"), b"", DsoKind.FILE), offsets, flags)
    assert names(gone) == ["gone.so+0x1130"]
    assert "gone.so" in gone.status
    other = symbolizer.symbolize(Dso(str(program), bytes.fromhex("00" * 20), DsoKind.FILE), offsets, flags)
    assert names(other) == ["plain+0x1130"]
    assert "00" * 20 in other.status
    assert load_image(program).build_id.hex() in other.status


@pytest.mark.parametrize("kind", [DsoKind.KERNEL, DsoKind.MODULE, DsoKind.ANONYMOUS, DsoKind.UNKNOWN])
def test_other_kinds_are_not_looked_up(kind: DsoKind) -> None:
    symbols = Symbolizer(Locator(), None).symbolize(
        Dso("[kernel]", b"", kind), np.array([0xFFFF_0000], np.uint64), np.zeros(1, np.bool_)
    )
    assert names(symbols) == ["[kernel]+0xffff0000"]


def test_vdso_functions_have_names() -> None:
    image = own_vdso()
    if image is None:
        pytest.skip("this process has no vDSO that can be read")
    offsets = np.arange(0, len(image.data), 16, dtype=np.uint64)
    dso = Dso("[vdso]", image.build_id, DsoKind.VDSO)
    symbols = Symbolizer(Locator(), None).symbolize(dso, offsets, np.zeros(len(offsets), np.bool_))
    assert any(each.name.endswith("clock_gettime") for each in symbols.functions)


def test_inline_frames_come_from_the_cache_once_decoded(tmp_path: Path) -> None:
    """The binary loses its debug information, not its build ID: only the cache still knows what was inlined."""
    program = compile_program(tmp_path, "inlined.cpp", INLINED, ["-O1", "-g"])
    start, size = symbol(program, "main")
    offsets = offsets_of(program, *range(start, start + size))
    flags = np.zeros(len(offsets), np.bool_)
    cache = SymbolCache(tmp_path / "cache")
    dso = recorded(program)
    before = Symbolizer(Locator(), cache).symbolize(dso, offsets, flags)
    chains = [names(before, row) for row in range(len(offsets))]
    assert ["S::get(int) const", "main"] in chains
    subprocess.run(["strip", "-g", str(program)], check=True)
    after = Symbolizer(Locator(), cache).symbolize(dso, offsets, flags)
    assert [names(after, row) for row in range(len(offsets))] == chains
    assert after.chains.line.tolist() == before.chains.line.tolist()
    assert [names(Symbolizer(Locator(), None).symbolize(dso, offsets, flags), row) for row in (0, 1)] == [["main"], ["main"]]


def test_a_damaged_cache_is_rebuilt(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "inlined.cpp", INLINED, ["-O1", "-g"])
    start, size = symbol(program, "main")
    offsets = offsets_of(program, *range(start, start + size))
    flags = np.zeros(len(offsets), np.bool_)
    cache = SymbolCache(tmp_path / "cache")
    first = Symbolizer(Locator(), cache).symbolize(recorded(program), offsets, flags)
    stored = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert {path.suffix for path in stored} == {".map", ".names", ".symbols"}
    for path, content in stored.items():
        path.write_bytes(content[:48] + bytes(8) + content[56:])
    again = Symbolizer(Locator(), cache).symbolize(recorded(program), offsets, flags)
    assert [names(again, row) for row in range(len(offsets))] == [names(first, row) for row in range(len(offsets))]
    assert {path: path.read_bytes() for path in stored} == stored


def test_symbol_tables_are_not_parsed_again_for_what_the_cache_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = compile_program(
        tmp_path, "plain.c", "int f(int x) { return x; } int main(int c, char **v) { return f(c); }", ["-O0"]
    )
    offsets = offsets_of(program, symbol(program, "main")[0], symbol(program, "f")[0])
    cache, flags = SymbolCache(tmp_path / "cache"), np.zeros(2, np.bool_)
    parsed: list[str] = []
    parse = ElfImage.symbol_table
    monkeypatch.setattr(ElfImage, "symbol_table", lambda image: (parsed.append(image.name), parse(image))[1])
    for count in (1, 1, 2):
        symbols = Symbolizer(Locator(), cache).symbolize(recorded(program), offsets[:count], flags[:count])
        assert [names(symbols, row) for row in range(count)] == [["main"], ["f"]][:count]
    assert parsed == [str(program)] * 2  # for the first address and for the second one


def test_kept_names_do_not_outlive_the_symbol_table_they_came_from(tmp_path: Path) -> None:
    """The same build ID, once with .symtab and once stripped."""
    program = compile_program(tmp_path, "plain.c", "int main(void) { return 0; }", ["-O1"])
    start, _ = symbol(program, "main")
    offsets, whole = offsets_of(program, start), program.read_bytes()
    tool_output("strip", str(program))
    stripped = program.read_bytes()
    cache, found = SymbolCache(tmp_path / "cache"), []
    for content in (whole, stripped, whole):
        program.write_bytes(content)
        found.append(names(Symbolizer(Locator(), cache).symbolize(recorded(program), offsets, np.zeros(1, np.bool_))))
    assert found == [["main"], [f"plain+0x{start:x}"], ["main"]]


def test_stripped_binary_says_so(tmp_path: Path) -> None:
    program = compile_program(
        tmp_path, "plain.c", "static int f(int x) { return x; } int main(int c, char **v) { return f(c); }", ["-O0", "-g"]
    )
    start, _ = symbol(program, "main")
    offsets = offsets_of(program, start)
    subprocess.run(["strip", str(program)], check=True)
    symbols = Symbolizer(Locator(), None).symbolize(recorded(program), offsets, np.zeros(1, np.bool_))
    assert "stripped" in symbols.status
    assert symbols.functions[0].name_source == NameSource.UNRESOLVED


def test_names_of_an_unverified_file_say_so(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "bare.c", "int main(void) { return 0; }", ["-O1", "-Wl,--build-id=none"])
    start, _ = symbol(program, "main")
    symbols = Symbolizer(Locator(), None).symbolize(recorded(program), offsets_of(program, start), np.array([False]))
    assert names(symbols) == ["main"]
    assert (symbols.status, symbols.caveats.unverified) == ("", str(program))
    assert symbols.caveats.changed_ns == program.stat().st_mtime_ns


@pytest.mark.parametrize("version", [4, 5])
def test_missing_dwo_files_are_named(tmp_path: Path, version: int) -> None:
    """With -gsplit-dwarf the inlined call stands in the .dwo file; what was answered without it is not kept."""
    flags = ["-O1", "-g", f"-gdwarf-{version}"]
    whole = compile_program(tmp_path, "whole.cpp", INLINED, flags)
    split = compile_program(tmp_path, "split.cpp", INLINED, [*flags, "-gsplit-dwarf"])
    cache, missing = tmp_path / "cache", f"{split}: .dwo files with its debug information are missing (-gsplit-dwarf)"
    away = [(path, path.rename(tmp_path / "away")) for path in tmp_path.glob("*.dwo")]
    assert len(away) == 1
    for program, message, depth in ((whole, "", 2), (split, missing, 1), (split, "", 2)):
        if program == split and not message:
            away[0][1].rename(away[0][0])
        start, _ = symbol(program, "main")
        for _ in range(2):
            symbolizer = Symbolizer(Locator(), SymbolCache(cache))
            symbols = symbolizer.symbolize(recorded(program), offsets_of(program, start), np.array([False]))
            assert symbols.caveats == FileCaveats(incomplete=message)
            assert len(symbols.chains.function) == depth


def test_a_link_to_a_dwz_file(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "shared.cpp", INLINED, ["-O1", "-g"])
    link = tmp_path / "link"
    link.write_bytes(b"/usr/lib/debug/.dwz/shared.debug\0" + b"i" * 20)
    tool_output("objcopy", f"--add-section=.gnu_debugaltlink={link}", str(program))
    start, _ = symbol(program, "main")
    symbols = Symbolizer(Locator(), None).symbolize(recorded(program), offsets_of(program, start), np.array([False]))
    assert symbols.caveats.incomplete == (
        f"{program}: the file that dwz shared its debug information with is missing (.gnu_debugaltlink)"
    )
