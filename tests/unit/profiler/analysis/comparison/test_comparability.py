"""Warnings of a comparison: facts that differ, and what the runs of one arm show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.model.costs import ArmCosts
from profiler.model.quality import ReportWarning
from profiler.model.run import CaptureInfo, HostFacts, PerfSettings, ProgramFacts, RunIdentity, RunMode, RunOutcome
from support.arms import Place, arm, infos, with_times

MS = 1_000_000


def facts(**changes: Any) -> Place:
    program = ProgramFacts(toolchain="rustc 1.95", allocator="system", mangling="legacy", debug_info="full")
    host = HostFacts(kernel="6.1", cpu="EPYC", cpu_count=2)
    perf = PerfSettings(event="cpu-clock", frequency_hz=1999, call_graph="dwarf", dump_bytes=16384)
    info = CaptureInfo(RunIdentity("", "", 0, RunMode.PROFILED), host=host, program=program, perf=perf)
    for group in ("host", "program", "perf"):
        known = {key: value for key, value in changes.items() if hasattr(getattr(info, group), key)}
        info = replace(info, **{group: replace(getattr(info, group), **known)})
    return Place(info=info)


def two_arms(**changes: Any) -> tuple[ArmCosts, ArmCosts]:
    return arm("a", {"x": [10, 12, 11]}, facts()), arm("b", {"x": [9, 12, 13]}, facts(**changes))


def warnings_of(baseline: ArmCosts, candidate: ArmCosts) -> tuple[ReportWarning, ...]:
    return compare_arms(baseline, [candidate], CompareOptions()).warnings


def codes(baseline: ArmCosts, candidate: ArmCosts) -> list[str]:
    return [warning.code for warning in warnings_of(baseline, candidate)]


@pytest.mark.parametrize(
    ("changes", "code", "shown"),
    [
        ({"frequency_hz": 997}, "rate-differs", "1999 Hz / 997 Hz"),
        ({"call_graph": "fp", "dump_bytes": 0}, "unwinder-differs", "dwarf / fp"),
        ({"dump_bytes": 8192}, "dump-size-differs", "16384 bytes / 8192 bytes"),
        ({"cpu": "Xeon"}, "cpu-differs", "EPYC x 2 / Xeon x 2"),
        ({"kernel": "6.8"}, "kernel-differs", "6.1 / 6.8"),
        ({"toolchain": "rustc 1.97"}, "toolchain-differs", "rustc 1.95 / rustc 1.97"),
        ({"allocator": "jemalloc"}, "allocator-differs", "system / jemalloc"),
        ({"mangling": "v0"}, "mangling-differs", "legacy / v0"),
    ],
)
def test_a_fact_that_differs_is_named_with_both_values(changes: dict[str, Any], code: str, shown: str) -> None:
    found = warnings_of(*two_arms(**changes))
    assert [warning.code for warning in found] == [code]
    assert shown in found[0].message
    assert found[0].advice


def test_facts_that_are_unknown_in_one_arm_are_not_compared() -> None:
    assert codes(*two_arms(kernel="", toolchain="", cpu="", frequency_hz=0, call_graph="dwarf")) == []


def test_events_that_differ_in_the_same_unit_warn() -> None:
    baseline, candidate = two_arms()
    assert codes(baseline, replace(candidate, event="cpu-clock:u")) == ["event-differs"]


def test_truncation_that_differs_warns() -> None:
    baseline, candidate = two_arms()
    truncated = replace(candidate, quality=replace(candidate.quality, truncated=0.051))
    assert codes(baseline, truncated) == ["truncation-differs"]
    assert codes(truncated, truncated) == []


@pytest.mark.parametrize(
    ("shares", "is_warned"),
    [((1.0, 0.0), True), ((0.95, 0.89), True), ((0.91, 1.0), False), ((0.5, 0.0), False), ((-1.0, 1.0), False)],
)
def test_debug_information_that_differs_by_the_weight_in_own_code(shares: tuple[float, float], is_warned: bool) -> None:
    baseline, candidate = (
        replace(costs, quality=replace(costs.quality, own_debug_share=share))
        for costs, share in zip(two_arms(), shares, strict=True)
    )
    assert codes(baseline, candidate) == (["debug-info-differs"] if is_warned else [])


@pytest.mark.parametrize(
    ("kinds", "is_warned"),
    [(("full", "line-tables"), True), (("", "line-tables"), True), (("", ""), True), (("line-tables", "line-tables"), False)],
)
def test_bare_names_in_one_arm_alone_warn_unless_the_debug_information_is_alike(
    kinds: tuple[str, str], is_warned: bool
) -> None:
    """Alike and yet different: one arm was built without inlining and has no inline frames to name."""
    baseline = arm("a", {"x": [10, 12, 11]}, facts(debug_info=kinds[0]))
    candidate = arm("b", {"x": [9, 12, 13]}, facts(debug_info=kinds[1]))
    bare = replace(candidate, quality=replace(candidate.quality, partial_names=0.3))
    assert codes(baseline, bare) == (["inline-names-differ"] if is_warned else [])


def test_lost_samples_and_unresolved_weight_warn_once() -> None:
    baseline, candidate = two_arms()
    bad = replace(candidate, quality=replace(candidate.quality, samples=900, lost_samples=100, unresolved=0.3))
    found = warnings_of(baseline, bad)
    assert [(warning.code, warning.message[:2]) for warning in found] == [("lost-samples", "b:"), ("unresolved", "b:")]
    assert "100 samples were lost (10.0 %)" in found[0].message
    said = replace(bad, warnings=(ReportWarning("lost-samples", "100 samples were lost", "slower"),))
    assert [w.message for w in warnings_of(baseline, said) if w.code == "lost-samples"] == ["b: 100 samples were lost"]


def test_failed_runs_are_counted() -> None:
    baseline, candidate = two_arms()
    failed = replace(candidate.infos[0], outcome=RunOutcome(exit_code=1, failure="exit code 1"))
    found = warnings_of(baseline, replace(candidate, failed=(failed, failed)))
    assert [warning.message for warning in found] == ["b: 2 runs failed and left out (exit code 1)"]


def test_different_hosts_of_one_session_are_not_called_one_after_the_other() -> None:
    baseline = arm("a", {"x": [10, 12, 11]}, Place(host="h1"))
    found = warnings_of(baseline, arm("b", {"x": [9, 12, 13]}, Place(host="h2")))
    assert [warning.code for warning in found] == ["different-hosts"]
    assert "host and build cannot be told apart" in found[0].message


def test_drift_over_the_session_warns_per_arm() -> None:
    # 100, 101, ... 107 with +-0.1 in turn.  Around the middle of the order: sum of squares 42, of order x wobble -0.4, so the
    # slope is 1 - 0.4 / 42 and the change 7 x 0.9905 / 103.5 = 6.7 %.  The other arm only wobbles.
    drifting = arm("a", {"x": [100_100, 100_900, 102_100, 102_900, 104_100, 104_900, 106_100, 106_900]})
    steady = arm("b", {"x": [100_100, 99_900, 100_300, 99_800, 100_100, 99_900, 100_200, 99_900]})
    found = warnings_of(drifting, steady)
    assert [warning.code for warning in found] == ["order-drift"]
    assert found[0].message.startswith("a: profiled total drifted by +6.7 %")


def test_drift_below_one_percent_or_of_unknown_order_is_not_mentioned() -> None:
    small = arm("a", {"x": [100_000 + 100 * run for run in range(8)]})
    assert codes(small, small) == []
    unordered = tuple(replace(i, identity=replace(i.identity, position=0)) for i in infos("a", 8))
    large = arm("a", {"x": [100_000 + 1000 * run for run in range(8)]}, infos=unordered)
    assert codes(large, large) == []


def test_outliers_are_named_with_their_distance() -> None:
    # Median 100, MAD 1 (thousand): 0.6745 x 20 = 13.5; the limit for 7 values is 3.5 x (1 + 10 / 7) = 8.5.
    values = [100_000, 101_000, 99_000, 120_000, 100_000, 102_000, 98_000]
    found = warnings_of(arm("a", {"x": values}), arm("b", {"x": values}))
    assert [warning.code for warning in found] == ["outliers", "outliers"]
    assert "profiled total of run 4 (+20.0 %)" in found[0].message
    assert "beyond 8.5" in found[0].message


def test_outliers_of_plain_runs_are_told_by_their_wall_time() -> None:
    plain = with_times(infos("a", 6, Place(mode=RunMode.PLAIN)), [100 * MS, 101 * MS, 99 * MS, 100 * MS, 102 * MS, 150 * MS])
    found = warnings_of(replace(arm("a", {"x": [10, 12, 11]}), plain=plain), arm("b", {"x": [10, 11, 12]}))
    assert [warning.message.partition(" stands")[0] for warning in found if warning.code == "outliers"] == [
        "a: wall time of run 6 (+49.3 %)"
    ]


def test_an_arm_against_itself_warns_once_under_its_first_name() -> None:
    outlying = arm("a", {"x": [100_000, 101_000, 99_000, 120_000, 100_000, 102_000, 98_000]})
    found = warnings_of(outlying, replace(outlying, name="a (2)"))
    assert [(warning.code, warning.message[:2]) for warning in found] == [("outliers", "a:")]


def test_four_runs_say_nothing_about_outliers() -> None:
    outlying = arm("a", {"x": [100, 100, 101, 500]})
    assert codes(outlying, outlying) == []
