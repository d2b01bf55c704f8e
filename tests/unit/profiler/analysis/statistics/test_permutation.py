"""Exact permutation tests against counting and scipy.stats."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.statistics.permutation import sign_flip_p, two_sample_p

seeds = st.integers(0, 2**32 - 1)


def p_of(found: np.ndarray | None) -> list[float]:
    assert found is not None
    return found.tolist()


def test_sign_flips_by_counting() -> None:
    differences = np.array([[3.0, 1, 4, 1, 5, 9], [3, -1, 4, 1, -5, 9]])
    expected = []
    for row in differences:
        sums = [abs(sum(sign * value for sign, value in zip(signs, row, strict=True))) for signs in product((1, -1), repeat=6)]
        expected.append(sum(total >= abs(row.sum()) for total in sums) / 64)
    assert p_of(sign_flip_p(differences, 1)) == expected
    assert expected[0] == 2 / 64


def test_splits_by_counting() -> None:
    baseline, candidate = [1, 4, 2, 8], [5, 7, 9, 11, 3]
    pooled = baseline + candidate
    observed = abs(sum(candidate) / 5 - sum(baseline) / 4)
    splits = list(combinations(range(9), 5))
    extreme = sum(
        abs(sum(pooled[i] for i in split) / 5 - (sum(pooled) - sum(pooled[i] for i in split)) / 4) >= observed - 1e-9
        for split in splits
    )
    assert p_of(two_sample_p(np.array([baseline], float), np.array([candidate], float), 1)) == [extreme / 126]


@given(seed=seeds, runs=st.integers(4, 6))
def test_splits_agree_with_scipy(seed: int, runs: int) -> None:
    baseline, candidate = np.random.default_rng(seed).normal(0, 1, (2, 1, runs))
    expected = scipy.stats.permutation_test(
        (candidate[0], baseline[0]),
        lambda first, second, axis: first.mean(axis=axis) - second.mean(axis=axis),
        vectorized=True,
        n_resamples=np.inf,
    )
    assert p_of(two_sample_p(baseline, candidate, 1)) == pytest.approx([expected.pvalue], abs=1e-12)


@pytest.mark.parametrize(
    ("blocks", "family", "is_given"), [(5, 1, False), (6, 1, True), (6, 2, False), (7, 3, True), (24, 1, True), (25, 1, False)]
)
def test_sign_flips_only_where_they_can_decide(blocks: int, family: int, is_given: bool) -> None:
    # The smallest p is 2 / 2^blocks: 0.0625, 0.03125 > 0.025, 0.015625 <= 0.0167; beyond 24 blocks nothing is counted.
    assert (sign_flip_p(np.ones((1, blocks)), family) is not None) == is_given


@pytest.mark.parametrize(
    ("runs", "family", "is_given"), [(3, 1, False), (4, 1, True), (4, 2, False), (5, 6, True), (12, 1, True), (13, 1, False)]
)
def test_splits_only_where_they_can_decide(runs: int, family: int, is_given: bool) -> None:
    # The smallest p is 2 / C(2 runs, runs): 2/20, 2/70 = 0.0286 > 0.025, 2/252 = 0.0079 <= 0.0083; too many beyond 24.
    assert (two_sample_p(np.zeros((1, runs)), np.ones((1, runs)), family) is not None) == is_given


@pytest.mark.parametrize("sizes", [(3, 9), (9, 3), (4, 5), (1, 11)])
def test_splits_of_unequal_arms_by_counting(sizes: tuple[int, int]) -> None:
    pooled = np.random.default_rng(sizes).integers(0, 8, sum(sizes)).astype(float)
    candidate, baseline = pooled[: sizes[1]], pooled[sizes[1] :]
    centre = pooled.mean()
    observed = abs(candidate.sum() - sizes[1] * centre)
    sums = [abs(sum(split) - sizes[1] * centre) for split in combinations(pooled.tolist(), sizes[1])]
    expected = sum(total >= observed - 1e-9 for total in sums) / len(sums)
    found = two_sample_p(baseline[np.newaxis], candidate[np.newaxis], 1)
    assert found is None if sizes == (1, 11) else p_of(found) == [expected]


def test_equal_values_everywhere_give_1() -> None:
    assert p_of(sign_flip_p(np.zeros((1, 6)), 1)) == [1.0]
    assert p_of(two_sample_p(np.full((1, 5), 0.1), np.full((1, 5), 0.1), 1)) == [1.0]
