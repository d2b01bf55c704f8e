"""Debug information that dwz moved into a shared file: the same answers as before, of which the tools tell."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from profiler.model.function import NameSource
from profiler.model.symbols import DsoSymbols
from support import symbol_programs
from support.same_code import agreement_with_whole, has_inlined_frames
from support.symbol_oracle import symbolized, text_addresses
from symbolize.locate import Locator, SearchPaths
from symbolize.symbolizer import Symbolizer

AGREEMENT = 0.995
COMPARED = 2000
VARIANTS = {"dwarf4": ("-O2", "-g", "-gdwarf-4"), "dwarf5": ("-O2", "-g", "-gdwarf-5")}


def build_shared(directory: Path, options: tuple[str, ...], name_in_link: str = "common.debug") -> tuple[Path, Path, Path]:
    """(program as the compiler left it, the same after dwz, the shared file)."""
    tool = shutil.which("dwz")
    if tool is None:
        pytest.skip("dwz is not installed")
    program = symbol_programs.build_cxx(directory, options)
    whole = Path(shutil.copy(program, directory / "whole"))
    other = shutil.copy(program, directory / "sibling")
    shared = directory / "common.debug"
    command = [tool, "-m", str(shared), "-M", name_in_link, str(program), str(other)]
    subprocess.run(command, check=True, capture_output=True)
    return whole, program, shared


def named_keys(symbols: DsoSymbols) -> set[str]:
    return {each.key for each in symbols.functions if each.name_source != NameSource.UNRESOLVED}


@pytest.mark.parametrize("variant", VARIANTS)
def test_chains_agree_with_those_before_dwz(variant: str, tmp_path: Path) -> None:
    whole, program, shared = build_shared(tmp_path, VARIANTS[variant])
    assert shared.stat().st_size > 1000
    agreement = agreement_with_whole(whole, program)
    print(f"{variant}: {agreement.share:.2%} of {agreement.compared} addresses\n{agreement.report()}")
    assert agreement.compared >= COMPARED
    assert agreement.share >= AGREEMENT
    addresses = text_addresses(whole, 2400, seed=8)
    symbols = symbolized(program, addresses)
    assert symbols.caveats.incomplete == ""
    assert named_keys(symbols) == named_keys(symbolized(whole, addresses))


def test_without_the_shared_file_what_is_there_is_right(tmp_path: Path) -> None:
    """Chains keep their depth and their places; names that stood in the shared file are missing, and the file is named."""
    whole, program, shared = build_shared(tmp_path, VARIANTS["dwarf5"])
    shared.unlink()
    addresses = text_addresses(whole, 2400, seed=8)
    symbols, wanted = symbolized(program, addresses), symbolized(whole, addresses)
    assert symbols.caveats.incomplete == (
        f"{program}: the file that dwz shared its debug information with is missing (.gnu_debugaltlink)"
    )
    assert np.any(has_inlined_frames(symbols))
    assert symbols.chains.start.tolist() == wanted.chains.start.tolist()
    assert symbols.chains.line.tolist() == wanted.chains.line.tolist()
    named = [each for each in symbols.functions if each.name_source in (NameSource.LINKAGE_NAME, NameSource.QUALIFIED)]
    assert {each.key for each in named} <= {each.key for each in wanted.functions}


@pytest.mark.parametrize("place", ["beside", "build-id", "dwz-directory"])
def test_places_of_the_shared_file(place: str, tmp_path: Path) -> None:
    """The link names a path of another machine; the build ID says which file it is."""
    whole, program, shared = build_shared(tmp_path, VARIANTS["dwarf4"], "/usr/lib/debug/.dwz/x86_64-linux-gnu/tool.debug")
    tree = tmp_path / "debug"
    build_id = subprocess.run(["readelf", "-n", str(shared)], check=True, capture_output=True, text=True).stdout
    number = build_id.split("Build ID: ")[1].split()[0]
    target = {
        "beside": tmp_path / "tool.debug",
        "build-id": tree / ".build-id" / number[:2] / f"{number[2:]}.debug",
        "dwz-directory": tree / ".dwz" / "tool.debug",
    }[place]
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(shared, target)
    search = SearchPaths(debug_directories=(tree,))
    assert agreement_with_whole(whole, program, Symbolizer(Locator(search), None)).share >= AGREEMENT


def test_a_shared_file_of_another_build_is_not_used(tmp_path: Path) -> None:
    _, program, shared = build_shared(tmp_path, VARIANTS["dwarf4"])
    (tmp_path / "other").mkdir()
    _, _, other = build_shared(tmp_path / "other", ("-O1", "-g", "-gdwarf-4"))
    shutil.copy(other, shared)
    symbols = symbolized(program, text_addresses(program, 100, seed=8))
    assert symbols.caveats.incomplete.endswith("is missing (.gnu_debugaltlink)")


def test_partial_units_of_one_file(tmp_path: Path) -> None:
    """dwz of one file: units refer to partial units of the same file by DW_FORM_ref_addr."""
    tool = shutil.which("dwz")
    if tool is None:
        pytest.skip("dwz is not installed")
    program = symbol_programs.build_cxx(tmp_path, VARIANTS["dwarf5"])
    whole = Path(shutil.copy(program, tmp_path / "whole"))
    subprocess.run([tool, str(program)], check=True, capture_output=True)
    agreement = agreement_with_whole(whole, program)
    assert agreement.compared >= COMPARED
    assert agreement.share >= AGREEMENT


def test_a_damaged_shared_file_gives_fewer_names_and_no_exception(tmp_path: Path) -> None:
    _, program, shared = build_shared(tmp_path, VARIANTS["dwarf5"])
    original, random = shared.read_bytes(), np.random.default_rng(32)
    addresses = text_addresses(program, 100, seed=8)
    depth = np.diff(symbolized(program, addresses).chains.start).tolist()
    note = original.find(b"GNU\0")  # the build ID stays: without it the file is not the right one
    for _ in range(10):
        damaged = bytearray(original)
        for position in random.integers(note + 24, len(original), 60).tolist():
            damaged[position] = int(random.integers(0, 256))
        shared.write_bytes(bytes(damaged))
        assert np.diff(symbolized(program, addresses).chains.start).tolist() == depth
