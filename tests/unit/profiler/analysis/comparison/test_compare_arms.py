"""Whole comparisons: pairing, families, verdict order, additivity, symmetry."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.analysis.comparison.compare_rows import ArmValues, RowFamily, compare_family
from profiler.errors import AnalysisError, UsageError
from profiler.model.comparison import CandidateComparison, ComparisonRow, Verdict
from profiler.model.comparison import TestKind as Kind
from profiler.model.costs import ArmCosts
from profiler.model.run import RunMode
from support.arms import PERIOD_NS, Place, arm, cost_table, infos

MS = 1_000_000
OTHER_SESSION = Place(session="s2")


def compare(baseline: ArmCosts, candidate: ArmCosts, **options: Any) -> CandidateComparison:
    return compare_arms(baseline, [candidate], CompareOptions(**options)).candidates[0]


def row(compared: CandidateComparison, name: str) -> ComparisonRow:
    return next(found for found in compared.rows if found.name == name)


def in_ms(*values: float) -> list[int]:
    return [round(value * MS) for value in values]


def noisy_rows(seed: int, runs: int, size: float = 1.0) -> dict[str, list[int]]:
    generator = np.random.default_rng(seed)
    means = {"hashing": 600, "tree": 250, "memmove": 100, "malloc": 40, "shuffling": 4, "rpds": 3, "other": 2}
    return {
        name: np.rint(size * MS * generator.normal(mean, mean / 50, runs)).astype(int).tolist() for name, mean in means.items()
    }


# ---- what is tested


def test_runs_of_one_session_are_paired_by_hand() -> None:
    # D = -2, -3, -1 ms: mean -2, standard error 1 / sqrt(3) ms, t^2 = 12, p = 1 - sqrt(12 / 14) with 2 degrees of freedom.
    compared = compare(arm("a", {"x": in_ms(12, 15, 12)}), arm("b", {"x": in_ms(10, 12, 11)}))
    found = row(compared, "x")
    assert (compared.test, compared.family, compared.runs) == (Kind.PAIRED, 1, 3)
    assert (found.delta, found.relative) == (-2 * MS, pytest.approx(-2 / 13))
    assert found.p == pytest.approx(1 - math.sqrt(12 / 14), rel=1e-9)
    assert found.sigma == pytest.approx(math.sqrt(12))
    assert found.verdict is Verdict.UNDECIDED
    assert found.baseline.values == (12 * MS, 15 * MS, 12 * MS)
    assert (found.baseline.mean, found.baseline.median) == (13 * MS, 12 * MS)
    assert (found.baseline.minimum, found.baseline.maximum) == (12 * MS, 15 * MS)
    assert found.baseline.standard_deviation == pytest.approx(math.sqrt(3) * MS)


def test_blocks_are_matched_by_round_and_unmatched_runs_are_left_out() -> None:
    baseline = arm("a", {"x": in_ms(10, 20, 30, 40)}, Place(rounds=[0, 1, 2, 3]))
    candidate = arm("b", {"x": in_ms(41, 11, 31)}, Place(rounds=[3, 0, 2]))
    comparison = compare_arms(baseline, [candidate], CompareOptions())
    found = comparison.candidates[0].rows[0]
    assert found.baseline.values == (10 * MS, 30 * MS, 40 * MS)
    assert found.candidate.values == (11 * MS, 31 * MS, 41 * MS)
    assert [(w.code, "1 of a, 0 of b" in w.message) for w in comparison.warnings] == [("unmatched-runs", True)]


def test_rounds_of_two_hosts_are_different_blocks() -> None:
    hosts = [replace(a, host=replace(a.host, hostname=host)) for host in ("h1", "h2") for a in infos("a", 2)]
    baseline = arm("a", {"x": in_ms(1, 2, 3, 4)}, infos=tuple(hosts))
    reordered = tuple(replace(info, identity=replace(info.identity, variant="b")) for info in (hosts[2:] + hosts[:2]))
    found = compare(baseline, arm("b", {"x": in_ms(3, 4, 1, 2)}, infos=reordered))
    assert found.test is Kind.PAIRED
    assert found.rows[0].baseline.values == found.rows[0].candidate.values == (1 * MS, 2 * MS, 3 * MS, 4 * MS)


def test_separate_sessions_are_compared_by_welch_with_a_warning() -> None:
    baseline, candidate = arm("a", {"x": in_ms(1, 2, 3)}), arm("b", {"x": in_ms(4, 6, 8)}, OTHER_SESSION)
    comparison = compare_arms(baseline, [candidate], CompareOptions())
    found = comparison.candidates[0]
    assert found.test is Kind.WELCH
    assert found.rows[0].p == pytest.approx(scipy.stats.ttest_ind([4, 6, 8], [1, 2, 3], equal_var=False).pvalue)
    assert [w.code for w in comparison.warnings] == ["recorded-apart"]
    assert "recorded one after the other: order and build cannot be told apart" in comparison.warnings[0].message


def test_imported_files_are_never_paired_by_their_numbers() -> None:
    place = Place(mode=RunMode.IMPORTED)
    arms = arm("a", {"x": in_ms(1, 2, 3)}, place), arm("b", {"x": in_ms(4, 6, 8)}, place)
    comparison = compare_arms(arms[0], [arms[1]], CompareOptions())
    assert comparison.candidates[0].test is Kind.WELCH
    assert [(w.code, w.message.partition(";")[0]) for w in comparison.warnings] == [
        ("recorded-apart", "it is not known how a and b were recorded")
    ]


def test_runs_of_one_arm_in_one_round_are_one_replicate() -> None:
    """Windows of one process, or repeats within a round, share their luck."""
    baseline = arm("a", {"x": in_ms(30, 32, 10, 12, 20, 22)}, Place(rounds=[2, 2, 0, 0, 1, 1]))
    candidate = arm("b", {"x": in_ms(12, 22, 32)})
    comparison = compare_arms(baseline, [candidate], CompareOptions())
    assert comparison.candidates[0].rows[0].baseline.values == (11 * MS, 21 * MS, 31 * MS)
    assert [w.code for w in comparison.warnings] == ["repeated-round"]


def test_windows_cannot_be_asked_for_as_replicates() -> None:
    assert [field.name for field in fields(CompareOptions)] == ["dimension", "margin", "metrics"]
    windows = np.array([5, 6, 7], dtype=np.int64)
    baseline, candidate = arm("a", {"x": in_ms(1, 2, 3)}), arm("b", {"x": in_ms(2, 4, 3)})
    with_windows = [replace(costs, phase_windows_ns=windows) for costs in (baseline, candidate)]
    assert compare(*with_windows) == compare(baseline, candidate)


def test_one_run_per_arm_gives_the_difference_and_no_interval() -> None:
    compared = compare(arm("a", {"x": in_ms(10), "y": in_ms(5)}), arm("b", {"x": in_ms(8), "y": in_ms(6)}))
    found = row(compared, "x")
    assert (compared.test, compared.family) == (Kind.NONE, 0)
    assert (found.delta, found.relative, found.verdict) == (-2 * MS, pytest.approx(-0.2), Verdict.TOO_FEW_RUNS)
    assert (found.delta_interval, found.relative_interval, found.p, found.p_adjusted, found.sigma) == (None,) * 5
    assert found.note == "one run: no interval"
    assert (compared.total.delta, compared.total.note) == (-1 * MS, "one run: no interval")


def test_two_runs_per_arm_give_an_interval_and_no_verdict() -> None:
    # D = -2, -4: mean -3, standard error 1; the 0.975 quantile with 1 degree of freedom is tan(0.475 pi) = 12.706.
    compared = compare(arm("a", {"x": in_ms(10, 11)}), arm("b", {"x": in_ms(8, 7)}))
    found = row(compared, "x")
    assert (compared.test, compared.family, found.verdict, found.p) == (Kind.PAIRED, 0, Verdict.TOO_FEW_RUNS, None)
    assert found.delta_interval is not None
    assert found.delta_interval.low == pytest.approx((-3 - math.tan(0.475 * math.pi)) * MS)


def test_arms_without_profiled_runs_have_no_rows() -> None:
    compared = compare(arm("a", {}), arm("b", {}))
    assert (compared.rows, compared.total.verdict, compared.total.delta) == ((), Verdict.TOO_FEW_RUNS, 0.0)


# ---- families and rows


def test_small_rows_are_gathered_and_every_run_adds_up() -> None:
    baseline, candidate = arm("a", noisy_rows(1, 5)), arm("b", noisy_rows(2, 5))
    compared = compare(baseline, candidate)
    # 4, 3 and 2 of 999 ms are below 0.5 %.
    assert {found.name for found in compared.rows} == {"hashing", "tree", "memmove", "malloc", "(rest)"}
    assert compared.rows[-1].name == "(rest)"
    assert compared.rows[-1].note == "3 rows of less than 0.5 % of the total each"
    assert compared.family == 5
    for values in ("baseline", "candidate"):
        by_run = zip(*(getattr(found, values).values for found in compared.rows), strict=True)
        assert tuple(sum(run) for run in by_run) == getattr(compared.total, values).values


def test_the_threshold_is_half_a_percent_of_the_pooled_mean() -> None:
    # Pooled means: total 1000, x 5.0 (kept), y 4.9.
    baseline = arm("a", {"x": [6000] * 3, "y": [4900] * 3, "z": [989100] * 3})
    candidate = arm("b", {"x": [4000] * 3, "y": [4900] * 3, "z": [991100] * 3})
    assert [found.name for found in compare(baseline, candidate).rows] == ["x", "z", "(rest)"]


def test_rows_stand_by_size_of_the_difference_then_by_name() -> None:
    baseline = arm("a", {"d": [100] * 3, "c": [100] * 3, "b": [100] * 3, "a": [100] * 3})
    candidate = arm("b", {"d": [110] * 3, "c": [90] * 3, "b": [150] * 3, "a": [100] * 3})
    assert [found.name for found in compare(baseline, candidate).rows] == ["b", "c", "d", "a"]


def test_rows_of_one_arm_alone_count_as_0_in_the_other() -> None:
    baseline = arm("a", {"old": in_ms(10, 11, 12), "both": in_ms(50, 52, 51)})
    candidate = arm("b", {"new": in_ms(20, 22, 21), "both": in_ms(50, 51, 52)})
    compared = compare(baseline, candidate)
    assert row(compared, "old").candidate.values == (0, 0, 0)
    assert (row(compared, "old").relative, row(compared, "new").relative) == (-1.0, None)
    assert row(compared, "new").relative_interval is None
    assert row(compared, "new").verdict is Verdict.SLOWER


def test_p_is_adjusted_within_the_table_and_the_total_is_a_family_of_its_own() -> None:
    compared = compare(arm("a", noisy_rows(1, 6)), arm("b", noisy_rows(2, 6, 1.02)))
    p = sorted(found.p for found in compared.rows if found.p is not None)
    adjusted = sorted(found.p_adjusted for found in compared.rows if found.p_adjusted is not None)
    assert adjusted[0] == pytest.approx(min(1, p[0] * 5))
    assert compared.total.p_adjusted == compared.total.p


def test_every_candidate_is_compared_with_the_baseline_alone() -> None:
    baseline, second, third = (arm(name, noisy_rows(seed, 4)) for seed, name in enumerate("abc"))
    both = compare_arms(baseline, [second, third], CompareOptions())
    assert both.candidates == (compare(baseline, second), compare(baseline, third))
    assert (both.baseline_name, both.baseline_runs, both.unit, both.dimension) == ("a", 4, "ns", "category")


# ---- verdicts


def test_a_clear_difference_is_faster_or_slower() -> None:
    baseline = arm("a", {"x": in_ms(100, 101, 99, 100), "y": in_ms(50, 51, 50, 49)})
    candidate = arm("b", {"x": in_ms(80, 81, 80, 79), "y": in_ms(60, 62, 60, 59)})
    compared = compare(baseline, candidate)
    assert row(compared, "x").verdict is Verdict.FASTER
    assert row(compared, "y").verdict is Verdict.SLOWER
    assert row(compared, "x").no_overlap


def test_an_interval_within_the_margin_is_equivalent_beyond_it_undecided() -> None:
    # D of x: 0.1, 0.2, 0 ms: half width 0.248 ms around 0.1; the margin is 1 % of the total of 100 ms.
    baseline = arm("a", {"x": in_ms(10, 10, 10), "y": in_ms(90, 90, 90)})
    candidate = arm("b", {"x": in_ms(10.1, 10.2, 10), "y": in_ms(90, 92, 91)})
    compared = compare(baseline, candidate)
    assert row(compared, "x").verdict is Verdict.EQUIVALENT
    assert row(compared, "y").verdict is Verdict.UNDECIDED
    assert row(compare(baseline, candidate, margin=0.0034), "x").verdict is Verdict.UNDECIDED
    assert row(compare(baseline, candidate, margin=0.0035), "x").verdict is Verdict.EQUIVALENT


def test_a_significant_difference_within_the_margin_is_still_a_difference() -> None:
    baseline = arm("a", {"x": [1000_000, 1000_010, 1000_020]})
    candidate = arm("b", {"x": [1000_100, 1000_111, 1000_119]})
    assert compare(baseline, candidate).rows[0].verdict is Verdict.SLOWER


def test_an_undecided_row_says_what_would_decide_it() -> None:
    # D = 3, -1, 4, 2, 0 ms: mean 1.6, sd sqrt(4.3), standard error sqrt(0.86).
    baseline = arm("a", {"x": in_ms(100, 100, 100, 100, 100)})
    found = compare(baseline, arm("b", {"x": in_ms(103, 99, 104, 102, 100)})).rows[0]
    assert found.verdict is Verdict.UNDECIDED
    assert found.visible_effect is not None
    assert found.runs_needed is not None
    # Both spreads, that of these runs and that of the next ones, are estimates: chi distributions over the true one.  That of
    # five runs is less certain than its 4 degrees of freedom, for noise may have an excess kurtosis: 1 / (1 / 4 + 1 / (2 x 5)).
    seen = 1 / 0.35

    def reached(effect: float, runs: int) -> float:
        critical = scipy.stats.t.ppf(0.975, runs - 1)

        def weighted(spread: float) -> float:
            power = scipy.stats.nct.sf(critical, runs - 1, effect * spread * math.sqrt(runs / 4.3))
            return float(seen**0.5 * scipy.stats.chi.pdf(seen**0.5 * spread, seen) * power)

        return float(scipy.integrate.quad(weighted, 0, 6, limit=200)[0])

    assert reached(found.visible_effect / MS, 5) == pytest.approx(0.8, abs=2e-3)
    assert reached(1.6, found.runs_needed - 1) < 0.8 + 1e-3
    assert reached(1.6, found.runs_needed) >= 0.8 - 1e-3


def test_the_same_difference_in_every_run_cannot_be_tested() -> None:
    found = compare(arm("a", {"x": in_ms(10, 12, 11)}), arm("b", {"x": in_ms(8, 10, 9)})).rows[0]
    assert (found.verdict, found.p, found.delta, found.delta_interval) == (Verdict.UNTESTABLE, None, -2 * MS, None)
    assert found.note == "every run differs by exactly this amount: there is no spread to test against"


def test_rows_that_cannot_be_tested_do_not_count_in_the_family() -> None:
    baseline = arm("a", {"x": in_ms(10, 12, 11), "y": in_ms(10, 12, 11)})
    compared = compare(baseline, arm("b", {"x": in_ms(8, 10, 9), "y": in_ms(9, 12, 13)}))
    assert compared.family == 1
    assert row(compared, "y").p_adjusted == row(compared, "y").p


def test_rows_without_time_in_either_arm_are_no_part_of_the_family() -> None:
    values = {"x": in_ms(10, 12, 11), "y": in_ms(9, 8, 8), "none": in_ms(0, 0, 0)}
    found = compare_family(
        RowFamily(
            names=("x", "none"),
            labels=("x", "none"),
            notes=("", ""),
            baseline=ArmValues(np.array([values["x"], values["none"]], np.float64)),
            candidate=ArmValues(np.array([values["y"], values["none"]], np.float64)),
            is_paired=False,
            margin=0.0,
        )
    )
    assert found.tested == 1
    tested, empty = found.rows
    assert (
        tested.p_adjusted == tested.p == pytest.approx(scipy.stats.ttest_ind(values["x"], values["y"], equal_var=False).pvalue)
    )
    assert (empty.verdict, empty.p, empty.p_adjusted, empty.note) == (Verdict.UNTESTABLE, None, None, "no time in either arm")


def test_too_few_runs_comes_before_every_other_verdict() -> None:
    assert compare(arm("a", {"x": in_ms(10, 12)}), arm("b", {"x": in_ms(8, 10)})).rows[0].verdict is Verdict.TOO_FEW_RUNS


def test_arms_whose_inline_frames_are_named_differently_get_no_category_verdict() -> None:
    baseline, candidate = arm("a", noisy_rows(1, 5)), arm("b", noisy_rows(2, 5, 0.5))
    stripped = replace(candidate, quality=replace(candidate.quality, own_debug_share=0.0))
    comparison = compare_arms(baseline, [stripped], CompareOptions())
    compared = comparison.candidates[0]
    assert {found.verdict for found in compared.rows} == {Verdict.UNTESTABLE}
    assert all("debug information" in found.note for found in compared.rows)
    assert compared.family == 0
    assert compared.total.verdict is Verdict.FASTER
    assert [w.code for w in comparison.warnings] == ["debug-info-differs"]


def test_a_thin_profile_is_named_as_the_cause() -> None:
    # x has 4 to 6 samples per run: the counts differ as sampling alone makes them differ.
    baseline = arm("a", {"x": [5 * PERIOD_NS, 4 * PERIOD_NS, 6 * PERIOD_NS], "y": [95 * PERIOD_NS] * 3})
    candidate = arm("b", {"x": [4 * PERIOD_NS, 6 * PERIOD_NS, 5 * PERIOD_NS], "y": [95 * PERIOD_NS] * 3})
    found = row(compare(baseline, candidate, margin=0.0001), "x")
    assert (found.verdict, found.sampling_share) == (Verdict.UNDECIDED, 1.0)
    assert found.note == "profile too thin: 100 % of the variance is sampling"


def test_sampling_share_by_hand() -> None:
    # One sample per ms, x has half of 200: sampling variance 100 x 0.5 ms^2 per value, two values per difference: 100 ms^2.
    # D = 0, 20, 40 ms: variance 400 ms^2.  Share 1/4 as y keeps the totals near 200.
    baseline = arm("a", {"x": in_ms(100, 100, 100), "y": in_ms(100, 100, 100)})
    candidate = arm("b", {"x": in_ms(100, 120, 140), "y": in_ms(100, 120, 140)})
    found = row(compare(baseline, candidate), "x")
    # Values 100, 120, 140 at a share of one half: 50, 60, 70, mean 60 (baseline 50): (50 + 60) / 400.
    assert found.sampling_share == pytest.approx(110 / 400)


def test_permutation_p_stands_beside_where_it_can_decide() -> None:
    generator = np.random.default_rng(4)
    values = np.rint(generator.normal(100, 1, (2, 6)) * MS).astype(int).tolist()
    found = compare(arm("a", {"x": values[0]}), arm("b", {"x": values[1]})).rows[0]
    expected = scipy.stats.permutation_test(
        (np.subtract(values[1], values[0]).astype(float),), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert found.permutation_p == pytest.approx(expected.pvalue)
    five = compare(arm("a", {"x": values[0][:5]}), arm("b", {"x": values[1][:5]})).rows[0]
    assert five.permutation_p is None


# ---- properties


@pytest.mark.parametrize("place", [Place(), Place(mode=RunMode.IMPORTED)])
@given(seed=st.integers(0, 2**32 - 1), runs=st.integers(1, 8))
def test_an_arm_against_itself_is_silent(place: Place, seed: int, runs: int) -> None:
    same = arm("a", noisy_rows(seed, runs), replace(place, info=replace(place.info, source="a.data")))
    comparison = compare_arms(same, [same], CompareOptions())
    compared = comparison.candidates[0]
    expected = Verdict.EQUIVALENT if runs >= 3 else Verdict.TOO_FEW_RUNS
    for found in (*compared.rows, compared.total):
        assert (found.delta, found.verdict) == (0, expected)
        assert found.p in (None, 1.0)
        assert found.relative == 0
        if found.delta_interval is not None:
            assert (found.delta_interval.low, found.delta_interval.high) == (0, 0)
    assert [w.code for w in comparison.warnings if w.code not in ("outliers", "order-drift")] == []


@given(seeds=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), runs=st.integers(1, 7), is_paired=st.booleans())
def test_exchanging_the_arms_mirrors_the_comparison(seeds: tuple[int, int], runs: int, is_paired: bool) -> None:
    baseline = arm("a", noisy_rows(seeds[0], runs))
    candidate = arm("b", noisy_rows(seeds[1], runs, 0.97), Place() if is_paired else OTHER_SESSION)
    # The margin follows the baseline; 0 takes that one asymmetry away.
    there, back = compare(baseline, candidate, margin=0.0), compare(candidate, baseline, margin=0.0)
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert (there.family, there.test) == (back.family, back.test)
    for one, other in zip((*there.rows, there.total), (*back.rows, back.total), strict=True):
        assert (one.name, one.delta, one.p_adjusted) == (other.name, -other.delta, other.p_adjusted)
        assert one.verdict is opposite.get(other.verdict, other.verdict)
        assert (one.sigma, one.visible_effect, one.runs_needed) == (other.sigma, other.visible_effect, other.runs_needed)
        assert (one.permutation_p, one.no_overlap) == (pytest.approx(other.permutation_p), other.no_overlap)
        assert (one.baseline, one.candidate) == (other.candidate, other.baseline)
        if one.delta_interval is not None and other.delta_interval is not None:
            assert (one.delta_interval.low, one.delta_interval.high) == (-other.delta_interval.high, -other.delta_interval.low)
        if one.relative_interval is not None and other.relative_interval is not None and other.relative_interval.high > -1:
            assert 1 + one.relative_interval.low == pytest.approx(1 / (1 + other.relative_interval.high))


row_values = st.lists(st.lists(st.integers(0, 2**40), min_size=4, max_size=4), min_size=1, max_size=6)


@given(first=row_values, second=row_values, is_paired=st.booleans())
def test_rows_add_up_and_nothing_is_nan(first: list[list[int]], second: list[list[int]], is_paired: bool) -> None:
    baseline = arm("a", {f"r{i}": values for i, values in enumerate(first)})
    candidate = arm("b", {f"r{i}": values for i, values in enumerate(second)}, Place() if is_paired else OTHER_SESSION)
    compared = compare(baseline, candidate)
    for side in ("baseline", "candidate"):
        by_run = zip(*(getattr(found, side).values for found in compared.rows), strict=True)
        assert tuple(sum(run) for run in by_run) == getattr(compared.total, side).values
    assert math.fsum(found.delta for found in compared.rows) == pytest.approx(compared.total.delta, abs=1)
    assert all(math.isfinite(number) for number in numbers_in(compared))


def numbers_in(value: object) -> list[float]:
    if isinstance(value, int | float):
        return [value]
    if isinstance(value, tuple):
        return [number for item in value for number in numbers_in(item)]
    if is_dataclass(value):
        return [number for field in fields(value) for number in numbers_in(getattr(value, field.name))]
    return []


# ---- misuse


def test_units_that_differ_are_an_error_that_names_both() -> None:
    cycles = replace(arm("b", {"x": [1, 2, 3]}), unit="cycles", event="cycles")
    with pytest.raises(AnalysisError, match=r"cpu-clock in ns.*cycles.*--event"):
        compare_arms(arm("a", {"x": [1, 2, 3]}), [cycles], CompareOptions())


def test_a_dimension_that_was_not_computed_is_an_error_that_lists_the_others() -> None:
    with pytest.raises(UsageError, match=r"'dso'.*category"):
        compare(arm("a", {"x": [1]}), arm("b", {"x": [1]}), dimension="dso")


def test_the_label_shown_is_the_candidates() -> None:
    baseline, candidate = arm("a", {"f": [1, 2, 3]}), arm("b", {"f": [2, 3, 5]})
    labelled = replace(cost_table({"f": [2, 3, 5]}), labels=("f(int)",))
    assert compare(baseline, replace(candidate, tables={"category": labelled})).rows[0].label == "f(int)"


def test_a_few_equal_samples_are_no_proof_of_equality() -> None:
    """One sample of 1 ms in the same round of either arm: 1 % of the total is far less than what one sample leaves open."""
    rows = {"big": [20 * MS, 21 * MS, 19 * MS, 20 * MS], "small": [0, MS, 0, 0]}
    changed = {"big": [21 * MS, 20 * MS, 20 * MS, 19 * MS], "small": [0, MS, 0, 0]}
    compared = compare_arms(arm("base", rows), [arm("cand", changed)], CompareOptions()).candidates[0]
    small = next(row for row in compared.rows if row.name == "small")
    assert small.delta == 0
    assert small.p == 1.0
    assert small.verdict is Verdict.UNDECIDED
    assert "too few samples" in small.note or "so few samples" in small.note


def test_many_equal_samples_are() -> None:
    rows = {"big": [20_000 * MS, 20_010 * MS, 19_990 * MS], "even": [9_000_000 * MS] * 3}
    changed = {"big": [20_001 * MS, 20_010 * MS, 19_990 * MS], "even": [9_000_000 * MS] * 3}
    compared = compare_arms(arm("base", rows), [arm("cand", changed)], CompareOptions()).candidates[0]
    even = next(row for row in compared.rows if row.name == "even")
    assert even.verdict is Verdict.EQUIVALENT
