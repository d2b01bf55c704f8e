"""Inline chains in builds of the Rust workload, with real crates in it, against addr2line and llvm-symbolizer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.rust_workload import RustVariant
from support.symbol_oracle import compare, symbolized, text_addresses

# More than the 2,000 that are to be compared: some lie in code without a source file.
ADDRESSES = 2600
COMPARED = 2000
AGREEMENT = 0.995

BUILDS = [
    RustVariant(),
    *(
        pytest.param(RustVariant(profile, jemalloc=jemalloc), marks=pytest.mark.full)
        for profile in ("release", "thin", "fat", "line-tables")
        for jemalloc in (False, True)
        if (profile, jemalloc) != ("release", False)
    ),
]


@pytest.mark.parametrize("variant", BUILDS, ids=lambda variant: variant.label)
def test_chains_agree_with_both_tools(variant: RustVariant, rust_build: Callable[[RustVariant], Path]) -> None:
    program = rust_build(variant)
    addresses = text_addresses(program, ADDRESSES, seed=11)
    agreement = compare(program, addresses, symbolized(program, addresses))
    print(f"{variant.label}: {agreement.share:.2%} of {agreement.compared} addresses\n{agreement.report()}")
    assert agreement.compared >= COMPARED
    assert agreement.share >= AGREEMENT
