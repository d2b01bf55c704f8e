"""Phases over rayon's workers: a window on the main thread admits the samples of all threads; the program's own figures tell
how long it was and what it cost.  The control without hashing, and variants from recording to comparison."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.cli.main import main
from profiler.model.analysis_choices import PhaseScope
from profiler.pipeline import AnalysisOptions, Arm, arm_costs
from support.profiling import RecordedRun, costs_of, dwarf_settings, record, self_by_name
from support.rust_workload import RustVariant, parse_timers, run
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

pytestmark = [pytest.mark.perf, pytest.mark.usefixtures("perf")]

FREQUENCY_HZ = 1999
WORKERS = 2
METRIC = r"run=Run \d+: ([0-9.]+m?s)"
ADVANCE = "^state_processing::state_advance::complete_state_advance$"
PARTIAL_ADVANCE = "^state_processing::state_advance::partial_state_advance$"


@pytest.fixture(scope="module")
def two_workers(rust_build: Callable[[RustVariant], Path], tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    arguments = ("--threads", str(WORKERS), "--runs", "30")
    settings = dwarf_settings(FREQUENCY_HZ)
    return record(rust_build(RustVariant()), arguments, settings, tmp_path_factory.mktemp("workers"), parse_timers)


def phase_cost(run: RecordedRun, scope: PhaseScope) -> int:
    options = AnalysisOptions(phase=ADVANCE, phase_scope=scope)
    costs = arm_costs(Arm("workers", (run.capture,)), options, Symbolizer(Locator(), None))
    return int(costs.tables["category"].total.sum())


def test_cpu_time_of_the_phase_is_the_programs(two_workers: RecordedRun) -> None:
    expected = two_workers.timers.total_ns * two_workers.sampled_part()
    assert phase_cost(two_workers, PhaseScope.PROCESS) == pytest.approx(expected, rel=0.02)


def test_length_of_the_phase_is_the_programs(two_workers: RecordedRun) -> None:
    windows_ns = costs_of(two_workers, phase=ADVANCE).phase_windows_ns
    assert windows_ns is not None
    assert int(windows_ns.sum()) / 1e6 == pytest.approx(sum(two_workers.timers.epoch_ms), rel=0.02)


def test_the_workers_do_most_of_the_hashing(two_workers: RecordedRun) -> None:
    """What the main thread waits for is missing from the phase of that thread alone."""
    timers = two_workers.timers
    own, all_threads = (phase_cost(two_workers, scope) for scope in (PhaseScope.THREAD, PhaseScope.PROCESS))
    assert all_threads - own >= 0.8 * two_workers.sampled_part() * timers.category_ns["tree hashing"]
    threads = two_workers.capture.threads
    assert len(np.unique(threads.tid[two_workers.capture.samples.thread])) == 1 + WORKERS


def test_without_hashing_there_is_none(rust_build: Callable[[RustVariant], Path], tmp_path: Path) -> None:
    arguments = ("--threads", "1", "--runs", "20", "--partial-state-advance")
    run = record(rust_build(RustVariant()), arguments, dwarf_settings(FREQUENCY_HZ), tmp_path, parse_timers)
    assert "tree hashing" not in run.timers.category_ns
    costs = costs_of(run, phase=PARTIAL_ADVANCE)
    expected = run.timers.total_ns * run.sampled_part()
    assert int(costs.tables["category"].total.sum()) == pytest.approx(expected, rel=0.02)
    below_hashing = costs_of(run, phase=PARTIAL_ADVANCE, focus="::tree_hash(_root)?$|^tree_hash::").tables["category"]
    assert int(below_hashing.total.sum()) == 0
    # New nodes have new cells for their hashes.
    assert self_by_name(costs.tables["category"]).get("tree hashing", 0) < 0.005 * run.timers.total_ns
    # The shuffle hashes.
    share = self_by_name(costs.tables["category"])["SHA-256"] / int(costs.tables["category"].total.sum())
    assert share == pytest.approx(run.timers.category_ns["SHA-256"] / run.timers.total_ns, abs=0.01)


# A variant, and a function that only its code and only that of the default build calls.
VARIANTS = [
    (RustVariant(lock_free=True), "hash_cell::lock_free::", "hash_cell::locked::"),
    pytest.param(RustVariant(btree_updates=True), "alloc::collections::btree::", "vec_map::", marks=pytest.mark.full),
    pytest.param(RustVariant(jemalloc=True), "_rjem_", "_int_malloc", marks=pytest.mark.full),
]


@pytest.mark.parametrize(("variant", "own", "replaced"), VARIANTS)
def test_variants_from_recording_to_comparison(
    variant: RustVariant,
    own: str,
    replaced: str,
    rust_build: Callable[[RustVariant], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    programs = {"base": rust_build(RustVariant()), "changed": rust_build(variant)}
    arguments = ("--threads", "1", "--runs", "6")
    assert len({run(program, *arguments).checksum for program in programs.values()}) == 1
    arms = [option for name, program in programs.items() for option in ("--variant", f"{name}={program}")]
    store = ("--store", str(tmp_path))
    command = ("record", "--runs", "2", "--phase", ADVANCE, *arms, "--metric", METRIC, "--", "{binary}", *arguments)
    assert main([*store, *command]) == 0, capsys.readouterr().err
    weights = {name: weight_by_function(printed_json(capsys, *store, "report", name)) for name in programs}
    assert weight_of(own, weights["changed"]) > 0 == weight_of(own, weights["base"])
    assert weight_of(replaced, weights["base"]) > 0 == weight_of(replaced, weights["changed"])
    comparison = printed_json(capsys, *store, "compare", *programs)
    assert comparison["candidates"][0]["runs"] == 2
    assert "milhouse::iter::Iter::next" in {row["name"] for row in comparison["candidates"][0]["rows"]}


def printed_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--by", "function", "--format", "json", "--limit", "0"]) == 0
    return json.loads(capsys.readouterr().out)


def weight_by_function(report: Any) -> dict[str, int]:
    return {row["name"]: row["total"] for row in report["rows"]}


def weight_of(name: str, weights: dict[str, int]) -> int:
    return sum(weight for function, weight in weights.items() if name in function)
