"""Intervals of shares against scipy and published figures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from profiler.analysis.statistics.share_interval import NO_SAMPLES, RUN_TO_RUN, SAMPLING, share_intervals
from profiler.model.costs import CostTable
from support.report_values import MS, cost_table


@pytest.mark.parametrize(("hits", "samples"), [(1, 100), (50, 100), (99, 100), (7, 12), (0, 10), (12_000, 100_000)])
def test_one_run_is_wilson(hits: int, samples: int) -> None:
    result = share_intervals(cost_table({"a": [hits], "b": [samples - hits]}))
    expected = stats.binomtest(hits, samples).proportion_ci(0.95, method="wilson")
    assert result.method == SAMPLING
    assert result.dimension == "category"
    assert (result.intervals[0].low, result.intervals[0].high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_runs_of_equal_length_give_the_ordinary_t_interval() -> None:
    runs = [510, 498, 505, 480, 520]
    result = share_intervals(cost_table({"a": runs, "b": [1000 - run for run in runs]}))
    shares = np.array(runs) / 1000
    low, high = stats.t.interval(0.95, len(runs) - 1, loc=shares.mean(), scale=stats.sem(shares))
    assert result.method == RUN_TO_RUN
    assert (result.intervals[0].low, result.intervals[0].high) == pytest.approx((low, high), abs=1e-12)


def test_runs_of_unequal_length_keep_the_share_inside() -> None:
    # Two runs, 10 of 20 ms and 90 of 300 ms: share 100 / 320; residuals 10 - 6.25 and 90 - 93.75, so +-3.75;
    # standard error sqrt(2 * 3.75^2 / (2 * 1)) / 160 = 3.75 / 160; t(1 df) = 12.7062.
    result = share_intervals(cost_table({"a": [10, 90], "b": [10, 210]}))
    half_width = 12.706204736 * 3.75 / 160
    assert result.intervals[0].low == pytest.approx(100 / 320 - half_width, abs=1e-9)
    assert result.intervals[0].high == pytest.approx(100 / 320 + half_width, abs=1e-9)


def test_ends_stay_within_the_possible() -> None:
    result = share_intervals(cost_table({"a": [1, 99], "b": [99, 1]}))
    assert (result.intervals[0].low, result.intervals[0].high) == (0.0, 1.0)


@pytest.mark.parametrize("samples", range(1, 1000, 37))
def test_nothing_and_everything_are_in_their_intervals(samples: int) -> None:
    everything, nothing = share_intervals(cost_table({"a": [samples], "b": [0]})).intervals
    assert everything.high == 1.0
    assert nothing.low == 0.0


def test_no_samples() -> None:
    result = share_intervals(cost_table({"other": [0, 0]}))
    assert (result.method, result.intervals) == (NO_SAMPLES, ())


def test_coverage_of_the_sampling_interval() -> None:
    """Of 2000 profiles with a true share of 3 %, 95 % +- 1.5 points have it in their interval."""
    rng = np.random.default_rng(20260102)
    covered = 0
    for hits in rng.binomial(800, 0.03, size=2000).tolist():
        interval = share_intervals(cost_table({"a": [hits], "b": [800 - hits]})).intervals[0]
        covered += interval.low <= 0.03 <= interval.high
    assert 0.935 <= covered / 2000 <= 0.965


def mixed_table(rows: list[list[int]]) -> CostTable:
    """One run; ``rows``: the weights of every sample of each row."""
    weight = np.array([[sum(row)] for row in rows], np.int64)
    names = tuple("abcdef"[: len(rows)])
    samples = np.array([[len(row)] for row in rows], np.int64)
    squares = np.array([[float(sum(value**2 for value in row))] for row in rows])
    return CostTable("category", names, names, weight, weight, samples, squares, weight.sum(axis=0))


def test_samples_that_weigh_differently_are_worth_fewer() -> None:
    # 40 of weight 1 and 10 of weight 4 in either row: Kish's number of all 100 is 160^2 / (80 + 320) = 64.
    half = share_intervals(mixed_table([[1] * 40 + [4] * 10] * 2)).intervals[0]
    expected = stats.binomtest(32, 64).proportion_ci(0.95, method="wilson")
    assert (half.low, half.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    # A row of nothing has all samples against it: still 64 of them.
    nothing = share_intervals(mixed_table([[1] * 80 + [4] * 20, []])).intervals[1]
    assert nothing.high == pytest.approx(stats.binomtest(0, 64).proportion_ci(0.95, method="wilson").high, abs=1e-12)


@pytest.mark.parametrize("heavy_share", [0.2, 0.6], ids=["everywhere", "mostly in one row"])
def test_coverage_with_the_periods_of_two_events(heavy_share: float) -> None:
    """Of 2,000 profiles of about 900 samples of 1 and 100 of 9, 95 % +- 1.5 points have the share in their interval.  Taken for
    as many equal samples they would have it in 70 to 76 %; by one number for all rows, Kish's, in 92 % of the second kind."""
    rng = np.random.default_rng(20260103)
    light_share = 0.2 if heavy_share == 0.2 else 0.1
    truth = (light_share + heavy_share) / 2
    covered = covered_as_equal = 0
    for _ in range(2000):
        light, others = rng.poisson((900 * light_share, 900 * (1 - light_share)))
        large, other_large = rng.poisson((100 * heavy_share, 100 * (1 - heavy_share)))
        table = mixed_table([[1] * light + [9] * large, [1] * others + [9] * other_large])
        interval = share_intervals(table).intervals[0]
        covered += interval.low <= truth <= interval.high
        share, samples = (light + 9 * large) / int(table.total[0]), int(table.self_samples.sum())
        covered_as_equal += abs(share - truth) <= 1.96 * (share * (1 - share) / samples) ** 0.5
    assert 0.935 <= covered / 2000 <= 0.965
    assert covered_as_equal / 2000 < 0.8


def test_weights_in_any_unit_give_the_same_interval() -> None:
    table = cost_table({"a": [30], "b": [70]})
    assert int(table.total[0]) == 100 * MS
    assert share_intervals(table).intervals[0].low == pytest.approx(
        stats.binomtest(30, 100).proportion_ci(0.95, method="wilson").low, abs=1e-12
    )
