"""Symbol look-up against readelf and objdump, the choice among aliases against the documented rules, damage for errors."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from profiler.errors import FormatError
from support.elf_builder import (
    SHF_ALLOC_EXECINSTR,
    SHN_ABS,
    SHT_PROGBITS,
    ElfSpec,
    SectionSpec,
    SymbolSpec,
    build_elf,
    symbol_sections,
)
from support.elf_programs import compile_program, load_image, system_library, tool_output
from symbolize.elf.image import parse_image
from symbolize.elf.symbol_table import SymbolTable, parse_symbol_table

LOCAL, GLOBAL, WEAK = 0, 1, 2
NOTYPE, OBJECT, FUNC, SECTION, FILE, TLS, IFUNC = 0, 1, 2, 3, 4, 6, 10

ASSEMBLER = """
    .text
    .globl main
    .type main, @function
main: .fill 16, 1, 0x90
    ret
    .size main, .-main
    .fill 7, 1, 0x90
    .globl no_size
no_size: .fill 32, 1, 0x90
inner_label: ret
    .globl sized
    .type sized, @function
sized: .fill 8, 1, 0x90
label_inside:
    .fill 8, 1, 0x90
    ret
    .size sized, .-sized
    .fill 30, 1, 0x90
    .weak weak_name
    .type weak_name, @function
    .globl strong_name
    .type strong_name, @function
    .type local_name_that_is_long, @function
weak_name:
strong_name:
local_name_that_is_long:
    ret
    .size weak_name, 1
    .size strong_name, 1
    .size local_name_that_is_long, 1
    .section .note.GNU-stack,"",@progbits
"""


def listed_symbols(path: Path, *options: str) -> list[tuple[int, int, str, str, str, str]]:
    """(value, size, type, binding, section, name) from readelf."""
    text = tool_output("readelf", "-sW", *options, str(path))
    pattern = re.compile(r"^ *\d+: ([0-9a-f]{16}) +(\w+) (\w+) +(\w+) +\w+ +(?:\[.*?\] )?(\w+) (\S+)", re.MULTILINE)
    return [(int(v, 16), int(s, 0), t, b, section, name) for v, s, t, b, section, name in pattern.findall(text)]


def lookup(table: SymbolTable, *addresses: int) -> list[str]:
    return [table.name(row) if row >= 0 else "" for row in table.lookup(np.array(addresses, np.uint64)).tolist()]


def table_of(*symbols: SymbolSpec, text_size: int = 0x1000) -> SymbolTable:
    text = SectionSpec(".text", SHT_PROGBITS, bytes(text_size), SHF_ALLOC_EXECINSTR, 0x1000)
    data = SectionSpec(".data", SHT_PROGBITS, bytes(64), 3, 0x9000)
    return parse_symbol_table(
        parse_image(build_elf(ElfSpec(sections=[text, data, *symbol_sections(list(symbols), 3)])), "made")
    )


def check_against_readelf(path: Path, *options: str) -> int:
    """Every function that readelf lists is found from its first to its last byte, under one of its names."""
    table = parse_symbol_table(load_image(path))
    functions = [
        s for s in listed_symbols(path, *options) if s[2] in ("FUNC", "IFUNC") and s[4] not in ("UND", "ABS") and s[1] > 0
    ]
    names: dict[int, set[str]] = {}
    for value, _, _, _, _, name in functions:
        names.setdefault(value, set()).add(name.partition("@")[0])
    starts = np.array(sorted(names), np.uint64)
    rows = table.lookup(starts)
    assert np.all(rows >= 0)
    assert [table.start(row) for row in rows.tolist()] == starts.tolist()
    assert all(table.name(row) in names[int(start)] for row, start in zip(rows.tolist(), starts, strict=True))
    last = {value: value + size - 1 for value, size, *_ in functions}
    ends = table.lookup(np.array(list(last.values()), np.uint64))
    assert np.all(ends >= 0)
    return len(starts)


def test_libc_equals_readelf() -> None:
    assert check_against_readelf(system_library("libc.so.6"), "--dyn-syms") > 2000


def test_program_equals_readelf(tmp_path: Path) -> None:
    source = "#include <string>\n#include <iostream>\nint main(int c, char** v) { std::cout << std::string(c, 'x') << v[0]; }\n"
    assert check_against_readelf(compile_program(tmp_path, "program.cpp", source, ["-O0"])) >= 5


def test_debug_file_equals_readelf() -> None:
    build_id = load_image(system_library("libc.so.6")).build_id.hex()
    path = Path("/usr/lib/debug/.build-id") / build_id[:2] / f"{build_id[2:]}.debug"
    if not path.is_file():
        pytest.skip("libc's debug file is not installed")
    assert check_against_readelf(path) > 3000


def test_assembler_without_sizes(tmp_path: Path) -> None:
    path = compile_program(tmp_path, "code.s", ASSEMBLER)
    address = {name: value for value, _, _, _, _, name in listed_symbols(path)}
    table = parse_symbol_table(load_image(path))
    main, no_size, sized = address["main"], address["no_size"], address["sized"]
    assert lookup(table, main, main + 16, main + 17) == ["main", "main", ""]  # the gap behind belongs to nothing
    assert lookup(table, no_size, no_size + 31) == ["no_size", "no_size"]
    assert lookup(table, no_size + 32) == ["inner_label"]
    assert lookup(table, sized, sized + 8, sized + 16, sized + 17) == ["sized", "sized", "sized", ""]
    assert lookup(table, address["strong_name"]) == ["strong_name"]
    assert lookup(table, main - 1, 0, 2**64 - 1)[1:] == ["", ""]


def test_strip_leaves_gaps_unclaimed(tmp_path: Path) -> None:
    source = (
        "__attribute__((noinline)) int first(int x) { return x + 1; }\n"
        "__attribute__((noinline)) int second(int x) { return first(x) * 2; }\n"
        "int main(int c, char** v) { return second(c); }\n"
    )
    path = compile_program(tmp_path, "three.c", source, ["-O1", "-fno-ipa-icf"])
    address = {name: value for value, _, _, _, _, name in listed_symbols(path)}
    stripped = tmp_path / "stripped"
    tool_output("strip", "-K", "first", "-o", str(stripped), str(path))
    table = parse_symbol_table(load_image(stripped))
    assert lookup(table, address["first"], address["second"], address["main"]) == ["first", "", ""]


@pytest.mark.parametrize(
    ("symbols", "wanted"),
    [
        ([SymbolSpec("sized", 0x1000, 8), SymbolSpec("unsized_and_longer", 0x1000, 0)], "sized"),
        ([SymbolSpec("label_of_some_kind", 0x1000, 8, NOTYPE), SymbolSpec("function", 0x1000, 8)], "function"),
        ([SymbolSpec("much_longer_weak", 0x1000, 8, FUNC, WEAK), SymbolSpec("local", 0x1000, 8, FUNC, LOCAL)], "local"),
        ([SymbolSpec("longer_local", 0x1000, 8, FUNC, LOCAL), SymbolSpec("global", 0x1000, 8)], "global"),
        ([SymbolSpec("__libc_malloc", 0x1000, 8), SymbolSpec("malloc", 0x1000, 8)], "malloc"),
        ([SymbolSpec("read", 0x1000, 8), SymbolSpec("readlong", 0x1000, 8)], "readlong"),
        ([SymbolSpec("bb", 0x1000, 8), SymbolSpec("aa", 0x1000, 8)], "aa"),
        ([SymbolSpec("_ZN3foo3barEv", 0x1000, 8), SymbolSpec("foo", 0x1000, 8)], "_ZN3foo3barEv"),
    ],
)
def test_alias_choice(symbols: list[SymbolSpec], wanted: str) -> None:
    assert lookup(table_of(*symbols), 0x1000) == [wanted]
    assert lookup(table_of(*reversed(symbols)), 0x1000) == [wanted]


def test_what_is_not_a_function_is_left_out() -> None:
    table = table_of(
        SymbolSpec("thread_local", 0x1000, 64, TLS),
        SymbolSpec("section", 0x1000, 64, SECTION),
        SymbolSpec("file", 0x1000, 64, FILE),
        SymbolSpec("object", 0x1000, 64, OBJECT),
        SymbolSpec("GLIBC_2.34", 0x1000, 64, FUNC, section=SHN_ABS),
        SymbolSpec("undefined", 0x1000, 64, FUNC, section=0),
        SymbolSpec("common", 0x1000, 64, FUNC, section=0xFFF2),
        SymbolSpec("$x", 0x1000, 0, NOTYPE),
        SymbolSpec("$d.12", 0x1000, 0, NOTYPE),
        SymbolSpec(".Lloop", 0x1000, 0, NOTYPE),
        SymbolSpec("label_in_data", 0x9000, 0, NOTYPE, section=2),
        SymbolSpec("", 0x1000, 64),
        SymbolSpec("resolver", 0x1100, 16, IFUNC),
    )
    assert len(table) == 1
    assert lookup(table, 0x1000, 0x1100, 0x110F, 0x1110, 0x9000) == ["", "resolver", "resolver", "", ""]


def test_symbol_without_size_ends_at_next_symbol_or_section_end() -> None:
    table = table_of(SymbolSpec("first", 0x1000), SymbolSpec("second", 0x1040), text_size=0x60)
    assert lookup(table, 0x103F, 0x1040, 0x105F, 0x1060) == ["first", "second", "second", ""]


def test_innermost_of_nested_symbols_wins() -> None:
    table = table_of(
        SymbolSpec("outer", 0x1000, 0x100),
        SymbolSpec("middle", 0x1010, 0x40),
        SymbolSpec("inner", 0x1020, 0x8),
        SymbolSpec("later", 0x1080, 0x8),
    )
    wanted = ["outer", "middle", "inner", "middle", "outer", "later", "outer", ""]
    assert lookup(table, 0x100F, 0x1010, 0x1027, 0x1028, 0x1050, 0x1080, 0x1088, 0x1100) == wanted


def test_version_suffixes_are_kept_off_and_odd_names_survive() -> None:
    table = table_of(SymbolSpec("memcpy@@GLIBC_2.14", 0x1000, 8), SymbolSpec("grün", 0x1010, 8), SymbolSpec("@odd", 0x1020, 8))
    assert lookup(table, 0x1000, 0x1010, 0x1020) == ["memcpy", "grün", "@odd"]


def test_names_that_are_not_utf8_and_offsets_outside_the_strings() -> None:
    data = bytearray(build_elf(ElfSpec(sections=[
        SectionSpec(".text", SHT_PROGBITS, bytes(64), SHF_ALLOC_EXECINSTR, 0x1000),
        *symbol_sections([SymbolSpec("latin_X", 0x1000, 8), SymbolSpec("lost", 0x1010, 8)], 2),
    ])))  # fmt: skip
    data[data.index(b"latin_X") + 6] = 0xE4
    record = data.index(struct.pack("<QQ", 0x1010, 8)) - 8
    struct.pack_into("<I", data, record, 10**9)
    table = parse_symbol_table(parse_image(bytes(data), "odd names"))
    assert lookup(table, 0x1000, 0x1010) == ["latin_\\xe4", ""]


def test_stripped_program_has_dynamic_symbols_only(tmp_path: Path) -> None:
    path = compile_program(tmp_path, "static.c", "int main(void) { return 0; }\n", ["-static", "-s"])
    assert len(parse_symbol_table(load_image(path))) == 0
    assert len(parse_symbol_table(load_image(system_library("libc.so.6")))) > 2000


@pytest.mark.parametrize("options", [["-fcf-protection=full"], ["-fcf-protection=none", "-Wl,-z,lazy"], ["-fno-plt"]])
def test_plt_names_equal_objdump(tmp_path: Path, options: list[str]) -> None:
    source = (
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        "int main(int c, char** v) { char* p = malloc(c); puts(v[0]); memset(p, c, c); free(p); return strlen(v[0]); }\n"
    )
    path = compile_program(tmp_path, "calls.c", source, ["-O1", "-fno-builtin", *options])
    table = parse_symbol_table(load_image(path))
    stubs = re.findall(r"^([0-9a-f]{16}) <(\w+)@plt>:", tool_output("objdump", "-d", str(path)), re.MULTILINE)
    assert len(stubs) >= (1 if "-fno-plt" in options else 5)
    for address, name in stubs:
        start = int(address, 16)
        assert lookup(table, start, start + 7) == [f"{name}@plt"] * 2


def test_table_beyond_the_file_is_a_format_error(tmp_path: Path) -> None:
    text = SectionSpec(".text", SHT_PROGBITS, bytes(64), SHF_ALLOC_EXECINSTR, 0x1000)
    table, strings = symbol_sections([SymbolSpec("a", 0x1000, 8)], 2)
    spec = ElfSpec(sections=[text, SectionSpec(table.name, table.kind, table.content, link=3, size=1 << 40), strings])
    with pytest.raises(FormatError, match=r"\.symtab"):
        parse_symbol_table(parse_image(build_elf(spec), "cut"))


def test_names_with_duplicate_sections_and_huge_sizes() -> None:
    table = table_of(SymbolSpec("endless", 0x1000, 2**64 - 1), SymbolSpec("after", 0x1100, 16))
    assert lookup(table, 0x1000, 0x1100, 0x1110, 2**63) == ["endless", "after", "endless", "endless"]


def test_nm_agrees_on_every_text_symbol_of_a_cpp_program(tmp_path: Path) -> None:
    source = (
        "#include <map>\n#include <string>\nstatic int size(std::map<std::string, int> m) { return m.size(); }\n"
        'int main(int c, char**) { std::map<std::string, int> m; m["a"] = c; return size(m); }\n'
    )
    path = compile_program(tmp_path, "maps.cpp", source, ["-O0"])
    listed = subprocess.run(["nm", "--defined-only", str(path)], capture_output=True, text=True, check=True).stdout
    table = parse_symbol_table(load_image(path))
    by_address: dict[int, set[str]] = {}
    for address, kind, name in re.findall(r"^([0-9a-f]{16}) (\w) (\S+)", listed, re.MULTILINE):
        if kind in "tT":
            by_address.setdefault(int(address, 16), set()).add(name)
    assert len(by_address) > 5
    for address, names in by_address.items():
        assert set(lookup(table, address)) <= names


def test_row_of_a_name_is_the_first_that_bears_it() -> None:
    table = parse_symbol_table(load_image(system_library("libc.so.6")))
    names = [table.name(row) for row in range(len(table))]
    for name in ("__libc_start_main", "malloc", "printf"):
        assert table.row_named(name) == names.index(name)
    assert table.row_named("no_such_function") == -1
    assert table.row_named("rintf") == -1  # the end of another name


def test_symbol_table_of_an_image_is_parsed_once() -> None:
    image = load_image(system_library("libc.so.6"))
    assert image.symbol_table() is image.symbol_table()
    assert len(image.symbol_table()) == len(parse_symbol_table(image))
