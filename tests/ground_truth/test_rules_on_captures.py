"""The built-in rules on programs built from the clients' own crates, and on the C++ workload: nothing of the timed phase is
without a category, and every function is in one that its crate or namespace allows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from profiler.model.explanation import Explanation
from profiler.pipeline import AnalysisOptions, Arm, explain_function
from support.profiling import RecordedRun, costs_of, dwarf_settings, record, self_by_name
from support.rust_workload import RustVariant
from support.rust_workload import parse_timers as parse_rust_timers
from support.workload import Variant
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

pytestmark = [pytest.mark.perf, pytest.mark.usefixtures("perf", "libc_symbols")]

FREQUENCY_HZ = 1999
MOST_OTHER = 0.01
TIMED = "^phase::|^state_processing::state_advance::(complete|partial)_state_advance$"
KERNEL = {"kernel: page faults", "kernel: memory map", "kernel: other"}
STATE_TREE = {"tree iteration", "tree update", "tree hashing"}

# Which categories the functions of a crate, namespace or library may be in, wherever they are called; written from what they
# are for.  The first row that matches counts.  What is in no row, as the standard libraries, is in its caller's category.
ALLOWED: dict[str, set[str]] = {
    "^sha2::|^digest::|^block_buffer::|^ethereum_hashing::|^sha256::": {"SHA-256"},
    "^swap_or_not_shuffle::": {"shuffling"},
    "^shuffling::": {"shuffling"},
    "^(rpds|archery)::": {"RPDS"},
    "^milhouse::(iter|interface_iter|level_iter)::": {"tree iteration"},
    "^milhouse::(tree|packed_leaf)::.*::tree_hash": {"tree hashing"},
    "^milhouse::(tree|packed_leaf)::.*::(with_updated|update|rebase)": {"tree update"},
    "^(milhouse|persistent_tree)::": STATE_TREE | {"SSZ"},
    "^(parking_lot|lock_api)": {"tree hashing", "tree update", "locks", "thread pool"},
    "^alloc::collections::btree": {"tree iteration", "tree update", "epoch processing", "state and blocks"},
    "^vec_map::": {"tree iteration", "tree update"},
    "^(tree_hash|merkle)::": {"tree hashing", "tree iteration", "tree update"},
    r"^core::hash::sip|^std::hash::random": {"DefaultHasher"},
    "^state_processing::per_epoch_processing::|^epoch_processing::": {"epoch processing"},
    "^ssz::": {"SSZ"},
    r"^_*mem(move|cpy|set|cmp)_": {"memmove"},
    "^(_int_|malloc|c?free(@|$)|calloc|realloc|unlink_chunk|tcache_|sysmalloc|_rjem_|__rust_|__rustc::|operator )": {"malloc"},
    "^crossbeam_(deque|epoch)::|^rayon_core::sleep::": {"thread pool"},
}  # fmt: skip
# Of the weight; what a wrong stack of a sample or two may give.
NOTICED = 0.0005

RUST_BUILDS = [
    RustVariant(),
    *(
        pytest.param(variant, marks=pytest.mark.full)
        for variant in [
            RustVariant("thin"),
            RustVariant("fat"),
            RustVariant(jemalloc=True),
            RustVariant(btree_updates=True),
            RustVariant(lock_free=True),
        ]
    ),
]


def explanations(run: RecordedRun) -> tuple[Explanation, ...]:
    options = AnalysisOptions(phase=TIMED)
    return explain_function(Arm("epoch", (run.capture,)), ".", options, Symbolizer(Locator(), None))


def out_of_place(found: tuple[Explanation, ...]) -> list[str]:
    """Functions in a category that their crate does not have, with the frame that gave it to them."""
    wrong = []
    for entry in found:
        allowed = next((names for pattern, names in ALLOWED.items() if re.search(pattern, entry.function)), None)
        if allowed is not None and entry.share > NOTICED and entry.category not in allowed:
            wrong.append(f"{entry.share:.2%} {entry.function}: {entry.category} by {entry.named_by}")
    return wrong


def assert_rules_hold(run: RecordedRun) -> None:
    table = costs_of(run, phase=TIMED).tables["category"]
    weights = self_by_name(table)
    assert weights.get("other", 0) <= MOST_OTHER * sum(weights.values())
    found = explanations(run)
    judged = [entry for entry in found if any(re.search(pattern, entry.function) for pattern in ALLOWED)]
    assert sum(entry.share for entry in judged) > 0.5
    assert out_of_place(found) == []


@pytest.mark.parametrize("variant", RUST_BUILDS, ids=lambda variant: variant.label)
@pytest.mark.parametrize("threads", ["1", pytest.param("2", marks=pytest.mark.full)])
def test_slots_of_a_rust_client(
    variant: RustVariant, threads: str, rust_build: Callable[[RustVariant], Path], tmp_path: Path
) -> None:
    arguments = ("--validators", "65536", "--runs", "8", "--threads", threads)
    run = record(rust_build(variant), arguments, dwarf_settings(FREQUENCY_HZ, 32768), tmp_path, parse_rust_timers)
    assert_rules_hold(run)
    categories = set(self_by_name(costs_of(run, phase=TIMED).tables["category"]))
    assert categories >= STATE_TREE | {"SHA-256", "RPDS", "shuffling", "epoch processing", "memmove", "malloc"}


@pytest.mark.full
@pytest.mark.parametrize("variant", RUST_BUILDS, ids=lambda variant: variant.label)
def test_phases_of_a_rust_client(variant: RustVariant, rust_build: Callable[[RustVariant], Path], tmp_path: Path) -> None:
    arguments = ("--mode", "pure", "--threads", "1", "--runs", "4")
    assert_rules_hold(record(rust_build(variant), arguments, dwarf_settings(FREQUENCY_HZ, 32768), tmp_path, parse_rust_timers))


@pytest.mark.parametrize("variant", [Variant(), pytest.param(Variant("-O0"), marks=pytest.mark.full)], ids=lambda v: v.label)
@pytest.mark.parametrize("mode", ["mixed", "pure"])
def test_epochs_of_the_cpp_workload(
    variant: Variant, mode: str, workload_build: Callable[[Variant], Path], tmp_path: Path
) -> None:
    run = record(workload_build(variant), ("--mode", mode, "--epochs", "8"), dwarf_settings(FREQUENCY_HZ), tmp_path)
    assert_rules_hold(run)


def test_kernel_time_is_the_kernels_or_what_the_program_asked_for(
    rust_build: Callable[[RustVariant], Path], tmp_path: Path
) -> None:
    """Interrupts fall to the code below; everything else of the kernel is under what was asked of it."""
    arguments = ("--validators", "65536", "--runs", "4", "--threads", "2")
    run = record(rust_build(RustVariant()), arguments, dwarf_settings(FREQUENCY_HZ), tmp_path, parse_rust_timers)
    options = AnalysisOptions(phase=TIMED)
    pattern = "page_fault|^clear_page|^do_anonymous|^__handle_mm_fault|^zap_|^unmap_page"
    found = explain_function(Arm("epoch", (run.capture,)), pattern, options, Symbolizer(Locator(), None))
    assert {entry.category for entry in found} <= KERNEL
