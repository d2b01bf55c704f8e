"""The workload does the work that it claims: its parts against hashlib and plain definitions, its timers against the kernel."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import workload
from support.workload import Variant

Build = Callable[[Variant], Path]

OPTIMIZED = Variant(frame_pointers=True)
SMALL = ("--validators", "4096", "--epochs", "2")


@pytest.fixture(scope="module")
def program(workload_build: Build) -> Path:
    return workload_build(OPTIMIZED)


def test_parts_agree_with_published_vectors_and_definitions(program: Path) -> None:
    done = subprocess.run([program, "--self-test"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.endswith(": ok")] == []
    assert sum(line.startswith("SHA-256, portable") for line in lines) == 5


def test_list_root_agrees_with_hashlib(program: Path) -> None:
    assert vectors(program)["list_root"] == ssz_list_root([3 * i for i in range(100)]).hex()


def test_shuffling_agrees_with_hashlib(program: Path) -> None:
    expected = [shuffled_index(i, 100, bytes([7] * 32)) for i in range(100)]
    assert vectors(program)["shuffled"] == expected


def vectors(program: Path) -> dict[str, Any]:
    done = subprocess.run([program, "--vectors"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def ssz_list_root(values: list[int]) -> bytes:
    """hash_tree_root of List[uint64, 2**40]: merkleize(pack(values), limit), then mix_in_length."""
    packed = b"".join(value.to_bytes(8, "little") for value in values)
    packed += bytes(-len(packed) % 32)
    layer = [packed[i : i + 32] for i in range(0, len(packed), 32)]
    zero = bytes(32)
    for _ in range(38):
        layer += [zero] * (len(layer) % 2)
        layer = [sha256(layer[i] + layer[i + 1]) for i in range(0, len(layer), 2)]
        zero = sha256(zero + zero)
    return sha256(layer[0] + len(values).to_bytes(32, "little"))


def shuffled_index(index: int, count: int, seed: bytes) -> int:
    """compute_shuffled_index of the Ethereum consensus specification."""
    for current_round in range(90):
        pivot = int.from_bytes(sha256(seed + bytes([current_round]))[:8], "little") % count
        flip = (pivot + count - index) % count
        position = max(index, flip)
        source = sha256(seed + bytes([current_round]) + (position // 256).to_bytes(4, "little"))
        if (source[(position % 256) // 8] >> (position % 8)) % 2:
            index = flip
    return index


@pytest.mark.parametrize(
    "variant",
    [
        Variant("-O0"),
        pytest.param(Variant("-O1"), marks=pytest.mark.full),
        pytest.param(Variant("-O3"), marks=pytest.mark.full),
        Variant(lto=True),
        Variant(portable_sha256=True),
        Variant(portable_sha256=True, slower_hash=100),
    ],
    ids=lambda variant: variant.label,
)
@pytest.mark.parametrize("mode", ["pure", "mixed"])
def test_every_build_gives_the_same_result(program: Path, workload_build: Build, variant: Variant, mode: str) -> None:
    arguments = ("--mode", mode, *SMALL)
    assert workload.run(workload_build(variant), *arguments).checksum == workload.run(program, *arguments).checksum


def test_phases_sum_to_the_total(program: Path) -> None:
    timers = workload.run(program, "--mode", "pure", *SMALL)
    assert len(timers.category_ns) == 8
    assert sum(timers.category_ns.values()) == timers.total_ns < timers.process_cpu_ns
    assert len(timers.epoch_ms) == 2


def test_own_clock_agrees_with_the_kernels_account(program: Path) -> None:
    process = subprocess.Popen([program, "--mode", "mixed"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        timers = workload.parse_timers(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    # What the clock cannot see: exec before main, exit after it.
    account_ns = (usage.ru_utime + usage.ru_stime) * 1e9
    assert process.returncode == 0
    assert timers.process_cpu_ns == pytest.approx(account_ns, abs=10e6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--mode", "fast"), "--mode: pure or mixed"),
        (("--repeat", "dance=3"), "no such phase: dance"),
        (("--validators", "12x"), "not a number: 12x"),
        (("--speed",), "unknown option"),
        (("--threads", "2"), "--threads: only 1"),
    ],
)
def test_wrong_usage_is_refused(program: Path, arguments: tuple[str, ...], message: str) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr
