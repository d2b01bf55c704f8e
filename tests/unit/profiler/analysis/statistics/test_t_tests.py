"""Tests against arithmetic done by hand, published results, and scipy.stats."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from profiler.analysis.statistics import t_tests

# Student 1908, table of the hours of sleep gained with two drugs; the results below are those that R prints for it.
SLEEP_FIRST = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
SLEEP_SECOND = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])

finite = st.floats(-1e6, 1e6, allow_nan=False, width=64)
seeds = st.integers(0, 2**32 - 1)


def test_paired_t_by_hand() -> None:
    # D = 2, 3, 1: mean 2, variance (0 + 1 + 1) / 2 = 1, standard error 1 / sqrt(3), t = 2 sqrt(3), t^2 = 12.
    # With 2 degrees of freedom p = 1 - t / sqrt(t^2 + 2), and the 0.975 quantile q has q / sqrt(q^2 + 2) = 0.95.
    test = t_tests.paired_t(np.array([10.0, 12.0, 11.0]), np.array([12.0, 15.0, 12.0]))
    quantile = math.sqrt(2 * 0.95**2 / (1 - 0.95**2))
    assert float(test.difference) == 2.0
    assert float(test.standard_error) == pytest.approx(1 / math.sqrt(3), rel=1e-14)
    assert float(test.degrees) == 2
    assert float(test.p) == pytest.approx(1 - math.sqrt(12 / 14), rel=1e-12)
    assert float(test.low) == pytest.approx(2 - quantile / math.sqrt(3), rel=1e-12)
    assert float(test.high) == pytest.approx(2 + quantile / math.sqrt(3), rel=1e-12)


def test_welch_t_by_hand() -> None:
    # Means 2 and 6, variances 1 and 4: squared errors 1/3 and 4/3, sum 5/3.
    # Degrees (5/3)^2 / ((1/3)^2 / 2 + (4/3)^2 / 2) = (25/9) / (17/18) = 50/17.
    test = t_tests.welch_t(np.array([1.0, 2.0, 3.0]), np.array([4.0, 6.0, 8.0]))
    assert float(test.difference) == 4.0
    assert float(test.standard_error) == pytest.approx(math.sqrt(5 / 3), rel=1e-14)
    assert float(test.degrees) == pytest.approx(50 / 17, rel=1e-14)


def test_published_paired_result() -> None:
    test = t_tests.paired_t(SLEEP_SECOND, SLEEP_FIRST)
    assert float(test.difference / test.standard_error) == pytest.approx(-4.0621, abs=5e-5)
    assert float(test.p) == pytest.approx(0.002833, abs=5e-7)
    assert [float(test.low), float(test.high)] == pytest.approx([-2.4598858, -0.7001142], abs=5e-8)


def test_published_welch_result() -> None:
    test = t_tests.welch_t(SLEEP_SECOND, SLEEP_FIRST)
    assert float(test.difference / test.standard_error) == pytest.approx(-1.8608, abs=5e-5)
    assert float(test.degrees) == pytest.approx(17.776, abs=5e-4)
    assert float(test.p) == pytest.approx(0.07939, abs=5e-6)
    assert [float(test.low), float(test.high)] == pytest.approx([-3.3654832, 0.2054832], abs=5e-8)


@given(seed=seeds, rows=st.integers(1, 5), runs=st.integers(2, 12), size=st.sampled_from([1e-9, 1.0, 1e9]))
def test_paired_t_agrees_with_scipy(seed: int, rows: int, runs: int, size: float) -> None:
    values = size * np.random.default_rng(seed).normal(10, 1, (2, rows, runs))
    test = t_tests.paired_t(values[0], values[1])
    expected = scipy.stats.ttest_rel(values[1], values[0], axis=-1)
    interval = expected.confidence_interval(0.95)
    np.testing.assert_allclose(test.p, expected.pvalue, rtol=1e-9)
    np.testing.assert_allclose(test.low, interval.low, rtol=1e-9, atol=1e-9 * size)
    np.testing.assert_allclose(test.high, interval.high, rtol=1e-9, atol=1e-9 * size)


@given(seed=seeds, rows=st.integers(1, 5), runs=st.tuples(st.integers(2, 12), st.integers(2, 12)), ratio=st.floats(0.01, 100))
def test_welch_t_agrees_with_scipy(seed: int, rows: int, runs: tuple[int, int], ratio: float) -> None:
    generator = np.random.default_rng(seed)
    baseline, candidate = generator.normal(10, 1, (rows, runs[0])), generator.normal(11, ratio, (rows, runs[1]))
    test = t_tests.welch_t(baseline, candidate)
    expected = scipy.stats.ttest_ind(candidate, baseline, axis=-1, equal_var=False)
    interval = expected.confidence_interval(0.95)
    np.testing.assert_allclose(test.p, expected.pvalue, rtol=1e-9)
    np.testing.assert_allclose(test.degrees, expected.df, rtol=1e-9)
    np.testing.assert_allclose(test.low, interval.low, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(test.high, interval.high, rtol=1e-9, atol=1e-9)


def test_zero_difference_everywhere_has_p_1_and_an_interval_of_0() -> None:
    for test in (
        t_tests.paired_t(np.array([3.0, 5.0, 4.0]), np.array([3.0, 5.0, 4.0])),
        t_tests.welch_t(np.array([4.0, 4.0, 4.0]), np.array([4.0, 4.0])),
    ):
        assert (float(test.p), float(test.low), float(test.high), bool(test.is_testable)) == (1.0, 0.0, 0.0, True)


def test_the_same_non_zero_difference_everywhere_is_not_testable() -> None:
    for test in (
        t_tests.paired_t(np.array([3.0, 5.0, 4.0]), np.array([2.0, 4.0, 3.0])),
        t_tests.welch_t(np.array([4.0, 4.0, 4.0]), np.array([3.0, 3.0])),
    ):
        assert (float(test.p), float(test.difference), bool(test.is_testable)) == (1.0, -1.0, False)


def test_differences_that_are_equal_but_for_rounding_have_no_spread() -> None:
    baseline = np.array([0.1, 0.3, 0.7, 1.1])
    candidate = baseline + 0.1  # 0.2, 0.4, 0.7999999999999999, 1.2000000000000002
    assert len(set((candidate - baseline).tolist())) > 1
    assert not bool(t_tests.paired_t(baseline, candidate).is_testable)


def test_one_arm_without_spread_is_testable() -> None:
    # Variances 0 and 1, squared errors 0 and 1/3: degrees 2, t = 3 / sqrt(1/3), t^2 = 27, p = 1 - sqrt(27 / 29).
    test = t_tests.welch_t(np.array([0.0, 0.0, 0.0]), np.array([2.0, 3.0, 4.0]))
    assert float(test.degrees) == pytest.approx(2, rel=1e-14)
    assert float(test.p) == pytest.approx(1 - math.sqrt(27 / 29), rel=1e-12)


@given(
    values=hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(2, 8)), elements=st.floats(-1e300, 1e300)),
    other=hnp.arrays(np.float64, st.integers(2, 8), elements=st.floats(-1e300, 1e300)),
)
def test_nothing_is_ever_nan_or_infinite(values: np.ndarray, other: np.ndarray) -> None:
    for test in (t_tests.paired_t(values, values[:, ::-1].copy()), t_tests.welch_t(values, np.tile(other, (len(values), 1)))):
        for column in (test.p, test.degrees, test.difference, test.standard_error):
            assert np.isfinite(column).all()
        assert ((test.p >= 0) & (test.p <= 1)).all()


@given(
    baseline=hnp.arrays(np.float64, (3, 5), elements=finite),
    candidate=hnp.arrays(np.float64, (3, 5), elements=finite),
)
def test_exchanging_the_arms_mirrors_the_result(baseline: np.ndarray, candidate: np.ndarray) -> None:
    for function in (t_tests.paired_t, t_tests.welch_t):
        there, back = function(baseline, candidate), function(candidate, baseline)
        assert (there.difference == -back.difference).all()
        assert (there.p == back.p).all()
        assert (there.low == -back.high).all()
        assert (there.is_testable == back.is_testable).all()


def test_holm_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04, made monotone 0.02, 0.03, 0.06, 0.06.
    np.testing.assert_allclose(t_tests.holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02], rtol=1e-14)


@given(hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1)))
def test_holm_by_its_definition(p: np.ndarray) -> None:
    """Rejected at level a: the k smallest, as long as each p(j) <= a / (m - j + 1)."""
    adjusted = t_tests.holm(p)
    order = np.argsort(p, kind="stable")
    for level in (0.01, 0.05, 0.2):
        rejected = set()
        for step, row in enumerate(order):
            if p[row] * (len(p) - step) > level:
                break
            rejected.add(int(row))
        assert {int(row) for row in np.flatnonzero(adjusted <= level)} == rejected
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()


def test_holm_adjusts_each_family_by_itself() -> None:
    assert t_tests.holm(np.array([[0.01, 0.5], [0.04, 0.04]])).tolist() == [[0.02, 0.5], [0.08, 0.08]]
    assert t_tests.holm(np.array([])).tolist() == []


def test_equivalence_needs_the_whole_interval_within_the_margin() -> None:
    test = t_tests.paired_t(np.array([[100.0, 101, 99], [100, 101, 99]]), np.array([[100.1, 101.2, 99], [103, 101, 99]]))
    # First row: D = 0.1, 0.2, 0: mean 0.1, standard error 0.1 / sqrt(3), half width 4.3027 x 0.0577 = 0.248.
    assert t_tests.is_within_margin(test, 0.35).tolist() == [True, False]
    assert t_tests.is_within_margin(test, 0.34).tolist() == [False, False]


def test_no_overlap() -> None:
    baseline = np.array([[1.0, 2, 3], [1, 2, 3], [5, 6, 7]])
    candidate = np.array([[4.0, 5, 6], [3, 4, 5], [1, 2, 3]])
    assert t_tests.no_overlap(baseline, candidate).tolist() == [True, False, True]
