from __future__ import annotations

import pytest

from symbolize.source_origin import source_origin

ORIGINS = {
    "/rustc/59807616e1/library/core/src/slice/iter/macros.rs": "core",
    "/home/a/.rustup/toolchains/x/lib/rustlib/src/rust/library/alloc/src/vec/mod.rs": "alloc",
    "/home/dev/.cargo/registry/src/index.crates.io-6f17d22bba15001f/sha2-0.10.8/src/sha256.rs": "sha2",
    "/home/dev/.cargo/registry/src/index.crates.io-6f17d22bba15001f/parking_lot-0.12.1/src/raw_rwlock.rs": "parking_lot",
    "/rust/deps/hashbrown-0.15.2/src/raw.rs": "hashbrown",
    "/home/dev/.cargo/git/checkouts/milhouse-1a2b3c4d5e6f7081/e3e6f1a/src/tree.rs": "milhouse",
    "/home/a/lighthouse/consensus/tree-hash/src/lib.rs": "tree_hash",
    "/home/a/app/examples/demo.rs": "examples",
    "/usr/include/c++/12/bits/stl_vector.h": "std",
    "/build/persistent_tree/tree.cpp": "persistent_tree",
    "../lib/./x.c": "lib",
    "main.c": "",
    "": "",
    "src/main.rs": "src",
}


@pytest.mark.parametrize(("path", "origin"), ORIGINS.items())
def test_origin_of_a_source_file(path: str, origin: str) -> None:
    assert source_origin(path) == origin
