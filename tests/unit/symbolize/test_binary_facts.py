"""Facts of binaries whose build options are known, and of allocators and libraries by name."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.elf_builder import SHF_ALLOC_EXECINSTR, SHT_PROGBITS, ElfSpec, SectionSpec, SymbolSpec, build_elf, symbol_sections
from support.elf_programs import compile_program, load_image, system_library, tool_output
from symbolize.binary_facts import BinaryFacts, binary_facts
from symbolize.elf.dynamic_section import dynamic_needs
from symbolize.elf.image import parse_image

CPP = r"""
#include <map>
#include <string>
#include <vector>
namespace work {
__attribute__((noinline)) int add(std::vector<std::string>& v, int n) { v.push_back(std::to_string(n)); return v.size(); }
__attribute__((noinline)) int count(std::map<int, std::string>& m, int n) { m[n] = "x"; return m.size(); }
__attribute__((noinline)) int both(int n) {
    std::vector<std::string> v;
    std::map<int, std::string> m;
    return add(v, n) + count(m, n);
}
}
int main(int c, char**) { return work::both(c); }
"""
RUST = 'fn main() { let v: Vec<String> = (0..9).map(|i| i.to_string()).collect(); println!("{}", v.join(",")); }\n'


def facts_of(directory: Path, *options: str) -> BinaryFacts:
    return binary_facts(load_image(compile_program(directory, "work.cpp", CPP, options)))


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["-O2"], False),
        (["-O2", "-fno-omit-frame-pointer"], True),
        (["-O2", "-fno-omit-frame-pointer", "-momit-leaf-frame-pointer"], True),
        (["-O3", "-fno-omit-frame-pointer", "-mavx2"], True),
        (["-O3", "-mavx2"], False),
        (["-O0"], True),
        (["-O2", "-fno-asynchronous-unwind-tables", "-fno-exceptions", "-fno-unwind-tables", "-xc++"], False),
    ],
)
def test_frame_pointers(tmp_path: Path, options: list[str], wanted: bool) -> None:
    assert facts_of(tmp_path, *options).keeps_frame_pointers is wanted


def test_system_libraries_keep_no_frame_pointers() -> None:
    facts = binary_facts(load_image(system_library("libc.so.6")))
    frames = tool_output("readelf", "--debug-dump=frames", str(system_library("libc.so.6")))
    assert frames.count("DW_CFA_def_cfa_register: r6") < 500  # of some 3,700 functions
    assert not facts.keeps_frame_pointers
    assert facts.mangling == "none"
    assert facts.debug_info == "none"


@pytest.mark.parametrize(("option", "wanted"), [("-g0", "none"), ("-g1", "line-tables"), ("-g", "full"), ("-gdwarf-4", "full")])
def test_debug_info(tmp_path: Path, option: str, wanted: str) -> None:
    facts = facts_of(tmp_path, "-O1", option)
    assert facts.debug_info == wanted
    assert facts.mangling == "itanium"
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    assert compiler in facts.producer
    assert ("GNU C++" in facts.producer) == (wanted != "none")


@pytest.mark.parametrize("option", ["-gz=zlib", "-gsplit-dwarf"])
def test_debug_info_in_other_forms(tmp_path: Path, option: str) -> None:
    assert facts_of(tmp_path, "-O1", "-g", option).debug_info in ("full", "line-tables")


@pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc is not installed")
@pytest.mark.parametrize(
    ("options", "debug_info", "frame_pointers"),
    [
        (["-Copt-level=3"], "none", False),
        (["-Copt-level=3", "-Cdebuginfo=1", "-Cforce-frame-pointers=yes"], "full", True),
        (["-Copt-level=3", "-Cdebuginfo=line-tables-only"], "line-tables", False),
    ],
)
def test_rust_programs(tmp_path: Path, options: list[str], debug_info: str, frame_pointers: bool) -> None:
    source, program = tmp_path / "words.rs", tmp_path / "words"
    source.write_text(RUST)
    subprocess.run(["rustc", *options, str(source), "-o", str(program)], check=True, capture_output=True)
    facts = binary_facts(load_image(program))
    assert facts.debug_info == debug_info
    assert facts.keeps_frame_pointers is frame_pointers
    assert facts.mangling in ("legacy", "v0", "mixed")
    assert "rustc version" in facts.producer


def test_needed_libraries_equal_readelf(tmp_path: Path) -> None:
    path = compile_program(tmp_path, "work.cpp", CPP, ["-O1"])
    wanted = re.findall(r"\(NEEDED\).*\[(.*)\]", tool_output("readelf", "-dW", str(path)))
    assert len(wanted) >= 2
    assert list(dynamic_needs(load_image(path)).needed) == wanted


def made(*names: str) -> BinaryFacts:
    text = SectionSpec(".text", SHT_PROGBITS, bytes(0x1000), SHF_ALLOC_EXECINSTR, 0x1000)
    symbols = [SymbolSpec(name, 0x1000 + 16 * k, 16) for k, name in enumerate(names)]
    return binary_facts(parse_image(build_elf(ElfSpec(sections=[text, *symbol_sections(symbols, 2)])), "made"))


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["main", "malloc"], "system"),
        (["main", "_rjem_malloc", "_rjem_sdallocx"], "jemalloc"),
        (["main", "je_malloc"], "jemalloc"),
        (["main", "mi_malloc", "mi_free"], "mimalloc"),
        (["main", "tc_malloc"], "tcmalloc"),
        (["main", "my_mi_malloc_not"], "system"),
    ],
)
def test_allocators(names: list[str], wanted: str) -> None:
    assert made(*names).allocator == wanted


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["main", "memcpy"], "none"),
        (["main", "_ZN4work3addEi"], "itanium"),
        (["main", "_ZN4core3ptr13drop_in_place17h0123456789abcdefE"], "legacy"),
        (["main", "_RNvCs1234_7mycrate3foo"], "v0"),
        (["_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "_RNvCs1234_7mycrate3foo"], "mixed"),
        (["_Register_something", "_Record"], "none"),
    ],
)
def test_mangling(names: list[str], wanted: str) -> None:
    assert made(*names).mangling == wanted
