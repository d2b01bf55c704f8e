"""Split DWARF of both versions, as .dwo files and as packages: the same answers as for the build with whole debug information,
of which the tools tell."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from profiler.model.function import NameSource
from profiler.model.symbols import DsoSymbols
from support import symbol_programs
from support.same_code import agreement_with_whole, code_of, has_inlined_frames
from support.symbol_oracle import symbolized, text_addresses
from symbolize.locate import Locator, SearchPaths
from symbolize.symbolizer import Symbolizer

AGREEMENT = 0.995
COMPARED = 2000
CXX = {
    "dwarf4": ("-O2", "-g", "-gdwarf-4"),
    "dwarf5": ("-O2", "-g", "-gdwarf-5"),
    "dwarf5-sections": ("-O1", "-g", "-gdwarf-5", "-ffunction-sections", "-Wl,--gc-sections"),
}
RUST = {
    "dwarf4": ("-C", "opt-level=2", "-C", "debuginfo=2", "-C", "dwarf-version=4"),
    "dwarf5": ("-C", "opt-level=2", "-C", "debuginfo=2", "-C", "dwarf-version=5"),
    "units": ("-C", "opt-level=3", "-C", "debuginfo=1", "-C", "codegen-units=16"),
}


Build = Callable[[str], tuple[Path, Path]]


@pytest.fixture(scope="module")
def build_split(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Of a variant's name: (program with whole debug information, the same with .dwo files beside it), from the same source
    files.  They are compiled once; every call makes the directory again as the compiler left it, where the program looks for
    its .dwo files."""
    directory = tmp_path_factory.mktemp("split")

    def build(variant: str) -> tuple[Path, Path]:
        built, untouched = directory / variant, directory / f"{variant}.untouched"
        if not untouched.exists():
            built.mkdir()
            options = (*CXX[variant], "-frandom-seed=1")  # makes the two builds alike
            symbol_programs.build_cxx(built, options, keeps=False).rename(built / "whole")
            symbol_programs.build_cxx(built, (*options, "-gsplit-dwarf"), keeps=False)
            shutil.copytree(built, untouched)
        shutil.rmtree(built)
        shutil.copytree(untouched, built)
        return built / "whole", built / "program"

    return build


def package(program: Path) -> Path:
    """The .dwo files of a program as one .dwp; the .dwo files are gone afterwards."""
    tool = shutil.which("llvm-dwp")
    if tool is None:
        pytest.skip("llvm-dwp is not installed")
    made = program.with_name(f"{program.name}.dwp")
    subprocess.run([tool, "-e", str(program), "-o", str(made)], check=True, capture_output=True, cwd=program.parent)
    for path in program.parent.glob("*.dwo"):
        path.unlink()
    return made


def all_answers(program: Path, symbolizer: Symbolizer | None = None) -> DsoSymbols:
    return symbolized(program, text_addresses(program, 2400, seed=8), symbolizer)


def outermost_names(symbols: DsoSymbols) -> list[str]:
    """ "" for addresses without a symbol."""
    found = [symbols.functions[each] for each in symbols.chains.function[symbols.chains.start[1:] - 1].tolist()]
    return ["" if each.name_source == NameSource.UNRESOLVED else each.linkage_name for each in found]


@pytest.mark.parametrize("variant", CXX)
@pytest.mark.parametrize("form", ["dwo", "dwp"])
def test_cxx_agrees_with_the_whole_build(variant: str, form: str, build_split: Build) -> None:
    whole, split = build_split(variant)
    if form == "dwp":
        package(split)
    agreement = agreement_with_whole(whole, split)
    print(f"{variant} {form}: {agreement.share:.2%} of {agreement.compared} addresses\n{agreement.report()}")
    assert agreement.compared >= COMPARED
    assert agreement.share >= AGREEMENT
    assert all_answers(split).caveats.incomplete == ""


@pytest.mark.parametrize("variant", ["units", *(pytest.param(name, marks=pytest.mark.full) for name in ("dwarf4", "dwarf5"))])
@pytest.mark.parametrize("form", ["unpacked", "packed"])
def test_rust_agrees_with_the_whole_build(variant: str, form: str, tmp_path: Path) -> None:
    options = RUST[variant]
    whole = symbol_programs.build_rust(tmp_path, (*options, "-C", "split-debuginfo=off"), keeps=False).rename(
        tmp_path / "whole"
    )
    split = symbol_programs.build_rust(tmp_path, (*options, "-C", f"split-debuginfo={form}"), keeps=False)
    assert [path.suffix for path in split.parent.glob("*.dw[op]")], "rustc wrote no split debug information"
    if code_of(whole) != code_of(split):
        pytest.skip("this rustc does not give the same code twice")
    agreement = agreement_with_whole(whole, split)
    print(f"{variant} {form}: {agreement.share:.2%} of {agreement.compared} addresses\n{agreement.report()}")
    assert agreement.compared >= COMPARED
    assert agreement.share >= AGREEMENT


def test_without_its_dwo_files_a_program_has_the_names_of_its_symbols(build_split: Build) -> None:
    whole, split = build_split("dwarf5")
    for path in split.parent.glob("*.dwo"):
        path.unlink()
    symbols, wanted = all_answers(split), all_answers(whole)
    assert symbols.caveats.incomplete == f"{split}: .dwo files with its debug information are missing (-gsplit-dwarf)"
    assert not np.any(has_inlined_frames(symbols))
    assert outermost_names(symbols) == outermost_names(wanted)
    # The line table stays in the program: innermost places are known.
    lines = symbols.chains.line[symbols.chains.start[:-1]]
    assert lines.tolist() == wanted.chains.line[wanted.chains.start[:-1]].tolist()
    assert {each.name_source for each in symbols.functions} <= {NameSource.SYMBOL_TABLE, NameSource.UNRESOLVED}


@pytest.mark.parametrize("version", ["dwarf4", "dwarf5"])
def test_a_dwo_file_of_another_build_is_not_used(version: str, build_split: Build, tmp_path: Path) -> None:
    """The same names and another id: another source was compiled at the same place."""
    _, split = build_split(version)
    (tmp_path / "other").mkdir()
    other = symbol_programs.build_cxx(tmp_path / "other", (*CXX[version], "-gsplit-dwarf", "-DNDEBUG", "-O1"), keeps=False)
    for path in split.parent.glob("*.dwo"):
        path.write_bytes((other.parent / path.name).read_bytes())
    symbols = all_answers(split)
    assert symbols.caveats.incomplete.startswith(f"{split}: .dwo files")
    assert not np.any(has_inlined_frames(symbols))


def test_moved_dwo_files_are_found_beside_the_program_and_in_extra_directories(build_split: Build, tmp_path: Path) -> None:
    whole, split = build_split("dwarf4")
    moved, kept = tmp_path / "moved", tmp_path / "kept"
    moved.mkdir()
    kept.mkdir()
    for path in split.parent.glob("*.dwo"):
        shutil.move(path, kept / path.name)
    shutil.move(split, moved / "program")
    missing = all_answers(moved / "program")
    assert missing.caveats.incomplete != ""
    found = Symbolizer(Locator(SearchPaths(extra_directories=(kept,))), None)
    assert agreement_with_whole(whole, moved / "program", found).share >= AGREEMENT
    for path in kept.glob("*.dwo"):
        shutil.move(path, moved / path.name)
    assert agreement_with_whole(whole, moved / "program").share >= AGREEMENT


@pytest.mark.parametrize("form", ["dwo", "dwp"])
def test_damaged_files_give_fewer_names_and_no_exception(form: str, build_split: Build) -> None:
    """Bytes overwritten all over the other files: every address is answered, by the symbol table at least."""
    _, split = build_split("dwarf5")
    if form == "dwp":
        package(split)
    files = list(split.parent.glob(f"*.{form}"))
    originals = [path.read_bytes() for path in files]
    addresses = text_addresses(split, 100, seed=8)
    whole = outermost_names(symbolized(split, addresses))
    random = np.random.default_rng(31)
    for _ in range(10):
        for path, data in zip(files, originals, strict=True):
            damaged = bytearray(data)
            for position in random.integers(0, len(data), 60).tolist():
                damaged[position] = int(random.integers(0, 256))
            path.write_bytes(bytes(damaged[: int(random.integers(1, 2 * len(data)))]))
        assert outermost_names(symbolized(split, addresses)) == whole
