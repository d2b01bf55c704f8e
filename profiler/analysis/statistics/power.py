"""What these runs could show: the smallest visible effect, and the runs that a given effect needs.

Both answer for one row of a family of m rows: "flagged" means p < 0.05 / m, the first and strictest step of Holm's procedure.
That the noise is known only from the runs that were made is allowed for (``expected_power``): of many experiments like
this one, each repeated with the effect that it named, 80 % flag it.

Which shape the noise has, so few runs do not show: the pilots that mislead are those without an outlier, and they look normal.
Planned as if noise were normal, effects of 80 % are found in 68 to 78 % where it is heavy-tailed or skewed.  So noise is taken
to be a little heavy-tailed, which puts normal noise above 80 % and the other kinds below it: ``promised_power``.

Sources: Browne 1995, Statistics in Medicine 14, and Julious and Owen 2006, Pharmaceutical Statistics 5 (sample sizes from the
variance of a pilot); Box 1953, Biometrika 40 (what kurtosis does to the spread of a variance).
"""

from __future__ import annotations

import numpy as np

from profiler.analysis.statistics.expected_power import effect_with_power, expected_power, limits_of, welch_limits
from profiler.analysis.statistics.t_tests import ALPHA, MIN_REPLICATES, satterthwaite, t_quantile
from profiler.model.arrays import BoolColumn, FloatColumn, Int64Column
from profiler.model.quick_dataclass import dataclass

POWER = 0.80
# In simulations, with noise that is normal, or t with 3 degrees of freedom or exponential.
_NORMAL_POWER = 0.83
_OTHER_POWER_PAIRED = 0.78
_OTHER_POWER_APART = 0.77
# Of the difference of two replicates: 0 for normal noise, 3 for exponential, without bound for t with 3 degrees of freedom.
# Values in between, with which the power of the three kinds lies around ``POWER``.
_KURTOSIS_PAIRED = 1.0
_KURTOSIS_APART = 0.7
_EXACTLY_KNOWN = 10**9
# With so many runs half of the difference between two arms' variances is taken for real.
_CHANCE_RUNS = 10.0
MOST_RUNS = 100_000


@dataclass(frozen=True, slots=True)
class NoiseVariance:
    """Variance of one replicate.  Paired: ``first`` is that of the differences and ``second`` is None.  Otherwise those of the
    baseline and of the candidate.  ``seen``: replicates per arm that showed it, at least 2; 0 = known
    exactly."""

    first: FloatColumn
    second: FloatColumn | None
    seen: int = 0

    @property
    def variance(self) -> FloatColumn:
        """Of the difference of one replicate of either arm."""
        return self.first if self.second is None else self.first + self.second

    def degrees(self, runs: FloatColumn) -> FloatColumn:
        """Of freedom of a test with so many ``runs`` per arm, at least 1."""
        per_run = 1.0 if self.second is None else satterthwaite(self.first, self.second, 2, 2)
        degrees: FloatColumn = np.maximum(per_run * (runs - 1.0), 1.0)
        return degrees

    def degrees_seen(self) -> FloatColumn:
        """Of freedom of the variances themselves, with Satterthwaite's estimate corrected for few runs, whose two variances
        differ by chance; more than matter where they are known exactly."""
        own = float(self.seen or _EXACTLY_KNOWN) - 1.0
        if self.second is None:
            return self.of_spread(np.full(self.first.shape, max(own, 1.0)))
        per_run = satterthwaite(self.first, self.second, 2, 2)
        return self.of_spread(np.clip((own + 2.0) * per_run - 2.0, max(own, 1.0), max(2.0 * own, 1.0)))

    def of_spread(self, degrees: FloatColumn) -> FloatColumn:
        """Of the chi-squared variable that scatters as a variance does whose normal noise had ``degrees``, at least 1: over the
        true one squared, the variance of a variance is 2 / degrees + (excess kurtosis) / (values that showed it)."""
        if not self.seen:
            return degrees
        kurtosis = _KURTOSIS_PAIRED if self.second is None else _KURTOSIS_APART
        equivalent: FloatColumn = np.maximum(1.0 / (1.0 / degrees + kurtosis / (2.0 * self.seen)), 1.0)
        return equivalent


def promised_power(is_paired: bool, is_normal: bool) -> float:
    """What an effect of ``POWER`` has, within 5 points, where noise is normal, else where it is heavy-tailed or skewed."""
    if is_normal:
        return _NORMAL_POWER
    return _OTHER_POWER_PAIRED if is_paired else _OTHER_POWER_APART


def visible_effect(standard_error: FloatColumn, degrees: FloatColumn, noise: NoiseVariance, family: int) -> FloatColumn:
    """Size of the effect that an experiment like this one flags with 80 % probability, in the unit of ``standard_error``, which
    ``noise`` made."""
    different, place = np.unique(degrees, return_inverse=True)
    sizes = effect_with_power(POWER, noise.of_spread(different), limits_of(different, _critical(different, family)))
    effect: FloatColumn = sizes[place].reshape(degrees.shape) * standard_error
    return effect


def planned_effect(noise: NoiseVariance, runs: Int64Column, family: int) -> FloatColumn:
    """[rows, len(runs)]: the effect that so many runs per arm flag with 80 % probability."""
    columns = [_planned_size(noise, count, family) * np.sqrt(noise.variance / count) for count in runs.tolist()]
    effect: FloatColumn = np.stack(columns, axis=-1)
    return effect


def _planned_size(noise: NoiseVariance, runs: int, family: int) -> FloatColumn:
    """In standard errors."""
    seen = noise.degrees_seen()
    if noise.second is not None:
        variance = noise.variance
        share = np.where(variance > 0, noise.first / np.where(variance > 0, variance, 1.0), 0.5)
        if noise.seen:
            # Two variances of few runs differ by chance; taken as they are they ask for too large an effect.
            share = 0.5 + (share - 0.5) * noise.seen / (noise.seen + _CHANCE_RUNS)
        return effect_with_power(POWER, seen, welch_limits(share, float(runs), 1 - ALPHA / family / 2))
    one = seen[:1]
    degrees = np.full(one.shape, max(runs - 1.0, 1.0))
    # Paired rows all have the same degrees of freedom.
    return np.broadcast_to(effect_with_power(POWER, one, limits_of(degrees, _critical(degrees, family))), seen.shape)


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
    degrees = noise.degrees(runs.astype(np.float64))
    error: FloatColumn = np.sqrt(noise.variance / runs)
    sizes = np.abs(effect) / np.where(error > 0, error, 1.0)
    power = expected_power(sizes, noise.degrees_seen(), limits_of(degrees, _critical(degrees, family)))
    is_enough: BoolColumn = (error == 0) | (power >= POWER)
    return is_enough


def _critical(degrees: FloatColumn, family: int) -> FloatColumn:
    return t_quantile(degrees, 1 - ALPHA / family / 2)
