"""Pure mode of the Rust workload: each phase is the work of one category, as the program's own timers tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from profiler.model.costs import ArmCosts
from profiler.model.run import PerfSettings
from support.profiling import RecordedRun, costs_of, dwarf_settings, enough, frame_pointer_settings, record, share_misses
from support.rust_workload import RustVariant, parse_timers

pytestmark = [pytest.mark.perf, pytest.mark.usefixtures("perf", "libc_symbols")]

FREQUENCY_HZ = 4999
MINIMUM_SAMPLES = 20_000
TOLERANCE = 0.005
CATEGORIES = 11
# Without the warming up, which is not timed.
TIMED = "^phase::all$"
# The loops of the phases themselves, around calls of what they measure, belong to no category.
LOOPS = 0.01
# What the functions that mark the phases are called when no rule names them.
MARKERS = "module: skip_slots"

BUILDS = [
    RustVariant(),
    *(
        pytest.param(build, marks=pytest.mark.full)
        for build in [
            RustVariant("thin"),
            RustVariant("fat"),
            RustVariant("line-tables"),
            RustVariant(jemalloc=True),
            RustVariant(btree_updates=True),
            RustVariant(frame_pointers=True),
        ]
    ),
]


def label(variant: RustVariant) -> str:
    return variant.label


@pytest.mark.parametrize("variant", BUILDS, ids=label)
def test_dwarf_stacks(variant: RustVariant, rust_build: Callable[[RustVariant], Path], tmp_path: Path) -> None:
    assert_work_matches_timers(recorded(rust_build(variant), dwarf_settings(FREQUENCY_HZ), tmp_path))


@pytest.mark.full
def test_frame_pointer_stacks(rust_build: Callable[[RustVariant], Path], tmp_path: Path) -> None:
    program = rust_build(RustVariant(frame_pointers=True))
    assert_work_matches_timers(recorded(program, frame_pointer_settings(FREQUENCY_HZ), tmp_path))


def recorded(program: Path, settings: PerfSettings, scratch: Path) -> RecordedRun:
    def of_runs(runs: int) -> RecordedRun:
        arguments = ("--mode", "pure", "--threads", "1", "--runs", str(runs))
        return record(program, arguments, settings, scratch, parse_timers)

    return enough(of_runs, 14, round(1.2 * MINIMUM_SAMPLES))


def assert_work_matches_timers(run: RecordedRun) -> None:
    costs = costs_of(run, phase=TIMED)
    samples = int(costs.tables["category"].self_samples.sum())
    assert samples >= MINIMUM_SAMPLES
    assert len(run.timers.category_ns) == CATEGORIES
    work = work_by_category(costs)
    assert work.pop(MARKERS, 0) < LOOPS * sum(work.values())
    assert share_misses(work, run.timers.category_ns, TOLERANCE, samples) == []


def work_by_category(costs: ArmCosts) -> dict[str, int]:
    """By owner; what only the markers asked for (a phase of memmove, say) by itself."""
    work: dict[str, int] = {}
    for cell in costs.owners:
        name = cell.leaf if cell.owner == MARKERS else cell.owner
        work[name] = work.get(name, 0) + cell.weight
    return work
