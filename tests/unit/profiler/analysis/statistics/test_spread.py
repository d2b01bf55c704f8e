"""Sampling variance, outliers and drift against arithmetic and scipy.stats."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.statistics.spread import modified_z_scores, outliers, sampling_variance, trend


def test_sampling_variance_by_hand() -> None:
    # 50 of 100 samples of 1000 ns each: 1000^2 x 100 x 0.5 x 0.5 = 2.5e7; 1 of 10,000: 1000^2 x 1 x 0.9999.
    weight, total = np.array([[50e3, 1e3], [50e3, 9_999e3]]), np.array([100e3, 10_000e3])
    found = sampling_variance(weight, 1e3 * weight, total)
    assert found.tolist() == [pytest.approx([2.5e7, 0.9999e6], rel=1e-12)] * 2
    # 3 samples of 10 and 7 of 20: shares 30 / 170 and 140 / 170; (140 / 170)^2 x 300 + (30 / 170)^2 x 2800 for both.
    found = sampling_variance(np.array([[30.0], [140.0]]), np.array([[300.0], [2800.0]]), np.array([170.0]))
    assert found.ravel().tolist() == pytest.approx([(140**2 * 300 + 30**2 * 2800) / 170**2] * 2)


def test_sampling_variance_of_nothing_and_of_everything_is_0() -> None:
    weight = np.array([[0.0, 5e3], [5e3, 0.0]])
    assert sampling_variance(weight, 1e3 * weight, np.array([5e3, 5e3])).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert sampling_variance(np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(1)).tolist() == [[0.0]]


def test_modified_z_scores_by_hand() -> None:
    # Median 3; distances 2, 1, 0, 1, 97 with median 1.
    values = np.array([1.0, 2.0, 3.0, 4.0, 100.0])
    assert modified_z_scores(values).tolist() == pytest.approx([-1.349, -0.6745, 0, 0.6745, 65.4265])
    assert outliers(values).tolist() == [False, False, False, False, True]


def test_the_limit_is_wider_for_few_values() -> None:
    # 3.5 x (1 + 10 / 5) = 10.5: a score of 0.6745 x 15 = 10.1 does not stand apart, one of 0.6745 x 16 = 10.8 does.
    assert outliers(np.array([[1.0, 2.0, 3.0, 4.0, 18.0], [1.0, 2.0, 3.0, 4.0, 19.0]]))[:, 4].tolist() == [False, True]


def test_no_scores_where_most_values_are_equal() -> None:
    assert modified_z_scores(np.array([5.0, 5.0, 5.0, 5.0, 9.0])).tolist() == [0.0] * 5


@given(seed=st.integers(0, 2**32 - 1), runs=st.integers(4, 30), slope=st.floats(-1, 1))
def test_trend_agrees_with_scipy(seed: int, runs: int, slope: float) -> None:
    values = 100 + slope * np.arange(runs) + np.random.default_rng(seed).normal(0, 1, runs)
    found = trend(values)
    expected = scipy.stats.linregress(np.arange(runs), values)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert found.change == pytest.approx(expected.slope * (runs - 1) / values.mean(), rel=1e-9, abs=1e-12)


def test_constant_values_do_not_drift() -> None:
    assert (trend(np.full(5, 7.0)).change, trend(np.full(5, 7.0)).p) == (0.0, 1.0)
    assert trend(np.zeros(5)).p == 1.0


def test_an_exact_line_drifts_surely() -> None:
    found = trend(np.array([100.0, 101.0, 102.0, 103.0, 104.0]))
    assert found.change == pytest.approx(4 / 102)
    assert 0 <= found.p < 1e-9
