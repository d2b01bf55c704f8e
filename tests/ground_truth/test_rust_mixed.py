"""Mixed mode of the Rust workload: memory, SipHash and the B-tree of pending changes below their owners, which the timers
surround.

Where the walk over the lists, the arithmetic and the pending changes are woven into each other, a timer cannot part them: there
the categories are compared as a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from support.profiling import RecordedRun, costs_of, dwarf_settings, enough, record, self_by_name, share_misses
from support.rust_workload import RustVariant, parse_timers

pytestmark = pytest.mark.perf

TOLERANCE = 0.01
FREQUENCY_HZ = 2999
MINIMUM_SAMPLES = 15_000
ADVANCE = "^state_processing::state_advance::complete_state_advance$"

# Categories, of the profile and of the timers, that have to be equal as a sum.
WOVEN = {
    "epoch processing": "epoch transition",
    "tree iteration": "epoch transition",
    "tree update": "epoch transition",
    "active indices": "epoch transition",
    "tree hashing": "hashing",
    "SHA-256": "hashing",
    "thread pool": "state and blocks",
}

# Functions that a timer surrounds: those of the timer's categories, and whose work is in them.
SURROUNDED = [
    ("apply_pending_mutations$|::set_(state|block)_root$", ["tree update"], {"tree update", "tree iteration"}),
    ("get_active_validator_indices$", ["active indices"], {"active indices", "tree iteration"}),
    ("^swap_or_not_shuffle::", ["shuffling", "SHA-256"], {"shuffling", "SHA-256"}),
    ("::find_validators$|::update_pubkey_cache$", ["RPDS"], {"RPDS", "tree iteration"}),
    ("::tree_hash(_root)?$", ["tree hashing"], {"tree hashing", "SHA-256"}),
]

BUILDS = [
    RustVariant(),
    *(
        pytest.param(build, marks=pytest.mark.full)
        for build in [
            RustVariant(btree_updates=True),
            RustVariant(jemalloc=True),
            RustVariant(lock_free=True),
            RustVariant("thin"),
            RustVariant("fat"),
        ]
    ),
]


@pytest.fixture(scope="module", params=BUILDS, ids=lambda variant: variant.label)
def run(
    request: pytest.FixtureRequest,
    perf: str,
    libc_symbols: None,
    rust_build: Callable[[RustVariant], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> RecordedRun:
    program, scratch, settings = rust_build(request.param), tmp_path_factory.mktemp("rust-mixed"), dwarf_settings(FREQUENCY_HZ)

    def recorded(runs: int) -> RecordedRun:
        return record(program, ("--threads", "1", "--runs", str(runs)), settings, scratch, parse_timers)

    return enough(recorded, 80, round(1.1 * MINIMUM_SAMPLES))


def woven(by_category: Mapping[str, int]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, weight in by_category.items():
        sums[WOVEN.get(name, name)] = sums.get(WOVEN.get(name, name), 0) + weight
    return sums


def test_owner_view_matches_the_timers(run: RecordedRun) -> None:
    table = costs_of(run, phase=ADVANCE, view="owner").tables["category"]
    samples = int(table.self_samples.sum())
    assert samples >= MINIMUM_SAMPLES
    found, expected = woven(self_by_name(table)), woven(run.timers.category_ns)
    assert share_misses(found, expected, TOLERANCE, samples, sampling_deviations=0) == []


@pytest.mark.parametrize(
    ("function", "timers", "owners"), SURROUNDED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_a_timer_surrounds(run: RecordedRun, function: str, timers: list[str], owners: set[str]) -> None:
    total = int(costs_of(run, phase=ADVANCE).tables["category"].total.sum())
    inside = self_by_name(costs_of(run, phase=ADVANCE, view="owner", focus=function).tables["category"])
    timed = sum(run.timers.category_ns[name] for name in timers) / run.timers.total_ns
    assert sum(inside.values()) / total == pytest.approx(timed, abs=TOLERANCE)
    assert sum(inside.get(name, 0) for name in owners) >= 0.97 * sum(inside.values())


def test_hashing_of_keys_is_charged_to_the_maps(run: RecordedRun) -> None:
    cells = [cell for cell in costs_of(run, phase=ADVANCE).owners if cell.leaf == "DefaultHasher"]
    assert sum(cell.weight for cell in cells if cell.owner == "RPDS") >= 0.95 * sum(cell.weight for cell in cells) > 0


def test_memory_has_several_owners(run: RecordedRun) -> None:
    cells = costs_of(run, phase=ADVANCE).owners
    malloc, memmove = ({cell.owner: cell.weight for cell in cells if cell.leaf == leaf} for leaf in ("malloc", "memmove"))
    assert max(malloc, key=lambda owner: malloc[owner]) == "tree update"
    # Keys that are compared, leaves that are copied.
    assert {"RPDS", "tree update"} <= memmove.keys()


def test_weights_sum_to_the_timers(run: RecordedRun) -> None:
    table = costs_of(run, phase=ADVANCE).tables["category"]
    assert int(table.total.sum()) == pytest.approx(run.timers.total_ns * run.sampled_part(), rel=0.01)
