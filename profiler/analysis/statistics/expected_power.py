"""Power when the noise is known only from the spread that a few runs showed.

Taken for the true one, that spread is as often too small as too large, and being too hopeful costs more than being too careful
brings: an experiment planned so with 4 runs finds its effect in 65 to 70 % instead of 80 %.  So the power of the t test is
averaged over both spreads, the one that was seen and the one that the experiment to come will show, which for normal noise are
independent and follow chi distributions over the root of their degrees of freedom.  Experiments planned so keep their promise.
"""

from __future__ import annotations

import numpy as np

from profiler.analysis.statistics.t_tests import satterthwaite, t_quantile
from profiler.model.arrays import FloatColumn
from profiler.model.quick_dataclass import dataclass

# Gauss-Legendre nodes on the axis of probabilities; the power is exact to about 0.001.
_NODES = 16
_PLACES, _WEIGHTS = (column / 2 for column in np.polynomial.legendre.leggauss(_NODES))
_FEW_PLACES, _FEW_WEIGHTS = (column / 2 for column in np.polynomial.legendre.leggauss(_NODES // 2))
# From here on the cube root of a chi-squared variable is normal to 5 digits (Wilson and Hilferty 1931), and fast.
_MANY_DEGREES = 40.0
_DOUBLINGS = 60
_HALVINGS = 24


@dataclass(frozen=True, slots=True)
class Limits:
    """``needed`` [..., nodes]: the effect, in true standard errors, from which on t is significant on average, for each spread
    that the experiment may show; ``weights`` [nodes] of the spreads."""

    needed: FloatColumn
    weights: FloatColumn


def limits_of(degrees: FloatColumn, critical: FloatColumn) -> Limits:
    """Of a t test with so many degrees of freedom."""
    return Limits(critical[..., np.newaxis] * _spread(degrees), _WEIGHTS)


def welch_limits(share: FloatColumn, runs: float, probability: float) -> Limits:
    """Of Welch's test with so many ``runs`` per arm: its degrees of freedom, and so its critical value, are those of the two
    spreads that are drawn.  ``share``: the baseline's part of both variances; ``probability``: of t below the critical
    value."""
    nodes, weights = _spread(np.full(share.shape, runs - 1.0), _FEW_PLACES) ** 2, _FEW_WEIGHTS
    first = (share[..., np.newaxis] * nodes)[..., :, np.newaxis]
    second = ((1 - share)[..., np.newaxis] * nodes)[..., np.newaxis, :]
    degrees = satterthwaite(first, second, int(runs), int(runs))
    needed = t_quantile(degrees, probability) * np.sqrt(first + second)
    return Limits(needed.reshape(*share.shape, -1), np.outer(weights, weights).ravel())


def expected_power(effect: FloatColumn, seen: FloatColumn, limits: Limits) -> FloatColumn:
    """Probability that t is significant with the effect's sign.

    ``effect``: over its standard error in that experiment, as estimated from a spread with ``seen`` degrees of freedom.
    """
    return _power(effect, _spread(seen), limits)


def effect_with_power(power: float, seen: FloatColumn, limits: Limits) -> FloatColumn:
    """The effect that has this ``expected_power``, in the same unit."""
    shown = _spread(seen)
    low, high = np.zeros(seen.shape), np.ones(seen.shape)
    for _ in range(_DOUBLINGS):
        is_short = _power(high, shown, limits) < power
        if not is_short.any():
            break
        low, high = np.where(is_short, high, low), np.where(is_short, 2 * high, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_short = _power(middle, shown, limits) < power
        low, high = np.where(is_short, middle, low), np.where(is_short, high, middle)
    return high


def _power(effect: FloatColumn, shown: FloatColumn, limits: Limits) -> FloatColumn:
    """``shown`` [..., nodes]: the spread seen over the true one."""
    from scipy import special

    shift = effect[..., np.newaxis] * shown
    above = special.ndtr(shift[..., :, np.newaxis] - limits.needed[..., np.newaxis, :])
    power: FloatColumn = above @ limits.weights @ _WEIGHTS
    return power


def _spread(degrees: FloatColumn, places: FloatColumn = _PLACES) -> FloatColumn:
    """[..., nodes] of the estimated over the true standard deviation; equal degrees are looked up once."""
    from scipy import special

    different, place = np.unique(degrees, return_inverse=True)
    column = different[:, np.newaxis]
    is_many = different >= _MANY_DEGREES
    part = 2 / (9 * column)
    squared = np.maximum(1 - part + special.ndtri(places + 0.5) * np.sqrt(part), 0.0) ** 3
    half = column[~is_many] / 2
    squared[~is_many] = special.gammaincinv(half, places + 0.5) / half
    nodes: FloatColumn = np.sqrt(squared)[place.reshape(degrees.shape)]
    return nodes
