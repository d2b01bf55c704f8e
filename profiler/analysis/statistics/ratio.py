"""Ratios with intervals, by Fieller's theorem: the relative change of two means, and a part's share in a change.

Fieller 1954, Journal of the Royal Statistical Society B 16: the interval holds every ratio r for which a t test of
"mean(candidate) - r * mean(baseline) = 0" is not significant.  For blocks that is a paired t test, so it is exact for normal
noise and uses the pairing.  For separate runs it is Welch's test, whose degrees of freedom depend on r; they are taken at
either end of the interval.  So the interval leaves out "no change" exactly when the t interval of the difference leaves out 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from profiler.analysis.statistics.t_tests import CONFIDENCE, common_exponent, moments, satterthwaite, t_quantile
from profiler.model.arrays import BoolColumn, FloatColumn
from profiler.model.quick_dataclass import dataclass

# Squared standard errors of the two arms when numerator and denominator are weighed by the cosine and sine of an angle.
_Parts = Callable[[FloatColumn], tuple[FloatColumn, FloatColumn]]

# Halvings of a right angle down to the resolution of a double.
_HALVINGS = 54


@dataclass(frozen=True, slots=True)
class RelativeChange:
    """(candidate - baseline) / baseline as fractions.  ``is_defined``: the baseline's mean is not 0.  ``is_bounded``: the
    baseline is far enough from 0 (in standard errors) for the interval to be finite; elsewhere ``low`` and ``high`` are 0."""

    change: FloatColumn
    low: FloatColumn
    high: FloatColumn
    is_defined: BoolColumn
    is_bounded: BoolColumn


def paired_relative_change(baseline: FloatColumn, candidate: FloatColumn) -> RelativeChange:
    """Over the last axis, which is the same blocks in both; at least 2."""
    exponent = common_exponent(baseline, candidate)
    count = baseline.shape[-1]
    base, cand = moments(baseline, exponent), moments(candidate, exponent)
    ratio, is_defined = _ratio(base.mean, cand.mean)
    scaled_baseline = np.ldexp(baseline, -exponent[..., np.newaxis])
    residual = np.ldexp(candidate, -exponent[..., np.newaxis]) - ratio[..., np.newaxis] * scaled_baseline
    of_residual = moments(residual, np.zeros_like(exponent)).variance / count
    centred = (residual - residual.mean(axis=-1, keepdims=True)) * (scaled_baseline - base.mean[..., np.newaxis])
    covariance = np.where(of_residual == 0, 0.0, centred.sum(axis=-1) / (count - 1) / count)
    quantile = t_quantile(np.full(ratio.shape, float(count - 1)), 0.5 + CONFIDENCE / 2)
    slope = base.mean**2 - quantile**2 * base.variance / count
    low = _end(slope, quantile, of_residual, covariance, -1.0)
    high = _end(slope, quantile, of_residual, covariance, 1.0)
    return _relative_change(base.mean, cand.mean, (low, high), is_defined & (slope > 0))


def welch_relative_change(baseline: FloatColumn, candidate: FloatColumn) -> RelativeChange:
    """Over the last axis, which is independent replicates of either arm; at least 2 each."""
    exponent = common_exponent(baseline, candidate)
    counts = baseline.shape[-1], candidate.shape[-1]
    base, cand = moments(baseline, exponent), moments(candidate, exponent)
    base_error, cand_error = base.variance / counts[0], cand.variance / counts[1]

    def parts(angle: FloatColumn) -> tuple[FloatColumn, FloatColumn]:
        return base_error * np.sin(angle) ** 2, cand_error * np.cos(angle) ** 2

    low, low_is_bounded = _welch_end((base.mean, cand.mean), parts, counts, -1.0)
    high, high_is_bounded = _welch_end((base.mean, cand.mean), parts, counts, 1.0)
    return _relative_change(base.mean, cand.mean, (low, high), low_is_bounded & high_is_bounded)


@dataclass(frozen=True, slots=True)
class Share:
    """A part's change over the whole's, as a fraction.  ``is_defined``: the whole changed.  ``is_bounded``: the whole's change
    is certain enough (in standard errors) for the interval to be finite; elsewhere ``low`` and ``high`` are 0."""

    share: FloatColumn
    low: FloatColumn
    high: FloatColumn
    is_defined: BoolColumn
    is_bounded: BoolColumn


@dataclass(frozen=True, slots=True)
class PartAndWhole:
    """Of one arm, [..., replicates]; ``whole`` may lack leading axes that ``part`` has."""

    part: FloatColumn
    whole: FloatColumn


def paired_share(baseline: PartAndWhole, candidate: PartAndWhole) -> Share:
    """Replicates are the same blocks in both arms; at least 2.  The share is the ratio of the means of paired differences."""
    whole, part = np.broadcast_arrays(candidate.whole - baseline.whole, candidate.part - baseline.part)
    return _share(paired_relative_change(whole, part))


def welch_share(baseline: PartAndWhole, candidate: PartAndWhole) -> Share:
    """Replicates are independent; at least 2 in either arm.  Part and whole of one replicate belong together, so their
    covariance within each arm counts."""
    arms = [np.broadcast_arrays(arm.whole, arm.part) for arm in (baseline, candidate)]
    exponent = common_exponent(*(values for arm in arms for values in arm))
    scaled = [tuple(np.ldexp(values, -exponent[..., np.newaxis]) for values in arm) for arm in arms]
    spreads = [_Spread.of(whole, part) for whole, part in scaled]
    counts = int(scaled[0][0].shape[-1]), int(scaled[1][0].shape[-1])
    whole_change, part_change = (scaled[1][side].mean(axis=-1) - scaled[0][side].mean(axis=-1) for side in (0, 1))

    def parts(angle: FloatColumn) -> tuple[FloatColumn, FloatColumn]:
        return spreads[0].squared_error(angle), spreads[1].squared_error(angle)

    low, low_is_bounded = _welch_end((whole_change, part_change), parts, counts, -1.0)
    high, high_is_bounded = _welch_end((whole_change, part_change), parts, counts, 1.0)
    return _share(_relative_change(whole_change, part_change, (low, high), low_is_bounded & high_is_bounded))


def _share(change: RelativeChange) -> Share:
    low, high = (np.where(change.is_bounded, 1.0 + end, 0.0) for end in (change.low, change.high))
    return Share(1.0 + change.change, low, high, change.is_defined, change.is_bounded)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Of the mean of one arm: squared standard errors of whole and part, and their covariance."""

    whole: FloatColumn
    part: FloatColumn
    covariance: FloatColumn

    @staticmethod
    def of(whole: FloatColumn, part: FloatColumn) -> _Spread:
        count = whole.shape[-1]
        centred = (whole - whole.mean(axis=-1, keepdims=True)), (part - part.mean(axis=-1, keepdims=True))
        divisor = count * (count - 1)
        whole_square, part_square, product = (
            (centred[first] * centred[second]).sum(axis=-1) / divisor for first, second in ((0, 0), (1, 1), (0, 1))
        )
        return _Spread(whole_square, part_square, product)

    def squared_error(self, angle: FloatColumn) -> FloatColumn:
        """Of cos(angle) part - sin(angle) whole."""
        cosine, sine = np.cos(angle), np.sin(angle)
        squared = cosine**2 * self.part - 2 * sine * cosine * self.covariance + sine**2 * self.whole
        return np.maximum(squared, 0.0)


def _welch_end(
    means: tuple[FloatColumn, FloatColumn], parts: _Parts, counts: tuple[int, int], side: float
) -> tuple[FloatColumn, BoolColumn]:
    """Offset of one end from the observed ratio, and whether it is finite; ``means``: (denominator, numerator).

    Ratios are angles here, so that exchanging the arms mirrors the search: the end is the turn from the observed angle, at most
    a right one, where Welch's statistic falls to the quantile of its degrees of freedom there.
    """
    sign = np.where(means[0] < 0, -1.0, 1.0)
    angle = np.arctan2(sign * means[1], sign * means[0])
    length = np.hypot(*means)
    inside = np.zeros_like(angle)
    outside = np.full_like(angle, np.pi / 2)
    for _ in range(_HALVINGS):
        turn = (inside + outside) / 2
        base_part, cand_part = parts(angle + side * turn)
        quantile = t_quantile(satterthwaite(base_part, cand_part, *counts), 0.5 + CONFIDENCE / 2)
        is_inside = (length * np.sin(turn)) ** 2 < quantile**2 * (base_part + cand_part)
        inside, outside = np.where(is_inside, turn, inside), np.where(is_inside, outside, turn)
    is_bounded = (outside < np.pi / 2) & (np.abs(angle + side * outside) < np.pi / 2) & _is_away_from_zero(means[0])
    divisor = np.where(is_bounded, np.cos(angle) * np.cos(angle + side * outside), 1.0)
    return side * np.sin(inside) / divisor, is_bounded


def _end(
    slope: FloatColumn, quantile: FloatColumn, of_residual: FloatColumn, covariance: FloatColumn, side: float
) -> FloatColumn:
    """The root x of ``x^2 slope + 2 x q^2 covariance - q^2 of_residual = 0`` on one side; 0 where there is none.

    x is the distance from the observed ratio; written around it, identical arms give exactly 0.
    """
    squared = quantile**2
    inner = np.maximum(squared**2 * covariance**2 + slope * squared * of_residual, 0.0)
    safe = np.where(slope > 0, slope, 1.0)
    return np.where(slope > 0, (-squared * covariance + side * np.sqrt(inner)) / safe, 0.0)


def _ratio(base_mean: FloatColumn, cand_mean: FloatColumn) -> tuple[FloatColumn, BoolColumn]:
    is_defined = _is_away_from_zero(base_mean)
    return np.where(is_defined, cand_mean / np.where(is_defined, base_mean, 1.0), 0.0), is_defined


def _is_away_from_zero(scaled_mean: FloatColumn) -> BoolColumn:
    """Means are scaled to about 1: what is far below is 0, or its reciprocal would leave the range of numbers."""
    is_away: BoolColumn = np.abs(scaled_mean) > 1e-100
    return is_away


def _relative_change(
    base_mean: FloatColumn, cand_mean: FloatColumn, offsets: tuple[FloatColumn, FloatColumn], is_bounded: BoolColumn
) -> RelativeChange:
    is_defined = _is_away_from_zero(base_mean)
    change = np.where(is_defined, (cand_mean - base_mean) / np.where(is_defined, base_mean, 1.0), 0.0)
    low, high = (np.where(is_bounded, change + offset, 0.0) for offset in offsets)
    return RelativeChange(change, np.minimum(low, high), np.maximum(low, high), is_defined, is_bounded)
