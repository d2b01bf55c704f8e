"""Fieller's interval against the tests that define it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.statistics import t_tests
from profiler.analysis.statistics.ratio import paired_relative_change, welch_relative_change

seeds = st.integers(0, 2**32 - 1)
ratios = st.sampled_from([0.02, 0.5, 0.98, 1.0, 1.03, 3.0, 48.0])


@given(seed=seeds, runs=st.integers(3, 12), ratio=ratios)
def test_paired_ends_are_where_the_paired_t_test_turns_significant(seed: int, runs: int, ratio: float) -> None:
    generator = np.random.default_rng(seed)
    baseline = generator.normal(100, 2, runs)
    candidate = ratio * (baseline + generator.normal(0, 1, runs))
    found = paired_relative_change(baseline, candidate)
    for end in (1 + float(found.low), 1 + float(found.high)):
        assert scipy.stats.ttest_1samp(candidate - end * baseline, 0).pvalue == pytest.approx(0.05, rel=1e-6)
    assert float(found.change) == pytest.approx(candidate.mean() / baseline.mean() - 1, rel=1e-9, abs=1e-12)


@given(seed=seeds, runs=st.tuples(st.integers(3, 12), st.integers(3, 12)), ratio=ratios)
def test_welch_ends_are_where_welchs_test_turns_significant(seed: int, runs: tuple[int, int], ratio: float) -> None:
    generator = np.random.default_rng(seed)
    baseline, candidate = generator.normal(100, 2, runs[0]), ratio * generator.normal(100, 3, runs[1])
    found = welch_relative_change(baseline, candidate)
    for end in (1 + float(found.low), 1 + float(found.high)):
        assert scipy.stats.ttest_ind(candidate, end * baseline, equal_var=False).pvalue == pytest.approx(0.05, rel=1e-6)


@given(seed=seeds, runs=st.integers(3, 12))
def test_no_change_is_left_out_exactly_when_the_difference_leaves_out_0(seed: int, runs: int) -> None:
    values = np.random.default_rng(seed).normal(100, 2, (2, 50, runs))
    values[1] += np.linspace(-5, 5, 50)[:, np.newaxis]
    for test, relative in (
        (t_tests.paired_t(*values), paired_relative_change(*values)),
        (t_tests.welch_t(*values), welch_relative_change(*values)),
    ):
        assert relative.is_bounded.all()
        assert ((relative.low > 0) == (test.low > 0)).all()
        assert ((relative.high < 0) == (test.high < 0)).all()


@given(seed=seeds, runs=st.integers(3, 12), ratio=ratios)
def test_exchanging_the_arms_inverts_the_ratio(seed: int, runs: int, ratio: float) -> None:
    generator = np.random.default_rng(seed)
    baseline, candidate = generator.normal(100, 2, (5, runs)), ratio * generator.normal(100, 2, (5, runs))
    for function in (paired_relative_change, welch_relative_change):
        there, back = function(baseline, candidate), function(candidate, baseline)
        np.testing.assert_allclose(1 + there.low, 1 / (1 + back.high), rtol=1e-9)
        np.testing.assert_allclose(1 + there.high, 1 / (1 + back.low), rtol=1e-9)


def test_the_pairing_narrows_the_interval() -> None:
    # The candidate is the baseline plus 1, 2, 3: the blocks' large common part cancels.
    baseline = np.array([100.0, 200, 300])
    candidate = baseline + np.array([1.0, 2, 3])
    paired, welch = paired_relative_change(baseline, candidate), welch_relative_change(baseline, candidate)
    assert float(paired.change) == pytest.approx(0.01)
    assert float(paired.high - paired.low) == pytest.approx(0, abs=1e-12)  # every block: exactly 1 % more
    assert not bool(welch.is_bounded)


def test_a_baseline_that_may_be_0_has_no_finite_interval() -> None:
    baseline, candidate = np.array([-1.0, 0.5, 1.0]), np.array([5.0, 6.0, 7.0])
    for found in (paired_relative_change(baseline, candidate), welch_relative_change(baseline, candidate)):
        assert bool(found.is_defined)
        assert (bool(found.is_bounded), float(found.low), float(found.high)) == (False, 0.0, 0.0)


def test_a_baseline_of_0_has_no_relative_change() -> None:
    baseline, candidate = np.zeros(3), np.array([5.0, 6.0, 7.0])
    for found in (paired_relative_change(baseline, candidate), welch_relative_change(baseline, candidate)):
        assert (bool(found.is_defined), bool(found.is_bounded), float(found.change)) == (False, False, 0.0)


def test_identical_arms_change_by_exactly_0() -> None:
    values = np.array([103.0, 99.0, 107.0, 101.0])
    found = paired_relative_change(values, values)
    assert (float(found.change), float(found.low), float(found.high)) == (0.0, 0.0, 0.0)


def test_a_row_that_is_gone_fell_by_all_of_it() -> None:
    found = welch_relative_change(np.array([10.0, 11, 12]), np.zeros(3))
    assert (float(found.change), float(found.low), float(found.high)) == (-1.0, -1.0, -1.0)
