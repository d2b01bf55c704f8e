"""What experiments say beyond single comparisons, against published values, hand arithmetic and scipy's own tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from scipy import stats as scipy_stats

from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.analysis.comparison.compose import Leg, compose
from profiler.analysis.comparison.control import ArmPair, against_control
from profiler.analysis.comparison.gain import gain_attribution
from profiler.analysis.comparison.ladder import ladder
from profiler.analysis.comparison.power import control_power, power_table
from profiler.analysis.statistics.contrast import Term, contrast
from profiler.errors import AnalysisError
from profiler.model import comparison
from profiler.model.comparison import Verdict
from profiler.model.costs import ArmCosts
from profiler.model.experiment_result import Agreement
from profiler.model.run import CaptureInfo, RunMode
from support.arms import Place, arm, infos, with_times

MS = 1_000_000


def windows_of(variant: str, instances: Sequence[str], windows: int) -> tuple[CaptureInfo, ...]:
    """Each process watched for so many windows, window after window."""
    runs = infos(variant, len(instances) * windows, Place(session="devnet"))
    return tuple(
        replace(info, identity=replace(info.identity, instance=instances[index // windows])) for index, info in enumerate(runs)
    )


def metric_arm(variant: str, runs: Sequence[CaptureInfo], values_ms: Sequence[float]) -> ArmCosts:
    timed = with_times(runs, [1] * len(values_ms), slot=[value * MS for value in values_ms])
    return arm(variant, {"all": [1] * len(values_ms)}, infos=timed)


def test_arms_without_overlap_are_different() -> None:
    """Published per-run values of two builds, recorded apart."""
    baseline = metric_arm("base", infos("base", 5), (858.7, 864.0, 867.8, 871.0, 875.0))
    candidate = metric_arm("cand", infos("cand", 5, Place(session="s2")), (876.9, 880.0, 885.2, 891.0, 897.9))
    row = compare_arms(baseline, [candidate], CompareOptions(metrics=("slot",))).candidates[0].metrics[0].row
    assert row.verdict is Verdict.SLOWER
    assert row.no_overlap
    welch = scipy_stats.ttest_ind(row.candidate.values, row.baseline.values, equal_var=False)
    assert row.p == pytest.approx(welch.pvalue)


@pytest.mark.parametrize("windows", [1, 30])
def test_four_nodes_against_four(windows: int) -> None:
    """Published means of 8 nodes: -2.03 %, every node of one build beyond every node of the other, about 9 standard errors.
    Thirty windows a node change nothing: the node is the replicate."""
    thin, fat = (8.997, 9.026, 9.036, 9.018), (8.791, 8.822, 8.855, 8.875)
    wobble = np.linspace(-0.2, 0.2, windows) if windows > 1 else np.zeros(1)

    def watched(variant: str, nodes: str, means: Sequence[float]) -> ArmCosts:
        values = [mean + shift for mean in means for shift in wobble.tolist()]
        return metric_arm(variant, windows_of(variant, tuple(nodes), windows), values)

    compared = compare_arms(watched("thin", "abcd", thin), [watched("fat", "efgh", fat)], CompareOptions(metrics=("slot",)))
    row = compared.candidates[0].metrics[0].row
    assert compared.candidates[0].test is comparison.TestKind.WELCH
    assert len(row.baseline.values) == 4
    assert compared.candidates[0].metrics[0].instances == (("a", "b", "c", "d"), ("e", "f", "g", "h"))
    assert row.relative == pytest.approx(-0.0203, abs=0.0001)
    assert row.no_overlap
    expected = scipy_stats.ttest_ind(fat, thin, equal_var=False)
    assert row.sigma == pytest.approx(abs(expected.statistic))
    assert row.sigma == pytest.approx(9, abs=0.5)
    assert row.verdict is Verdict.FASTER
    assert not [warning.code for warning in compared.warnings if warning.code in ("recorded-apart", "repeated-round")]


def test_processes_that_ran_both_arms_are_their_own_pairs() -> None:
    """Nodes differ by far more than the builds do; each node's own difference shows it."""
    slow_and_fast = np.array([10.0, 20.0, 15.0, 30.0])
    gain = np.array([-0.50, -0.52, -0.47, -0.51])
    nodes = ("a", "b", "c", "d")
    baseline = metric_arm("base", windows_of("base", nodes, 2), np.repeat(slow_and_fast, 2).tolist())
    candidate = metric_arm("cand", windows_of("cand", nodes, 2), np.repeat(slow_and_fast + gain, 2).tolist())
    compared = compare_arms(baseline, [candidate], CompareOptions(metrics=("slot",))).candidates[0]
    assert compared.test is comparison.TestKind.CROSSOVER
    row = compared.metrics[0].row
    assert row.p == pytest.approx(scipy_stats.ttest_1samp(gain, 0).pvalue, rel=1e-6)
    assert row.verdict is Verdict.FASTER


def test_contrast_of_two_groups_is_welch() -> None:
    generator = np.random.default_rng(7)
    first, second = generator.normal(10, 1, (3, 5)), generator.normal(11, 3, (3, 8))
    found = contrast([Term(first, -1.0), Term(second, 1.0)])
    expected = scipy_stats.ttest_ind(second, first, axis=-1, equal_var=False)
    np.testing.assert_allclose(found.p, expected.pvalue)
    interval = expected.confidence_interval(0.95)
    np.testing.assert_allclose([found.low, found.high], [interval.low, interval.high])


BASE = {"hash": [300, 304, 297, 301, 299, 302], "tree": [200, 203, 199, 201, 198, 202], "copy": [50, 51, 49, 50, 52, 48]}
CAND = {"hash": [210, 215, 208, 211, 209, 212], "tree": [201, 202, 200, 199, 200, 203], "copy": [40, 42, 39, 41, 41, 40]}


def in_ms(rows: dict[str, list[int]]) -> dict[str, list[int]]:
    return {name: [value * MS for value in values] for name, values in rows.items()}


@pytest.mark.parametrize("session", ["s1", "s2"], ids=["paired", "apart"])
def test_shares_of_the_gain(session: str) -> None:
    gain = gain_attribution(
        arm("base", in_ms(BASE)), arm("cand", in_ms(CAND), infos=infos("cand", 6, Place(session))), "category"
    )
    shares = {row.name: row for row in gain.rows}
    total = sum(map(sum, CAND.values())) - sum(map(sum, BASE.values()))
    for name, row in shares.items():
        assert row.share == pytest.approx((sum(CAND[name]) - sum(BASE[name])) / total)
        assert row.share_interval is not None
        assert row.share is not None
        assert row.share_interval.low < row.share < row.share_interval.high
    assert sum(row.share or 0.0 for row in gain.rows) == pytest.approx(1.0)
    tree = shares["tree"].share_interval
    assert tree is not None
    assert tree.low < 0 < tree.high, "tree did not change, so its share may be none"


def test_paired_share_is_fieller() -> None:
    """Its ends are the ratios at which the paired test of part - ratio x whole is just significant."""
    gain = gain_attribution(arm("base", in_ms(BASE)), arm("cand", in_ms(CAND)), "category")
    part = np.array(CAND["hash"]) - np.array(BASE["hash"])
    whole = np.sum(list(CAND.values()), axis=0) - np.sum(list(BASE.values()), axis=0)
    interval = next(row.share_interval for row in gain.rows if row.name == "hash")
    assert interval is not None
    for end in (interval.low, interval.high):
        assert scipy_stats.ttest_1samp(part - end * whole, 0).pvalue == pytest.approx(0.05, abs=1e-6)


def test_nothing_to_share_without_a_gain() -> None:
    again = {name: values[::-1] for name, values in BASE.items()}
    gain = gain_attribution(arm("base", in_ms(BASE)), arm("again", in_ms(again)), "category")
    assert all(row.share is None and row.share_interval is None for row in gain.rows)


def test_metric_that_moves_with_the_profile_agrees_and_one_that_does_not_differs() -> None:
    totals = [np.sum(list(rows.values()), axis=0) for rows in (BASE, CAND)]

    def of(variant: str, rows: dict[str, list[int]], total: np.ndarray, factor: float) -> ArmCosts:
        plain = infos(variant, 6, Place(mode=RunMode.PLAIN))
        wobble = 1 + (factor - 1) * np.array([0.01, -0.01, 0.02, -0.02, 0.01, -0.01])
        steady = (total * 2 * MS).tolist()
        timed = with_times(plain, [1] * 6, epoch=steady, other=(total * factor * wobble * MS).tolist())
        return arm(variant, in_ms(rows), plain=timed)

    gain = gain_attribution(of("base", BASE, totals[0], 1.0), of("cand", CAND, totals[1], 1.2), "category")
    found = {agreement.metric: agreement for agreement in gain.agreements if agreement.metric != "wall"}
    assert found["epoch"].agreement is Agreement.AGREE
    assert found["epoch"].difference == pytest.approx(0.0, abs=1e-9)
    assert found["other"].agreement is Agreement.DIFFER
    assert found["other"].difference == pytest.approx(-log(1.2), abs=1e-3)
    assert "the profile fell further than other" in found["other"].meaning

    def meaning(baseline: ArmCosts, candidate: ArmCosts) -> str:
        agreements = gain_attribution(baseline, candidate, "category").agreements
        return next(agreement.meaning for agreement in agreements if agreement.metric == "other")

    # The profile changes by 451 / 551 or the other way round.
    back = meaning(of("base", CAND, totals[1], 1.2), of("cand", BASE, totals[0], 1.0))
    assert "the profile rose further than other" in back
    across = meaning(of("base", BASE, totals[0], 1.0), of("cand", CAND, totals[1], 2.0))
    assert "other rose and the profile fell" in across


def test_gain_that_vanishes_in_the_control() -> None:
    control_base = {"hash": [100, 104, 97, 101, 99, 102], "tree": [200, 203, 199, 201, 198, 202]}
    control_cand = {"hash": [101, 103, 98, 100, 100, 101], "tree": [201, 202, 198, 202, 199, 201]}
    treated = ArmPair("full", arm("base", in_ms(BASE)), arm("cand", in_ms(CAND)))
    control = ArmPair("partial", arm("base", in_ms(control_base)), arm("cand", in_ms(control_cand)))
    result = against_control(treated, control, "category", 0.01)
    rows = {row.name: row for row in result.rows}
    changes = np.array(CAND["hash"]) - np.array(BASE["hash"])
    control_changes = np.array(control_cand["hash"]) - np.array(control_base["hash"])
    expected = scipy_stats.ttest_rel(changes, control_changes)
    assert rows["hash"].difference == pytest.approx(expected.statistic * scipy_stats.sem(changes - control_changes) * MS)
    assert rows["hash"].p == pytest.approx(expected.pvalue)
    assert rows["hash"].verdict is Verdict.FASTER
    assert rows["tree"].verdict is not Verdict.FASTER
    assert sum(row.difference for row in result.rows) == pytest.approx(result.total.difference)


def test_composed_ratios_multiply_and_errors_add() -> None:
    generator = np.random.default_rng(3)
    values = {
        name: generator.normal(mean, 2.0, 8) for name, mean in (("default", 900), ("thin1", 880), ("thin2", 700), ("fat", 686))
    }

    def of(name: str, session: str) -> ArmCosts:
        weights = [int(value * MS) for value in values[name]]
        return arm(name, {"all": weights}, infos=infos(name, 8, Place(session)))

    composed = compose(Leg(of("default", "a"), of("thin1", "b")), Leg(of("thin2", "c"), of("fat", "d")), "category", 0.01)
    first, second = (values[b].mean() / values[a].mean() for a, b in (("default", "thin1"), ("thin2", "fat")))
    row = composed.total
    assert row is not None
    assert row.first_ratio == pytest.approx(first, rel=1e-6)
    assert row.second_ratio == pytest.approx(second, rel=1e-6)
    assert row.ratio == pytest.approx(first * second, rel=1e-6)
    error = sqrt(sum((scipy_stats.sem(of_arm) / of_arm.mean()) ** 2 for of_arm in values.values()))
    assert row.ratio_interval is not None
    width = log(row.ratio_interval.high / row.ratio_interval.low)
    # Between 7 and 28 degrees of freedom.
    assert 2 * scipy_stats.t.ppf(0.975, 28) * error <= width <= 2 * scipy_stats.t.ppf(0.975, 7) * error
    assert row.verdict is Verdict.FASTER
    assert [warning.code for warning in composed.warnings] == ["composed-via"]


def test_one_run_cannot_be_composed() -> None:
    single = arm("base", {"all": [5]})
    with pytest.raises(AnalysisError, match="one run"):
        compose(Leg(single, single), Leg(single, single), "category", 0.01)


def test_ladder_names_the_largest_step() -> None:
    def step(name: str, mean: int, *wobbles: int) -> ArmCosts:
        return arm(name, {"all": [(mean + wobble) * MS for wobble in wobbles]})

    arms = [
        step("base", 900, 0, 1, -1, 2, -2, 0), step("vecmap", 850, 1, -1, 0, -2, 2, 0),
        step("lockfree", 700, 2, 0, -1, 1, -2, 0), step("again", 700, 0, 2, 1, -2, -1, 0),
    ]  # fmt: skip
    climbed = ladder(arms, CompareOptions(), notes=("VecMap", "no locks"))
    assert [step.to_previous.delta for step in climbed.steps] == [-50 * MS, -150 * MS, 0]
    assert [step.to_baseline.delta for step in climbed.steps] == [-50 * MS, -200 * MS, -200 * MS]
    assert climbed.largest == "lockfree"
    assert [step.note for step in climbed.steps] == ["VecMap", "no locks", ""]


def test_power_of_a_paired_experiment() -> None:
    """The visible effect at the runs that were made is the one that the comparison promised, and 4 times the runs halve it."""
    baseline, candidate = arm("base", in_ms(BASE)), arm("cand", in_ms(CAND))
    table = power_table(baseline, candidate, "category", 0.01, runs=(6, 24, 96, 384))
    compared = compare_arms(baseline, [candidate], CompareOptions()).candidates[0]
    assert table.total.visible[0] == pytest.approx(compared.total.visible_effect)
    assert [row.visible[0] for row in table.rows] == pytest.approx([row.visible_effect for row in compared.rows])
    assert table.total.visible[3] == pytest.approx(table.total.visible[2] / 2, rel=0.02)
    thin_margin = 0.002
    needed = power_table(baseline, candidate, "category", thin_margin, runs=(6,)).total.runs_for_margin
    assert needed is not None
    assert needed > 3
    around = power_table(baseline, candidate, "category", thin_margin, runs=(needed - 1, needed)).total
    mean = np.sum(list(BASE.values())) / 6 * MS
    assert around.mean == pytest.approx(mean)
    assert around.visible[1] <= thin_margin * mean * 1.001
    assert around.visible[0] > thin_margin * mean * 0.999
    # More than would do if the noise that six runs showed were the true one.
    deviation = np.std(np.sum(list(CAND.values()), 0) - np.sum(list(BASE.values()), 0), ddof=1) * MS
    critical = scipy_stats.t.ppf(0.975, needed - 1)
    assert scipy_stats.nct.sf(critical, needed - 1, thin_margin * mean / deviation * sqrt(needed)) > 0.8


def test_power_of_a_control_whose_arms_were_recorded_apart() -> None:
    """Four arms of one spread scatter like two with root 2 times of it, and are promised no more."""
    pattern = np.array([0.0, 3.0, -2.0, 1.0, -2.0])

    def of(name: str, mean: float, factor: float) -> ArmCosts:
        return metric_arm(name, infos(name, 5, Place(session=name)), (mean + factor * pattern).tolist())

    full = ArmPair("full", of("a", 300, 1.0), of("b", 200, 1.0))
    partial = ArmPair("partial", of("c", 100, 1.0), of("d", 90, 1.0))
    found = control_power(full, partial, "category", 0.01)
    pair = power_table(of("e", 300, sqrt(2)), of("f", 200, sqrt(2)), "category", 0.01)
    assert (found.test, found.control, found.candidate) == (comparison.TestKind.WELCH, "partial", "b")
    assert (found.promise.low, found.promise.high) == pytest.approx((0.77, 0.83))
    slots = [next(row for row in table.metrics if row.name == "slot") for table in (found, pair)]
    assert slots[0].visible == pytest.approx(slots[1].visible)
    assert slots[0].runs_for_margin == slots[1].runs_for_margin
    assert slots[0].mean == slots[1].mean == pytest.approx(300 * MS)


def test_a_control_of_one_run_has_no_power() -> None:
    pairs = [ArmPair(name, arm("base", {"all": [5]}), arm("cand", {"all": [4]})) for name in ("full", "partial")]
    with pytest.raises(AnalysisError, match="at least 2 runs of each are needed"):
        control_power(pairs[0], pairs[1], "category", 0.01)
