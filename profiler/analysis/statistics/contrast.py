"""Sums and differences of several arms' means, such as a difference of differences.

Welch's test for more than two groups in one contrast, with Satterthwaite's degrees of freedom (Satterthwaite 1946, Biometrics
Bulletin 2): a contrast's squared standard error is the sum of its groups', each with its own replicates - 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.statistics.t_tests import TTest, common_exponent, moments, t_test
from profiler.model.arrays import FloatColumn
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """``values`` [..., replicates] of one group, at least 2, and its factor in the sum."""

    values: FloatColumn
    factor: float


def contrast(terms: Sequence[Term]) -> TTest:
    """The sum of factor x mean over independent groups, tested against 0; leading axes are common to all terms."""
    exponent = common_exponent(*(term.values for term in terms))
    estimate = np.zeros(exponent.shape)
    squared = np.zeros(exponent.shape)
    spread = np.zeros(exponent.shape)
    fewest = min(term.values.shape[-1] for term in terms) - 1.0
    for term in terms:
        count = term.values.shape[-1]
        found = moments(term.values, exponent)
        part = term.factor**2 * found.variance / count
        estimate += term.factor * found.mean
        squared += part
        spread += part**2 / (count - 1)
    degrees = np.where(spread > 0, squared**2 / np.where(spread > 0, spread, 1.0), fewest)
    return t_test(estimate, np.sqrt(squared), degrees, exponent, squared == 0)
