"""Pure mode: each phase is the work of one category, so the leaf view has to agree with the program's own timers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from profiler.model.run import PerfSettings
from support.profiling import RecordedRun, assert_shares_match, costs_of, dwarf_settings, enough, frame_pointer_settings, record
from support.workload import Variant

pytestmark = [pytest.mark.perf, pytest.mark.usefixtures("perf", "libc_symbols")]

FREQUENCY_HZ = 9973
MINIMUM_SAMPLES = 20_000
TOLERANCE = 0.005

# Enough CPU time for the samples: about 0.25 s an epoch when optimized, 0.6 s when not.
EPOCHS = {"-O0": 5, "-O2": 12}
DEFAULT_BUILD = Variant("-O2", frame_pointers=True)
OTHER_BUILDS = [
    Variant("-O0"),
    Variant("-O0", frame_pointers=True),
    Variant("-O2"),
    Variant("-O2", lto=True),
    Variant("-O2", lto=True, frame_pointers=True),
]
# Unwound stacks of pure phases are checked on the Rust workload in any case.
ALL_BUILDS = [pytest.param(build, marks=pytest.mark.full) for build in (DEFAULT_BUILD, *OTHER_BUILDS)]
FRAME_POINTER_BUILDS = [
    DEFAULT_BUILD,
    *(pytest.param(build, marks=pytest.mark.full) for build in OTHER_BUILDS if build.frame_pointers),
]


def label(variant: Variant) -> str:
    return variant.label


def assert_leaf_matches_timers(run: RecordedRun) -> None:
    table = costs_of(run).tables["category"]
    assert int(table.self_samples.sum()) >= MINIMUM_SAMPLES
    assert len(run.timers.category_ns) == 8
    assert_shares_match(table, run.timers.category_ns, TOLERANCE)


def recorded(variant: Variant, program: Path, settings: PerfSettings, scratch: Path) -> RecordedRun:
    def of_epochs(epochs: int) -> RecordedRun:
        return record(program, ("--mode", "pure", "--epochs", str(epochs)), settings, scratch)

    return enough(of_epochs, EPOCHS[variant.optimization], round(1.1 * MINIMUM_SAMPLES))


@pytest.mark.parametrize("variant", ALL_BUILDS, ids=label)
def test_dwarf_stacks(variant: Variant, workload_build: Callable[[Variant], Path], tmp_path: Path) -> None:
    assert_leaf_matches_timers(recorded(variant, workload_build(variant), dwarf_settings(FREQUENCY_HZ), tmp_path))


@pytest.mark.parametrize("variant", FRAME_POINTER_BUILDS, ids=label)
def test_frame_pointer_stacks(variant: Variant, workload_build: Callable[[Variant], Path], tmp_path: Path) -> None:
    assert_leaf_matches_timers(recorded(variant, workload_build(variant), frame_pointer_settings(FREQUENCY_HZ), tmp_path))
