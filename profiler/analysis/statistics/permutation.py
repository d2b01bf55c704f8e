"""Exact permutation tests, shown beside the t tests and never deciding.

Fisher 1935, The Design of Experiments: under "nothing changed" every sign pattern of paired differences, or every split of the
pooled values into two arms, is as likely as the one observed; p is the share of patterns at least as extreme.  All patterns are
counted, none is drawn, so equal inputs give equal p.  A pattern's sum is one of the first half's plus one of the second's, so
counting needs the 2^(n/2) sums of either half and not all 2^n.
"""

from __future__ import annotations

from math import comb

import numpy as np

from profiler.analysis.statistics.t_tests import ALPHA
from profiler.model.arrays import FloatColumn

MOST_BLOCKS = 24
MOST_POOLED_RUNS = 24

# Sums that differ by less than this part of the values' size are ties.
_TIE = 1e-12


def sign_flip_p(differences: FloatColumn, family: int) -> FloatColumn | None:
    """Exact two-sided sign-flip p of the mean of ``differences`` [rows, blocks]; None where its smallest possible value,
    2 / 2^blocks, exceeds 0.05 / ``family``, and beyond ``MOST_BLOCKS``."""
    count = differences.shape[-1]
    patterns = 1 << count
    if count > MOST_BLOCKS or 2 / patterns > ALPHA / family:
        return None
    return np.array([_extreme_sign_flips(row) / patterns for row in differences])


def two_sample_p(baseline: FloatColumn, candidate: FloatColumn, family: int) -> FloatColumn | None:
    """Exact two-sided p of the difference of means over all splits; [rows, runs] each; None as in ``sign_flip_p``, beyond
    ``MOST_POOLED_RUNS``."""
    first, second = baseline.shape[-1], candidate.shape[-1]
    patterns = comb(first + second, second)
    smallest = (2 if first == second else 1) / patterns
    if first + second > MOST_POOLED_RUNS or smallest > ALPHA / family:
        return None
    pooled = np.concatenate([candidate, baseline], axis=-1)
    centred = pooled - pooled.mean(axis=-1, keepdims=True)  # a split's difference is then proportional to one arm's sum
    return np.array([_extreme_splits(row, second) / patterns for row in centred])


def _extreme_sign_flips(differences: FloatColumn) -> int:
    middle = len(differences) // 2
    first, second = _signed_sums(differences[:middle]), np.sort(_signed_sums(differences[middle:]))
    limit = _limit(float(differences.sum()), differences)
    return _pairs_beyond(first, second, limit)


def _extreme_splits(centred: FloatColumn, size: int) -> int:
    """Splits whose arm of ``size`` values has a sum as far from 0 as the first ``size`` values have."""
    middle = len(centred) // 2
    halves = centred[:middle], centred[middle:]
    sums = tuple(_subset_sums(half) for half in halves)
    members = tuple(np.bitwise_count(np.arange(len(of_half), dtype=np.uint32)) for of_half in sums)
    limit = _limit(float(centred[:size].sum()), centred)
    extreme = 0
    for taken in range(max(0, size - len(halves[1])), min(size, middle) + 1):
        second = np.sort(sums[1][members[1] == size - taken])
        extreme += _pairs_beyond(sums[0][members[0] == taken], second, limit)
    return extreme


def _pairs_beyond(first: FloatColumn, second_ascending: FloatColumn, limit: float) -> int:
    """Pairs with a sum of at least ``limit`` in size."""
    if limit <= 0:
        return len(first) * len(second_ascending)
    above = len(second_ascending) - np.searchsorted(second_ascending, limit - first, side="left")
    below = np.searchsorted(second_ascending, -limit - first, side="right")
    return int(above.sum() + below.sum())


def _limit(observed: float, values: FloatColumn) -> float:
    return abs(observed) - _TIE * float(np.abs(values).sum())


def _signed_sums(values: FloatColumn) -> FloatColumn:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _subset_sums(values: FloatColumn) -> FloatColumn:
    """By subset: bit i of the index says whether value i is in it."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums
