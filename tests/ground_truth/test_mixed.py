"""Mixed mode: SHA-256, memmove and malloc run below their owners, and the timers surround the owners."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.profiling import RecordedRun, assert_shares_match, costs_of, dwarf_settings, enough, record, self_by_name
from support.workload import Variant

pytestmark = pytest.mark.perf

TOLERANCE = 0.01
MINIMUM_SAMPLES = 20_000
FREQUENCY_HZ = 9973
# The rate that `record` takes by default.  At 9,973 Hz the stack dumps of a run are a gigabyte, and perf may lose some.
DEFAULT_FREQUENCY_HZ = 1999


@pytest.fixture(scope="module")
def run(
    perf: str, libc_symbols: None, workload_build: Callable[[Variant], Path], tmp_path_factory: pytest.TempPathFactory
) -> RecordedRun:
    program, scratch = workload_build(Variant(portable_sha256=True)), tmp_path_factory.mktemp("mixed")

    def recorded(epochs: int) -> RecordedRun:
        return record(program, ("--epochs", str(epochs)), dwarf_settings(FREQUENCY_HZ), scratch)

    return enough(recorded, 200, round(1.1 * MINIMUM_SAMPLES))


def test_owner_view_matches_the_timers(run: RecordedRun) -> None:
    table = costs_of(run, view="owner").tables["category"]
    assert int(table.self_samples.sum()) >= MINIMUM_SAMPLES
    assert_shares_match(table, run.timers.category_ns, TOLERANCE, sampling_deviations=0)


def test_leaf_is_the_sum_of_its_owners(run: RecordedRun) -> None:
    costs = costs_of(run)
    by_leaf: dict[str, int] = {}
    for cell in costs.owners:
        by_leaf[cell.leaf] = by_leaf.get(cell.leaf, 0) + cell.weight
    assert by_leaf == self_by_name(costs.tables["category"])
    assert len({cell.owner for cell in costs.owners if cell.leaf in ("memmove", "malloc")}) >= 2


def test_owner_view_is_the_sum_of_its_leaves(run: RecordedRun) -> None:
    costs = costs_of(run, view="owner")
    by_owner: dict[str, int] = {}
    for cell in costs.owners:
        by_owner[cell.owner] = by_owner.get(cell.owner, 0) + cell.weight
    assert by_owner == self_by_name(costs.tables["category"])


def test_weights_sum_to_the_cpu_time_the_kernel_accounted(
    perf: str, workload_build: Callable[[Variant], Path], tmp_path: Path
) -> None:
    run = record(workload_build(Variant()), ("--epochs", "120"), dwarf_settings(DEFAULT_FREQUENCY_HZ), tmp_path)
    accounted = run.outcome.user_ns + run.outcome.system_ns
    assert run.capture.quality.lost_samples == 0
    period_ns = 1e9 / DEFAULT_FREQUENCY_HZ
    assert int(run.capture.samples.weight.sum()) == pytest.approx(accounted, rel=0.01, abs=period_ns)


def test_categories_partition_the_total(run: RecordedRun) -> None:
    for phase in ("", "^phase::", "^phase::hash"):
        table = costs_of(run, phase=phase).tables["category"]
        assert sum(self_by_name(table).values()) == int(table.total.sum()) > 0
