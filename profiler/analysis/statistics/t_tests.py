"""Tests of means over replicates: paired t, Welch t, one-sample t, and Holm's adjustment.

Everything takes arrays whose last axis is the replicates ("runs") and works on any number of leading axes at once, so that one
call tests all rows of a table and a simulation runs the very code that a comparison runs.  Distribution functions come from
``scipy.special``, imported on the first call.  No result is ever NaN or infinite.

Sources: Student 1908 (one-sample and paired t); Welch 1947, Biometrika 34 (unequal variances); Satterthwaite 1946, Biometrics
Bulletin 2 (its degrees of freedom); Holm 1979, Scandinavian Journal of Statistics 6 (step-down adjustment).
"""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, FloatColumn
from profiler.model.quick_dataclass import dataclass

ALPHA = 0.05
CONFIDENCE = 0.95
MIN_REPLICATES = 3

# Values that differ by less than this fraction of their size differ by rounding alone.
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class TTest:
    """One entry per leading index of the tested arrays.

    ``difference`` = candidate - baseline.  ``low``, ``high``: two-sided 95 % t interval of it, unadjusted.  ``p``: two-sided.
    ``is_testable`` is False where every replicate differs by the same non-zero amount: there is no spread to test against, so
    ``p`` is 1 and the interval has no width.  The same zero difference everywhere is testable with ``p`` = 1.
    """

    difference: FloatColumn
    standard_error: FloatColumn
    degrees: FloatColumn
    p: FloatColumn
    low: FloatColumn
    high: FloatColumn
    is_testable: BoolColumn


@dataclass(frozen=True, slots=True)
class Moments:
    """Of values scaled by ``2 ** -exponent`` (exact), so that squares neither overflow nor vanish."""

    mean: FloatColumn
    variance: FloatColumn


def paired_t(baseline: FloatColumn, candidate: FloatColumn) -> TTest:
    """Paired t over the last axis: baseline[..., i] and candidate[..., i] belong to one block; at least 2 blocks."""
    return _one_sample(candidate - baseline, common_exponent(baseline, candidate))


def welch_t(baseline: FloatColumn, candidate: FloatColumn) -> TTest:
    """Welch's t over the last axis, with Satterthwaite's degrees of freedom; at least 2 replicates on either side."""
    exponent = common_exponent(baseline, candidate)
    base, cand = moments(baseline, exponent), moments(candidate, exponent)
    base_error, cand_error = base.variance / baseline.shape[-1], cand.variance / candidate.shape[-1]
    degrees = satterthwaite(base_error, cand_error, baseline.shape[-1], candidate.shape[-1])
    is_constant = base_error + cand_error == 0
    return t_test(cand.mean - base.mean, np.sqrt(base_error + cand_error), degrees, exponent, is_constant)


def holm(p: FloatColumn) -> FloatColumn:
    """Adjusted p over the last axis (one family per leading index): the k-th smallest of m times m - k + 1, made monotone and
    capped at 1.  Controls the family-wise error under any dependence between the rows."""
    count = p.shape[-1]
    if count == 0:
        return p.copy()
    order = np.argsort(p, axis=-1, kind="stable")
    stepped = np.take_along_axis(p, order, axis=-1) * (count - np.arange(count))
    stepped = np.minimum(np.maximum.accumulate(stepped, axis=-1), 1.0)
    adjusted = np.empty_like(stepped)
    np.put_along_axis(adjusted, order, stepped, axis=-1)
    return adjusted


def is_within_margin(test: TTest, margin: FloatColumn | float) -> BoolColumn:
    """Equivalence by the interval: the whole 95 % interval lies within +-``margin`` (same unit as the difference)."""
    inside: BoolColumn = (test.low >= -np.asarray(margin)) & (test.high <= np.asarray(margin))
    return inside


def no_overlap(baseline: FloatColumn, candidate: FloatColumn) -> BoolColumn:
    """Every value of one side is beyond every value of the other (last axis: replicates)."""
    below = candidate.max(axis=-1) < baseline.min(axis=-1)
    above = candidate.min(axis=-1) > baseline.max(axis=-1)
    either: BoolColumn = below | above
    return either


def satterthwaite(first: FloatColumn, second: FloatColumn, first_count: int, second_count: int) -> FloatColumn:
    """Degrees of freedom of the sum of two squared standard errors made of so many replicates; the smaller count - 1 where both
    are zero.  Between min(counts) - 1 and the sum of both counts - 2."""
    largest = np.maximum(first, second)
    scale = np.where(largest > 0, largest, 1.0)
    a, b = first / scale, second / scale
    weight = a * a / (first_count - 1) + b * b / (second_count - 1)
    fewest = float(min(first_count, second_count) - 1)
    return np.where(largest > 0, (a + b) ** 2 / np.where(weight > 0, weight, 1.0), fewest)


def t_quantile(degrees: FloatColumn, probability: float | FloatColumn) -> FloatColumn:
    """Quantile of Student's t."""
    from scipy import special

    quantile: FloatColumn = special.stdtrit(degrees, probability)
    return quantile


def common_exponent(*arrays: FloatColumn) -> FloatColumn:
    """Binary exponent of the largest magnitude over the last axis of all arrays, as an integer array."""
    largest = np.max([np.abs(array).max(axis=-1) for array in arrays], axis=0)
    exponent: FloatColumn = np.frexp(largest)[1]
    return exponent


def moments(values: FloatColumn, exponent: FloatColumn) -> Moments:
    """Mean and sample variance over the last axis; the variance is exactly 0 where values differ by rounding alone."""
    scaled = np.ldexp(values, -exponent[..., np.newaxis])
    mean = scaled.mean(axis=-1)
    variance = scaled.var(axis=-1, ddof=1)
    spread = scaled.max(axis=-1) - scaled.min(axis=-1)
    return Moments(mean, np.where(spread <= _ROUNDING, 0.0, variance))


def _one_sample(differences: FloatColumn, exponent: FloatColumn) -> TTest:
    count = differences.shape[-1]
    found = moments(differences, exponent)
    degrees = np.full(found.mean.shape, float(count - 1))
    return t_test(found.mean, np.sqrt(found.variance / count), degrees, exponent, found.variance == 0)


def t_test(
    difference: FloatColumn, error: FloatColumn, degrees: FloatColumn, exponent: FloatColumn, is_constant: BoolColumn
) -> TTest:
    """Of a difference whose standard error has so many degrees of freedom, both scaled by ``2 ** -exponent``;
    ``is_constant``: the error is exactly 0."""
    from scipy import special

    is_zero = np.abs(difference) <= _ROUNDING
    statistic = np.abs(difference) / np.where(is_constant, 1.0, error)
    p = np.where(is_constant, 1.0, 2 * special.stdtr(degrees, -statistic))
    half_width = t_quantile(degrees, 0.5 + CONFIDENCE / 2) * error
    return TTest(
        difference=np.ldexp(difference, exponent),
        standard_error=np.ldexp(error, exponent),
        degrees=degrees,
        p=p,
        low=np.ldexp(difference - half_width, exponent),
        high=np.ldexp(difference + half_width, exponent),
        is_testable=~is_constant | is_zero,
    )
