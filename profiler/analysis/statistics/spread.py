"""The spread of replicates: what part of it is sampling, which replicates stand out, whether they drift.

Sources: Iglewicz and Hoaglin 1993, How to Detect and Handle Outliers (modified z-score and its limit 3.5 for many values).
"""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, FloatColumn
from profiler.model.quick_dataclass import dataclass

# Fewer replicates say nothing about outliers or drift.
FEWEST_RUNS = 5
# Drift: a straight line over the execution order with p below the one and a change of at least the other.
DRIFT_P = 0.01
DRIFT_CHANGE = 0.01
OUTLIER_SCORE = 3.5
# The median of few distances is often far too small: in 12 % of clean series of 10 (21 % of 5) some score exceeds 3.5.
# Widened by 1 + 10 / count the limit is exceeded in 1 to 3 % of clean series of any length.
_WIDENING = 10.0
# 0.6745 is the upper quartile of the standard normal: it makes the median absolute deviation a standard deviation.
_NORMAL_QUARTILE = 0.6745


@dataclass(frozen=True, slots=True)
class Trend:
    """Straight line through values in execution order.  ``change``: fitted change from the first to the last, as a fraction of
    the mean; ``p``: two-sided, that there is none."""

    change: float
    p: float

    @property
    def is_notable(self) -> bool:
        return self.p < DRIFT_P and abs(self.change) >= DRIFT_CHANGE


def sampling_variance(weight: FloatColumn, squares: FloatColumn, total: FloatColumn) -> FloatColumn:
    """Variance of each value of ``weight`` [rows, runs] that sampling alone causes; the rows are all there are.

    ``squares``: sums of the squared weights of each row's samples, which is the variance of a sum whose number of samples is
    Poisson; ``total`` [runs] is fixed by the timer, so what a row has too much the others lack.  Of samples that all weigh the
    same w, n in the row, it is the binomial w**2 n (1 - share).  0 where nothing was sampled.
    """
    share = np.clip(weight / np.where(total > 0, total, 1.0), 0.0, 1.0)
    others = squares.sum(axis=0) - squares
    return np.where(total > 0, (1.0 - share) ** 2 * squares + share**2 * np.maximum(others, 0.0), 0.0)


def modified_z_scores(values: FloatColumn) -> FloatColumn:
    """0.6745 (x - median) / MAD over the last axis; 0 where more than half of the values are equal (MAD = 0)."""
    distance = values - np.median(values, axis=-1, keepdims=True)
    deviation = np.median(np.abs(distance), axis=-1, keepdims=True)
    return np.where(deviation > 0, _NORMAL_QUARTILE * distance / np.where(deviation > 0, deviation, 1.0), 0.0)


def outlier_limit(count: int) -> float:
    """The modified z-score beyond which one of ``count`` values stands apart."""
    return OUTLIER_SCORE * (1.0 + _WIDENING / count)


def outliers(values: FloatColumn) -> BoolColumn:
    """Modified z-score beyond the limit for so many values."""
    found: BoolColumn = np.abs(modified_z_scores(values)) > outlier_limit(values.shape[-1])
    return found


def trend(values: FloatColumn) -> Trend:
    """Least-squares line through ``values`` [runs] over their order, with the t test of its slope; at least 3 values."""
    from scipy import special

    count = len(values)
    mean = float(values.mean())
    order = np.arange(count) - (count - 1) / 2
    centred = values - mean
    if mean == 0 or not centred.any():
        return Trend(0.0, 1.0)
    correlation = float(order @ centred / np.sqrt((order @ order) * (centred @ centred)))
    slope = float(order @ centred / (order @ order))
    degrees = count - 2
    unexplained = max(1.0 - correlation**2, 1e-15)
    p = float(2 * special.stdtr(degrees, -abs(correlation) * np.sqrt(degrees / unexplained)))
    return Trend(change=slope * (count - 1) / mean, p=p)
