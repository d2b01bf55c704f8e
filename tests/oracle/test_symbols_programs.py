"""Inline chains of compiled programs, address by address, against addr2line and llvm-symbolizer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from profiler.model.function import NameSource
from support import symbol_programs
from support.symbol_oracle import compare, symbol_addresses, symbolized, text_addresses
from support.workload import Variant
from symbolize.elf.image import parse_image

# More than the 2,000 that are to be compared: some lie in code without a source file.
ADDRESSES = 2400
COMPARED = 2000
AGREEMENT = 0.995


@pytest.mark.parametrize("variant", symbol_programs.CXX_VARIANTS)
def test_cxx_chains_agree_with_both_tools(variant: str, tmp_path: Path) -> None:
    program = symbol_programs.build_cxx(tmp_path, symbol_programs.CXX_VARIANTS[variant])
    addresses = text_addresses(program, ADDRESSES, seed=1)
    agreement = compare(program, addresses, symbolized(program, addresses))
    print(f"{variant}: {agreement.share:.2%} of {agreement.compared} addresses\n{agreement.report()}")
    assert agreement.compared >= COMPARED
    assert agreement.share >= AGREEMENT


@pytest.mark.parametrize("variant", symbol_programs.RUST_VARIANTS)
def test_rust_chains_agree_with_both_tools(variant: str, tmp_path: Path) -> None:
    program = symbol_programs.build_rust(tmp_path, symbol_programs.RUST_VARIANTS[variant])
    addresses = text_addresses(program, ADDRESSES, seed=2)
    agreement = compare(program, addresses, symbolized(program, addresses))
    print(f"{variant}: {agreement.share:.2%} of {agreement.compared} addresses\n{agreement.report()}")
    assert agreement.compared >= COMPARED
    assert agreement.share >= AGREEMENT


@pytest.mark.parametrize(
    "variant", [Variant(), Variant("-O0"), Variant("-O3", frame_pointers=True), Variant(lto=True)], ids=str
)
def test_workload_chains_agree_with_both_tools(variant: Variant, workload_build: Callable[[Variant], Path]) -> None:
    program = workload_build(variant)
    addresses = text_addresses(program, ADDRESSES, seed=6)
    agreement = compare(program, addresses, symbolized(program, addresses))
    print(f"{variant}: {agreement.share:.2%} of {agreement.compared} addresses\n{agreement.report()}")
    assert agreement.compared >= COMPARED
    assert agreement.share >= AGREEMENT


@pytest.mark.parametrize("variant", ["O2-dwarf5", "O1-gc-sections"])
def test_methods_of_local_classes_have_their_inlined_calls(variant: str, tmp_path: Path) -> None:
    """Their DIEs stand inside of other functions' DIEs."""
    program = symbol_programs.build_cxx(tmp_path, symbol_programs.CXX_VARIANTS[variant])
    image = parse_image(program.read_bytes(), str(program))
    text = image.sections[".text"]
    addresses = np.arange(text.link_address, text.link_address + text.size).astype(np.uint64)
    symbols = symbolized(program, addresses)
    local = [row for row, each in enumerate(symbols.functions) if "local_scopes" in each.name and "Local::plus" in each.name]
    inside = np.flatnonzero(np.isin(symbols.chains.function, local))
    chains = np.searchsorted(symbols.chains.start, inside, side="right") - 1
    agreement = compare(program, addresses[np.unique(chains)], symbolized(program, addresses[np.unique(chains)]))
    assert agreement.compared >= 5
    assert agreement.disagreements == ()
    depth = np.diff(symbols.chains.start)[np.unique(chains)]
    assert depth.max() >= 2  # hidden() inlined into Local::plus


def test_line_tables_only_names_inline_frames_by_their_crate(tmp_path: Path) -> None:
    program = symbol_programs.build_rust(tmp_path, symbol_programs.RUST_VARIANTS["line-tables-v0"])
    addresses = text_addresses(program, ADDRESSES * 20, seed=3)
    symbols = symbolized(program, addresses)
    partial = {each.key for each in symbols.functions if each.name_source == NameSource.PARTIAL}
    # Methods that rustc inlined into the program's own functions, with the crate of their source file.
    assert "core::rotate_left" in partial
    assert "core::wrapping_mul" in partial


def test_legacy_and_v0_builds_give_the_same_keys(tmp_path: Path) -> None:
    keys = []
    for name, extra in (("default", ()), ("v0", ("-C", "symbol-mangling-version=v0"))):
        directory = tmp_path / name
        directory.mkdir()
        program = symbol_programs.build_rust(directory, ("-C", "opt-level=2", "-C", "debuginfo=1", *extra))
        if name == "default" and not any(symbol.startswith("_ZN3app") for symbol in symbol_addresses(program)):
            pytest.skip("this rustc mangles by v0 only")
        symbols = symbolized(program, text_addresses(program, 50_000, seed=4))
        keys.append({each.key for each in symbols.functions if each.key.startswith("app::")})
    assert {"app::main", "app::tree::Leaf::mixed", "app::tree::Leaf::weight", "app::tree::Pair::weight", "app::total"} <= keys[
        0
    ]
    assert keys[0] == keys[1]
