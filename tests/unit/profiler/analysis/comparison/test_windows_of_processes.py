"""Windows of attached processes in reports and comparisons: the process is the replicate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.analysis.comparison.compare_replicates import windows_by_process
from profiler.analysis.statistics.share_interval import PROCESS_TO_PROCESS, SAMPLING, share_intervals
from profiler.errors import AnalysisError
from profiler.model.comparison import Verdict
from profiler.model.costs import ArmCosts
from profiler.model.run import CaptureInfo, RunOutcome
from support.arms import Place, arm, cost_table, infos

MS = 1_000_000
SECOND = 1_000_000_000


def windows(variant: str, instances: Sequence[str], session: str = "s1", wall_ns: int = 60 * SECOND) -> tuple[CaptureInfo, ...]:
    """One run per entry: a window of that process."""
    made = infos(variant, len(instances), Place(session=session))
    return tuple(
        replace(
            info,
            identity=replace(info.identity, instance=instance),
            outcome=RunOutcome(wall_ns=wall_ns, user_ns=900 * MS, system_ns=100 * MS),
        )
        for info, instance in zip(made, instances, strict=True)
    )


def watched(
    variant: str, values: Sequence[int], instances: Sequence[str], session: str, wall_ns: int = 60 * SECOND
) -> ArmCosts:
    return arm(
        variant, {"hashing": [value * MS for value in values]}, infos=windows(variant, instances, session, wall_ns=wall_ns)
    )


def test_windows_are_grouped_by_their_process() -> None:
    assert windows_by_process(windows("a", ["n-2", "n-1", "n-2"])) == ((1,), (0, 2))
    assert windows_by_process(infos("a", 3)) == ()


def test_windows_of_one_process_have_the_interval_of_its_samples() -> None:
    table = cost_table({"a": [30 * MS, 70 * MS], "b": [70 * MS, 230 * MS]})
    result = share_intervals(table, ((0, 1),))
    expected = stats.binomtest(100, 400).proportion_ci(0.95, method="wilson")
    assert result.method == SAMPLING
    place = table.names.index("a")
    assert (result.intervals[place].low, result.intervals[place].high) == pytest.approx(
        (expected.low, expected.high), abs=1e-12
    )


def test_windows_of_several_processes_count_as_one_run_each() -> None:
    """Three processes with shares of 0.2, 0.3 and 0.4, two windows each that differ by much more than they do."""
    own, other = [1, 39, 59, 1, 40, 40], [99, 61, 41, 99, 60, 60]
    table = cost_table({"a": [value * MS for value in own], "b": [value * MS for value in other]})
    result = share_intervals(table, ((0, 1), (2, 3), (4, 5)))
    low, high = stats.t.interval(0.95, 2, loc=0.3, scale=stats.sem(np.array([0.2, 0.3, 0.4])))
    assert result.method == PROCESS_TO_PROCESS
    place = table.names.index("a")
    assert (result.intervals[place].low, result.intervals[place].high) == pytest.approx((max(0, low), high), abs=1e-12)


def test_many_windows_of_one_process_each_give_no_verdict() -> None:
    """Ten windows that hardly differ, and a difference of a half: certain if they were runs."""
    first = watched("old", [100 + number % 2 for number in range(10)], ["n-1"] * 10, "s1")
    second = watched("new", [50 + number % 2 for number in range(10)], ["n-2"] * 10, "s2")
    (candidate,) = compare_arms(first, [second], CompareOptions()).candidates
    assert candidate.total.verdict is Verdict.TOO_FEW_RUNS
    assert [metric.row.name for metric in candidate.metrics] == ["user", "system"]


def test_windows_of_different_lengths_are_not_compared() -> None:
    first = watched("old", [100, 101], ["n-1"] * 2, "s1")
    second = watched("new", [50, 51], ["n-2"] * 2, "s2", wall_ns=30 * SECOND)
    with pytest.raises(AnalysisError, match=r"windows of old last 60 s and those of new 30 s.*same --window"):
        compare_arms(first, [second], CompareOptions())


def test_windows_and_whole_runs_are_not_compared() -> None:
    process, runs = watched("node", [500, 510, 490], ["n-1"] * 3, "s1"), arm("run", {"hashing": [700 * MS, 710 * MS, 690 * MS]})
    for pair in ((process, runs), (runs, process)):
        with pytest.raises(AnalysisError, match="node is windows of a running process and run whole runs"):
            compare_arms(pair[0], [pair[1]], CompareOptions())


def test_processes_of_two_sessions_are_not_said_to_come_one_after_the_other() -> None:
    first, second = (watched(name, [500, 510, 490], [f"{name}-1"] * 3, name) for name in ("a", "b"))
    (warning,) = [found for found in compare_arms(first, [second], CompareOptions()).warnings if found.code == "recorded-apart"]
    assert "one after the other" not in warning.message
    assert "targets" in warning.advice


def _on_nodes(variant: str, nodes: dict[str, list[int]], is_whole_run: bool) -> ArmCosts:
    """Of each node its windows or runs: ``values`` in ms of hashing, as much again of other work, and that as wall time."""
    instances = [node for node, values in nodes.items() for _ in values]
    values = [value for each in nodes.values() for value in each]
    made = tuple(
        replace(
            info,
            host=replace(info.host, hostname=f"host of {info.identity.instance}"),
            identity=replace(info.identity, is_whole_run=is_whole_run),
            outcome=replace(info.outcome, wall_ns=2 * value * MS if is_whole_run else 60 * SECOND),
        )
        for info, value in zip(windows(variant, instances), values, strict=True)
    )
    rows = {"hashing": [value * MS for value in values], "other": [value * MS for value in values]}
    return arm(variant, rows, infos=made)


BASE = {"n1": [100, 104], "n2": [110, 114], "n3": [120, 124]}
FAT = {"n4": [70, 74], "n5": [81, 85], "n6": [92, 96]}


@pytest.mark.parametrize("is_whole_run", [False, True])
def test_category_tables_of_nodes_side_by_side(is_whole_run: bool) -> None:
    """Six nodes with two profiled windows or runs each: three replicates per arm, with the means of their two."""
    base, fat = (_on_nodes(name, nodes, is_whole_run) for name, nodes in (("base", BASE), ("fat", FAT)))
    comparison = compare_arms(base, [fat], CompareOptions())
    (candidate,) = comparison.candidates
    assert candidate.instances == (("n1", "n2", "n3"), ("n4", "n5", "n6"))
    row = next(row for row in candidate.rows if row.name == "hashing")
    assert row.baseline.values == (102 * MS, 112 * MS, 122 * MS)
    assert row.candidate.values == (72 * MS, 83 * MS, 94 * MS)
    test = stats.ttest_ind([72, 83, 94], [102, 112, 122], equal_var=False)
    assert (row.p, row.sigma, row.no_overlap) == (pytest.approx(test.pvalue), pytest.approx(abs(test.statistic)), True)
    assert sum(row.delta for row in candidate.rows) == candidate.total.delta == pytest.approx(2 * (83 - 112) * MS)
    names = [metric.row.name for metric in candidate.metrics]
    if is_whole_run:
        wall = next(metric for metric in candidate.metrics if metric.row.name == "wall")
        assert wall.row.baseline.values == (204 * MS, 224 * MS, 244 * MS), "how long runs take is the program's own"
    else:
        assert "wall" not in names, "whoever watches decides how long a window lasts"
    assert "recorded-apart" not in [warning.code for warning in comparison.warnings], "they ran side by side"


def test_runs_of_nodes_that_were_swapped() -> None:
    """Each node is its own pair: differences of 30, 31 and 32 ms of hashing."""
    base = _on_nodes("base", {"n1": [100, 104], "n2": [110, 114], "n3": [120, 124]}, is_whole_run=True)
    fat = _on_nodes("fat", {"n1": [70, 74], "n2": [79, 83], "n3": [88, 92]}, is_whole_run=True)
    (candidate,) = compare_arms(base, [fat], CompareOptions()).candidates
    row = next(row for row in candidate.rows if row.name == "hashing")
    assert row.delta == -31 * MS
    assert row.p == pytest.approx(stats.ttest_1samp([-30, -31, -32], 0).pvalue)
    assert candidate.test == "crossover t"
