"""Names of DIEs as compilers write them, checked against what the sources say."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from profiler.model.function import NameSource
from support.dwarf_bytes import abbreviation, sections, unit_4
from support.elf_programs import compile_program, load_image
from symbolize.dwarf import constants as dw
from symbolize.dwarf import function_names
from symbolize.dwarf.function_names import NAMELESS, DieName, FunctionNames
from symbolize.dwarf.inline_chains import InlineChains
from symbolize.dwarf.sections import read_sections
from symbolize.dwarf.unit_outline import read_outline
from symbolize.dwarf.unit_reader import UnitReader

SOURCE = r"""
volatile int sink;
namespace outer {
namespace {
struct Hidden { int v; __attribute__((always_inline)) int twice() { return v * 2 + sink; } };
inline __attribute__((always_inline)) int helper(int v) { Hidden h{v}; return h.twice(); }
}
struct Shown { int v; __attribute__((always_inline)) int get() const { return helper(v); } };
}
static inline __attribute__((always_inline)) int file_local(int v) { return v + sink; }
int main(int argc, char **) { outer::Shown s{argc}; return s.get() + file_local(argc); }
"""


def names_of(program: Path) -> set[DieName]:
    contents = read_sections(load_image(program))
    assert contents is not None
    reader = UnitReader(contents)
    names = FunctionNames(reader)
    found: set[DieName] = set()
    for row in range(len(reader.units)):
        unit = reader.open(row)
        outline = read_outline(unit, [])
        chains = InlineChains(unit)
        for function, die in enumerate(outline.die.tolist()):
            ranges = outline.covered.ranges_of(function)
            chains.add_function(die, [address for low, high in ranges for address in range(low, high)])
        found |= {names.name(die) for die in chains.nodes().die.tolist()}
    return found


def test_linkage_name_first_else_qualified_through_the_parents(tmp_path: Path) -> None:
    found = names_of(compile_program(tmp_path, "names.cpp", SOURCE, ["-O1", "-g"]))
    assert DieName("get", "_ZNK5outer5Shown3getEv", NameSource.LINKAGE_NAME) in found
    qualified = {each.name for each in found if each.source == NameSource.QUALIFIED}
    assert {
        "outer::(anonymous namespace)::helper",
        "outer::(anonymous namespace)::Hidden::twice",
        "file_local",
        "main",
    } <= qualified


def test_line_tables_only_gives_bare_names(tmp_path: Path) -> None:
    found = names_of(compile_program(tmp_path, "names.cpp", SOURCE, ["-O1", "-g1"]))
    partial = {each.name for each in found if each.source == NameSource.PARTIAL}
    assert {"helper", "twice", "file_local"} <= partial


def test_c_names_are_complete_even_in_line_tables(tmp_path: Path) -> None:
    inlined = "static inline __attribute__((always_inline)) int f(int x) { return x + v; }"
    source = f"volatile int v;\n{inlined}\nint main(int c, char **a) {{ return f(c); }}"
    found = names_of(compile_program(tmp_path, "plain.c", source, ["-O1", "-g1"]))
    assert DieName("f", "", NameSource.QUALIFIED) in found


def test_reference_loops_and_foreign_references_give_no_name() -> None:
    abbrev = (
        abbreviation(1, dw.DW_TAG_compile_unit, True)
        + abbreviation(2, dw.DW_TAG_subprogram, False, (dw.DW_AT_abstract_origin, dw.DW_FORM_ref4))
        + abbreviation(3, dw.DW_TAG_subprogram, False, (dw.DW_AT_specification, dw.DW_FORM_GNU_ref_alt))
        + b"\0"
    )
    info = unit_4(b"\1\2" + struct.pack("<I", 12) + b"\3" + struct.pack("<I", 1) + b"\0")
    names = FunctionNames(UnitReader(sections(info=info, abbrev=abbrev)))
    assert [names.name(die) for die in (12, 17, 5, 100_000)] == [NAMELESS] * 4


@pytest.mark.parametrize("offset", [3, 2**31])
def test_damaged_string_offset_gives_no_name(offset: int) -> None:
    abbrev = (
        abbreviation(1, dw.DW_TAG_compile_unit, True)
        + abbreviation(2, dw.DW_TAG_subprogram, False, (dw.DW_AT_name, dw.DW_FORM_strp))
        + b"\0"
    )
    info = unit_4(b"\1\2" + struct.pack("<I", offset) + b"\0")
    names = FunctionNames(UnitReader(sections(info=info, abbrev=abbrev, strings=b"abcd")))
    assert names.name(12) == NAMELESS


@pytest.mark.parametrize("flags", [["-O1", "-g"], ["-O1", "-g", "-gdwarf-4"], ["-O0", "-g"]])
def test_scopes_are_the_same_looked_up_one_by_one_and_noted_all_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    program = compile_program(tmp_path, "names.cpp", SOURCE, flags)
    found = []
    for walks in (0, 3, 1000):
        monkeypatch.setattr(function_names, "WALKS_BEFORE_ALL", walks)
        found.append(names_of(program))
    assert "outer::(anonymous namespace)::Hidden::twice" in {each.name for each in found[0]}
    assert found[1:] == found[:1] * 2
