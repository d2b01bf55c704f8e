"""What these runs could show: the smallest visible effect, and the runs that a given effect needs.

Both answer for one row of a family of m rows: "flagged" means p < 0.05 / m, the first and strictest step of Holm's procedure.
The power of a t test follows the noncentral t distribution (Student's t of a shifted mean); the spread that the runs showed
stands for the true one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.stats import ALPHA, MIN_REPLICATES, satterthwaite, t_quantile
from profiler.model.arrays import BoolColumn, FloatColumn, Int64Column

POWER = 0.80
MOST_RUNS = 100_000


@dataclass(frozen=True, slots=True)
class NoiseVariance:
    """Variance of one replicate.  Paired: ``first`` is that of the differences and ``second`` is None.  Otherwise those of the
    baseline and of the candidate."""

    first: FloatColumn
    second: FloatColumn | None


def visible_effect(standard_error: FloatColumn, degrees: FloatColumn, family: int) -> FloatColumn:
    """Size of the effect that such runs flag with 80 % probability, in the unit of ``standard_error``.

    Standard errors of few runs are too small on average; divided by c4, their mean over the true value for normal noise
    (tabulated for control charts since Shewhart), the promise is kept on average.
    """
    from scipy import special

    noncentrality: FloatColumn = special.nctdtrinc(degrees, 1 - POWER, _critical(degrees, family))
    return noncentrality * standard_error / mean_of_deviation(degrees)


def planned_effect(noise: NoiseVariance, seen: int, runs: Int64Column, family: int) -> FloatColumn:
    """[rows, len(runs)]: the effect that so many runs per arm flag with 80 % probability, for noise that ``seen`` runs per arm
    showed."""
    from scipy import special

    count = runs.astype(np.float64)
    if noise.second is None:
        variance, per_run = noise.first, np.ones(noise.first.shape)
    else:
        variance, per_run = noise.first + noise.second, satterthwaite(noise.first, noise.second, 2, 2)
    degrees = np.maximum(per_run[..., np.newaxis] * (count - 1.0), 1.0)
    noncentrality: FloatColumn = special.nctdtrinc(degrees, 1 - POWER, _critical(degrees, family))
    deviation = np.sqrt(variance) / mean_of_deviation(np.maximum(per_run * (seen - 1.0), 1.0))
    effect: FloatColumn = noncentrality * deviation[..., np.newaxis] / np.sqrt(count)
    return effect


def mean_of_deviation(degrees: FloatColumn) -> FloatColumn:
    """c4: expected sample standard deviation over the true one, for normal noise; 0.94 for five values."""
    from scipy import special

    logarithm: FloatColumn = special.gammaln((degrees + 1) / 2) - special.gammaln(degrees / 2)
    mean: FloatColumn = np.sqrt(2 / degrees) * np.exp(logarithm)
    return mean


def power_of(noncentrality: FloatColumn, degrees: FloatColumn, family: int) -> FloatColumn:
    """Probability that an effect of so many standard errors is flagged with its own sign."""
    from scipy import special

    critical = _critical(degrees, family)
    # Far beyond the critical value the power is 1 but for rounding, and the distribution's series fail.
    shift = np.minimum(noncentrality, 3 * critical + 20)
    missed: FloatColumn = np.nan_to_num(special.nctdtr(degrees, shift, critical), nan=0.0)
    return 1 - missed


def runs_needed(effect: FloatColumn, noise: NoiseVariance, family: int) -> Int64Column:
    """Runs per arm with which ``effect`` is flagged with 80 % probability; 0 where more than ``MOST_RUNS``, or none, would do.

    ``effect``: sizes, in the unit whose square ``noise`` is.  At least ``MIN_REPLICATES``.
    """
    low = np.full(effect.shape, MIN_REPLICATES, dtype=np.int64)
    high = np.full(effect.shape, MOST_RUNS, dtype=np.int64)
    is_possible = (np.abs(effect) > 0) & _is_enough(effect, noise, high, family)
    while (low < high).any():
        middle = (low + high) // 2
        is_enough = _is_enough(effect, noise, middle, family)
        high = np.where(is_enough, middle, high)
        low = np.where(is_enough, low, np.minimum(middle + 1, high))
    return np.where(is_possible, high, 0)


def _is_enough(effect: FloatColumn, noise: NoiseVariance, runs: Int64Column, family: int) -> BoolColumn:
    if noise.second is None:
        variance = noise.first
        degrees: FloatColumn = runs.astype(np.float64) - 1.0
    else:
        variance = noise.first + noise.second
        degrees = satterthwaite(noise.first, noise.second, 2, 2) * (runs - 1.0)
    error: FloatColumn = np.sqrt(variance / runs)
    sizes = np.abs(effect) / np.where(error > 0, error, 1.0)
    is_enough: BoolColumn = (error == 0) | (power_of(sizes, degrees, family) >= POWER)
    return is_enough


def _critical(degrees: FloatColumn, family: int) -> FloatColumn:
    return t_quantile(degrees, 1 - ALPHA / family / 2)
