"""Headline times and metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.analysis.comparison.compare_metrics import compare_metrics
from profiler.errors import UsageError
from profiler.model.comparison import MetricComparison, Verdict
from profiler.model.costs import ArmCosts
from profiler.model.run import Metric, RunMode
from support.arms import Place, arm, infos, with_times

MS = 1_000_000
PLAIN = Place(mode=RunMode.PLAIN)


def timed(name: str, wall_ms: list[int], **metrics: list[float]) -> ArmCosts:
    runs = len(wall_ms)
    plain = with_times(infos(name, runs, PLAIN), [wall * MS for wall in wall_ms], **metrics)
    profiled = with_times(infos(name, runs), [wall * MS * 11 // 10 for wall in wall_ms], **metrics)
    return arm(name, {"x": [wall * MS for wall in wall_ms]}, infos=profiled, plain=plain)


def metrics_of(baseline: ArmCosts, candidate: ArmCosts, *wanted: str) -> dict[str, MetricComparison]:
    return {found.row.name: found for found in compare_metrics(baseline, candidate, wanted, 0.01).metrics}


def test_times_come_from_the_plain_runs_by_hand() -> None:
    found = metrics_of(timed("a", [100, 102, 98, 100]), timed("b", [90, 92, 89, 89]))
    assert list(found) == ["wall", "user", "system"]
    assert found["wall"].row.baseline.values == (100 * MS, 102 * MS, 98 * MS, 100 * MS)
    assert (found["wall"].unit, found["wall"].row.delta) == ("ns", -10 * MS)
    assert found["user"].row.delta == -8 * MS
    assert found["wall"].row.verdict is Verdict.FASTER
    assert found["wall"].row.p == found["wall"].row.p_adjusted


def test_metrics_follow_the_times_by_name() -> None:
    baseline = timed("a", [100, 102, 98], slot=[5.0, 6.0, 7.0], epoch=[1.0, 2.0, 1.5])
    candidate = timed("b", [100, 101, 99], slot=[4.0, 5.5, 6.0], epoch=[1.0, 2.5, 1.5])
    assert list(metrics_of(baseline, candidate)) == ["wall", "user", "system", "epoch", "slot"]
    assert list(metrics_of(baseline, candidate, "slot", "wall")) == ["slot", "wall"]


def test_without_plain_runs_the_profiled_ones_are_used_with_a_warning() -> None:
    baseline, candidate = timed("a", [100, 102, 98]), replace(timed("b", [100, 102, 99]), plain=())
    result = compare_metrics(baseline, candidate, (), 0.01)
    assert result.metrics[0].row.baseline.values == (110 * MS, 112.2 * MS, 107.8 * MS)
    assert [(w.code, "b has no run without perf" in w.message) for w in result.warnings] == [("no-plain-runs", True)]


def test_files_without_times_have_no_headline_times_and_no_warning() -> None:
    result = compare_metrics(arm("a", {"x": [1, 2, 3]}), arm("b", {"x": [1, 2, 3]}), (), 0.01)
    assert (result.metrics, result.warnings) == ((), ())


def test_a_metric_of_one_arm_alone_is_left_out_with_a_warning() -> None:
    result = compare_metrics(timed("a", [1, 2, 3], slot=[1.0, 2.0, 3.0]), timed("b", [1, 2, 3]), (), 0.01)
    assert [found.row.name for found in result.metrics] == ["wall", "user", "system"]
    assert [(w.code, "slot: no run of b" in w.message) for w in result.warnings] == [("metric-missing", True)]


def test_a_run_that_lacks_the_metric_leaves_its_whole_round_out() -> None:
    baseline = timed("a", [1, 2, 3, 4], slot=[10.0, 20.0, 30.0, 40.0])
    candidate = timed("b", [1, 2, 3, 4], slot=[11.0, 21.0, 31.0, 41.0])
    broken = replace(candidate.plain[1], outcome=replace(candidate.plain[1].outcome, metrics=()))
    candidate = replace(candidate, plain=(candidate.plain[0], broken, *candidate.plain[2:]))
    assert metrics_of(baseline, candidate)["slot"].row.baseline.values == (10.0, 30.0, 40.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e200])
def test_a_number_that_cannot_be_computed_with_counts_as_missing(value: float) -> None:
    baseline, candidate = timed("a", [1, 2, 3], slot=[1.0, 2.0, 3.0]), timed("b", [1, 2, 3], slot=[1.0, 3.0, value])
    assert metrics_of(baseline, candidate)["slot"].row.candidate.values == (1.0, 3.0)


def test_units_that_differ_are_not_compared() -> None:
    baseline, candidate = timed("a", [1, 2, 3], slot=[1.0, 2.0, 3.0]), timed("b", [1, 2, 3])
    plain = tuple(replace(i, outcome=replace(i.outcome, metrics=(Metric("slot", 1.0, "bytes"),))) for i in candidate.plain)
    result = compare_metrics(baseline, replace(candidate, plain=plain), ("slot",), 0.01)
    assert (result.metrics, [w.code for w in result.warnings]) == ((), ["metric-unit"])


def test_an_unknown_metric_is_an_error_with_the_nearest_names() -> None:
    with pytest.raises(UsageError, match=r"'slots'.*slot"):
        compare_metrics(timed("a", [1], slot=[1.0]), timed("b", [1], slot=[1.0]), ("slots",), 0.01)


def test_the_margin_is_a_fraction_of_the_metrics_own_mean() -> None:
    # D = 0.1, 0.2, 0 ns around a mean of 100 (half width 0.248) and of 10.
    for base, verdict in ((100.0, Verdict.EQUIVALENT), (10.0, Verdict.UNDECIDED)):
        baseline = timed("a", [1, 1, 1], slot=[base] * 3)
        candidate = timed("b", [1, 1, 1], slot=[base + 0.1, base + 0.2, base])
        assert metrics_of(baseline, candidate)["slot"].row.verdict is verdict


def test_the_cost_of_profiling_is_a_value_and_warns_when_large() -> None:
    # CPU time is 0.9 of the wall time; the profiled runs took 1.1 times as long.
    comparison = compare_arms(timed("a", [100, 200]), [timed("b", [100, 200])], CompareOptions())
    assert [(cost.arm, cost.ratio) for cost in comparison.profiling_costs] == [
        ("a", pytest.approx(1.1)),
        ("b", pytest.approx(1.1)),
    ]
    assert [w.message for w in comparison.warnings if w.code == "profiling-cost"] == [
        "a: profiling cost 10 % CPU time",
        "b: profiling cost 10 % CPU time",
    ]


def test_arms_that_were_never_profiled_are_compared_by_their_times() -> None:
    baseline, candidate = (
        replace(timed(name, wall), infos=(), tables={}, unit=unit, event=unit)
        for name, wall, unit in (("a", [100, 102, 98, 100], "ns"), ("b", [90, 92, 89, 89], ""))
    )
    comparison = compare_arms(baseline, [candidate], CompareOptions())
    compared = comparison.candidates[0]
    assert (compared.rows, compared.runs, comparison.baseline_runs) == ((), 4, 4)
    assert [metric.row.verdict for metric in compared.metrics] == [Verdict.FASTER] * 3
    assert comparison.warnings == ()


def test_arms_without_both_kinds_of_runs_have_no_cost_of_profiling() -> None:
    only_profiled: Any = replace(timed("a", [100, 200]), plain=())
    assert compare_arms(only_profiled, [only_profiled], CompareOptions()).profiling_costs == ()


def test_a_number_below_zero_has_no_relative_change() -> None:
    """As a part of a negative baseline, 100 less would read as a rise."""
    baseline = timed("a", [1, 2, 3, 4], level=[-101.0, -102.0, -100.0, -101.0])
    row = metrics_of(baseline, timed("b", [1, 2, 3, 4], level=[-201.0, -202.0, -200.0, -201.5]), "level")["level"].row
    assert row.delta == pytest.approx(-100.125)
    assert (row.relative, row.relative_interval) == (None, None)
    assert row.verdict is Verdict.FASTER
