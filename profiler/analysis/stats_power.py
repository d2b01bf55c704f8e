"""What these runs could show: the smallest visible effect, and the runs that a given effect needs.

Both answer for one row of a family of m rows: "flagged" means p < 0.05 / m, the first and strictest step of Holm's procedure.
The power of a t test follows the noncentral t distribution (Student's t of a shifted mean); the spread that the runs showed is
taken for the true one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.stats import ALPHA, MIN_REPLICATES, satterthwaite, t_quantile
from profiler.model.arrays import BoolColumn, FloatColumn, Int64Column

POWER = 0.80
MOST_RUNS = 100_000

# An effect of so many standard errors is as good as certain to be seen, and the distribution's series are slow beyond it.
_CERTAIN = 1000.0


@dataclass(frozen=True, slots=True)
class NoiseVariance:
    """Variance of one replicate.  Paired: ``first`` is that of the differences and ``second`` is None.  Otherwise those of the
    baseline and of the candidate."""

    first: FloatColumn
    second: FloatColumn | None


def visible_effect(standard_error: FloatColumn, degrees: FloatColumn, family: int) -> FloatColumn:
    """Size of the effect that such runs flag with 80 % probability, in the unit of ``standard_error``."""
    from scipy import special

    critical = t_quantile(degrees, 1 - ALPHA / family / 2)
    noncentrality: FloatColumn = special.nctdtrinc(degrees, 1 - POWER, critical)
    return noncentrality * standard_error


def power_of(noncentrality: FloatColumn, degrees: FloatColumn, family: int) -> FloatColumn:
    """Probability that an effect of so many standard errors is flagged with its own sign."""
    from scipy import special

    power: FloatColumn = 1 - special.nctdtr(degrees, noncentrality, t_quantile(degrees, 1 - ALPHA / family / 2))
    return power


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
    noncentrality: FloatColumn = np.where(error > 0, np.minimum(sizes, _CERTAIN), _CERTAIN)
    is_enough: BoolColumn = power_of(noncentrality, degrees, family) >= POWER
    return is_enough
