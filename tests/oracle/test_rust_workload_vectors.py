"""What the Rust workload computes, against the consensus specification's definitions written down here."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.rust_workload import RustVariant

ROUNDS = 90
# Limits of the state's lists: 2^40 values, four in each chunk.
LIST_DEPTH = 38


@pytest.fixture(scope="module", params=[RustVariant(), pytest.param(RustVariant(lock_free=True), marks=pytest.mark.full)])
def vectors(request: pytest.FixtureRequest, rust_build: Callable[[RustVariant], Path]) -> list[dict[str, Any]]:
    command = [rust_build(request.param), "--mode", "vectors"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return [json.loads(line) for line in done.stdout.splitlines()]


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def shuffled_index(index: int, count: int, seed: bytes) -> int:
    """``compute_shuffled_index`` of the phase 0 specification."""
    for number in range(ROUNDS):
        pivot = int.from_bytes(sha256(seed + bytes([number]))[:8], "little") % count
        flip = (pivot + count - index) % count
        position = max(index, flip)
        source = sha256(seed + bytes([number]) + (position // 256).to_bytes(4, "little"))
        if source[position % 256 // 8] >> (position % 8) & 1:
            index = flip
    return index


def list_root(values: list[int]) -> bytes:
    """``hash_tree_root`` of ``List[uint64, 2**40]``."""
    packed = b"".join(value.to_bytes(8, "little") for value in values)
    layer = [packed[start : start + 32].ljust(32, b"\0") for start in range(0, len(packed), 32)]
    zero = bytes(32)
    for _ in range(LIST_DEPTH):
        if len(layer) % 2:
            layer.append(zero)
        layer = [sha256(left + right) for left, right in zip(layer[::2], layer[1::2], strict=True)]
        zero = sha256(zero + zero)
    return sha256((layer[0] if layer else zero) + len(values).to_bytes(32, "little"))


def test_shuffles(vectors: list[dict[str, Any]]) -> None:
    shuffles = [each for each in vectors if "shuffled" in each]
    assert [len(each["shuffled"]) for each in shuffles] == [1, 2, 3, 5, 255, 256, 257, 1000]
    for each in shuffles:
        seed, count = bytes(each["seed"]), len(each["shuffled"])
        assert each["shuffled"] == [shuffled_index(index, count, seed) for index in range(count)]


def test_roots_of_lists(vectors: list[dict[str, Any]]) -> None:
    roots = [each for each in vectors if "length" in each]
    assert [each["length"] for each in roots] == [0, 1, 4, 5, 1000]
    for each in roots:
        expected = list_root([place * place + 1 for place in range(each["length"])]).hex()
        assert (each["milhouse"], each["persistent_tree"]) == (expected, expected)


def test_root_of_a_changed_list(vectors: list[dict[str, Any]]) -> None:
    (changed,) = [each for each in vectors if "changed" in each]
    expected = [77, *range(1, 511), 5, *range(512, 999), 1, 2]
    assert changed["changed"] == expected
    assert changed["root"] == list_root(expected).hex()


def test_roots_of_containers(vectors: list[dict[str, Any]]) -> None:
    (roots,) = [each for each in vectors if "checkpoint" in each]
    assert roots["checkpoint"] == sha256((5).to_bytes(32, "little") + bytes([9]) * 32).hex()
    assert roots["pubkey"] == sha256((bytes([3]) * 48).ljust(64, b"\0")).hex()
