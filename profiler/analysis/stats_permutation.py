"""Exact permutation tests, shown beside the t tests and never deciding.

Fisher 1935, The Design of Experiments: under "nothing changed" every sign pattern of paired differences, or every split of the
pooled values into two arms, is as likely as the one observed; p is the share of patterns at least as extreme.  All patterns are
enumerated, none is drawn, so equal inputs give equal p.
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from profiler.analysis.stats import ALPHA
from profiler.model.arrays import FloatColumn

# More would take too many patterns: 2^16 for blocks, 92,378 for 10 runs against 10.
MOST_BLOCKS = 17
MOST_POOLED_RUNS = 20

# Sums that differ by less than this part of the values' size are ties.
_TIE = 1e-12


def sign_flip_p(differences: FloatColumn, family: int) -> FloatColumn | None:
    """Exact two-sided sign-flip p of the mean of ``differences`` [rows, blocks]; None where its smallest possible value,
    2 / 2^blocks, exceeds 0.05 / ``family``, and where there are too many patterns to enumerate."""
    count = differences.shape[-1]
    patterns = 1 << max(count - 1, 0)  # a pattern and its mirror image are equally extreme
    if count > MOST_BLOCKS or 1 / patterns > ALPHA / family:
        return None
    bits = (np.arange(patterns)[:, np.newaxis] >> np.arange(count)) & 1
    return _share_as_extreme((1 - 2 * bits).astype(np.float64), differences)


def two_sample_p(baseline: FloatColumn, candidate: FloatColumn, family: int) -> FloatColumn | None:
    """Exact two-sided p of the difference of means over all splits; [rows, runs] each; None as in ``sign_flip_p``."""
    first, second = baseline.shape[-1], candidate.shape[-1]
    total = first + second
    # Between arms of equal size a split and its mirror image are equally extreme: the first run then keeps its side.
    is_halved = first == second
    patterns = comb(total, first) // (2 if is_halved else 1)
    if total > MOST_POOLED_RUNS or 1 / patterns > ALPHA / family:
        return None
    masks = np.arange(1 << total, dtype=np.uint32)
    masks = masks[np.bitwise_count(masks) == second]
    if is_halved:
        masks = masks[masks & 1 == 1]
    members = ((masks[:, np.newaxis] >> np.arange(total, dtype=np.uint32)) & 1).astype(np.float64)
    pooled = np.concatenate([candidate, baseline], axis=-1)
    centred = pooled - pooled.mean(axis=-1, keepdims=True)  # a split's difference is then proportional to one arm's sum
    return _share_as_extreme(members, centred)


def _share_as_extreme(weights: npt.NDArray[np.float64], values: FloatColumn) -> FloatColumn:
    """Share of the patterns (rows of ``weights``; the first is the observed one) whose weighted sum is as large in size."""
    shares = np.empty(values.shape[:-1])
    for index in np.ndindex(shares.shape):
        sums = np.abs(weights @ values[index])
        shares[index] = np.mean(sums >= sums[0] - _TIE * np.abs(values[index]).sum())
    return shares
