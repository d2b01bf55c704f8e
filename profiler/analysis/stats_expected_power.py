"""Power when the noise is known only from the spread that a few runs showed.

Taken for the true one, that spread is as often too small as too large, and being too hopeful costs more than being too careful
brings: an experiment planned so with 4 runs finds its effect in 65 to 70 % instead of 80 %.  So the power of the t test is
averaged over both spreads, the one that was seen and the one that the experiment to come will show, which for normal noise are
independent and follow chi distributions over the root of their degrees of freedom.  Experiments planned so keep their promise.
"""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import FloatColumn

# Gauss-Legendre nodes on the axis of probabilities; the power is exact to about 0.001.
_NODES = 16
_PLACES, _WEIGHTS = (column / 2 for column in np.polynomial.legendre.leggauss(_NODES))
# From here on the cube root of a chi-squared variable is normal to 5 digits (Wilson and Hilferty 1931), and fast.
_MANY_DEGREES = 40.0
_DOUBLINGS = 60
_HALVINGS = 24


def expected_power(effect: FloatColumn, seen: FloatColumn, degrees: FloatColumn, critical: FloatColumn) -> FloatColumn:
    """Probability that t with so many ``degrees`` of freedom exceeds ``critical``; all of one shape.

    ``effect``: over its standard error in that experiment, as estimated from a spread with ``seen`` degrees of freedom.
    """
    return _power(effect, _spread(seen), critical[..., np.newaxis] * _spread(degrees))


def effect_with_power(power: float, seen: FloatColumn, degrees: FloatColumn, critical: FloatColumn) -> FloatColumn:
    """The effect that has this ``expected_power``, in the same unit."""
    shown, limit = _spread(seen), critical[..., np.newaxis] * _spread(degrees)
    low, high = np.zeros(critical.shape), critical.copy()
    for _ in range(_DOUBLINGS):
        is_short = _power(high, shown, limit) < power
        if not is_short.any():
            break
        low, high = np.where(is_short, high, low), np.where(is_short, 2 * high, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_short = _power(middle, shown, limit) < power
        low, high = np.where(is_short, middle, low), np.where(is_short, high, middle)
    return high


def _power(effect: FloatColumn, shown: FloatColumn, limit: FloatColumn) -> FloatColumn:
    """``shown``, ``limit`` [..., nodes]: the spread seen over the true one, and the true effect that the other one asks for."""
    from scipy import special

    shift = effect[..., np.newaxis] * shown
    power: FloatColumn = special.ndtr(shift[..., :, np.newaxis] - limit[..., np.newaxis, :]) @ _WEIGHTS @ _WEIGHTS
    return power


def _spread(degrees: FloatColumn) -> FloatColumn:
    """[..., nodes] of the estimated over the true standard deviation; equal degrees are looked up once."""
    from scipy import special

    different, place = np.unique(degrees, return_inverse=True)
    column = different[:, np.newaxis]
    is_many = different >= _MANY_DEGREES
    part = 2 / (9 * column)
    squared = np.maximum(1 - part + special.ndtri(_PLACES + 0.5) * np.sqrt(part), 0.0) ** 3
    half = column[~is_many] / 2
    squared[~is_many] = special.gammaincinv(half, _PLACES + 0.5) / half
    nodes: FloatColumn = np.sqrt(squared)[place.reshape(degrees.shape)]
    return nodes
