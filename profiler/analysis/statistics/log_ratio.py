"""Ratios of means on the log scale, where independent ratios multiply by adding.

The variance of the logarithm of a ratio of means is taken to first order (the delta method): that of c / mean(c) - b / mean(b).
Good while either mean is many standard errors away from 0.
"""

from __future__ import annotations

import numpy as np

from profiler.analysis.statistics.t_tests import TTest, satterthwaite, t_test
from profiler.model.arrays import BoolColumn, FloatColumn
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LogRatio:
    """Per row: log(candidate / baseline), its squared standard error and the degrees of freedom of that.  ``is_defined``: both
    means are positive; elsewhere everything is 0."""

    value: FloatColumn
    squared_error: FloatColumn
    degrees: FloatColumn
    is_defined: BoolColumn


def log_ratio(baseline: FloatColumn, candidate: FloatColumn, is_paired: bool) -> LogRatio:
    """Over the last axis (replicates, at least 2; of paired arms the same blocks in both)."""
    base_mean, cand_mean = baseline.mean(axis=-1), candidate.mean(axis=-1)
    is_defined: BoolColumn = (base_mean > 0) & (cand_mean > 0)
    safe_base, safe_cand = (np.where(is_defined, mean, 1.0) for mean in (base_mean, cand_mean))
    base, cand = baseline / safe_base[..., np.newaxis], candidate / safe_cand[..., np.newaxis]
    counts = baseline.shape[-1], candidate.shape[-1]
    if is_paired:
        squared = (cand - base).var(axis=-1, ddof=1) / counts[0]
        degrees = np.full(squared.shape, counts[0] - 1.0)
    else:
        parts = base.var(axis=-1, ddof=1) / counts[0], cand.var(axis=-1, ddof=1) / counts[1]
        squared, degrees = parts[0] + parts[1], satterthwaite(*parts, *counts)
    value = np.where(is_defined, np.log(safe_cand / safe_base), 0.0)
    return LogRatio(value, np.where(is_defined, squared, 0.0), degrees, is_defined)


def product_test(first: LogRatio, second: LogRatio) -> TTest:
    """The logarithm of the product of two independent ratios against 0: errors add, Satterthwaite's degrees of freedom."""
    squared = first.squared_error + second.squared_error
    weight = first.squared_error**2 / first.degrees + second.squared_error**2 / second.degrees
    fewest = np.minimum(first.degrees, second.degrees)
    degrees = np.where(weight > 0, squared**2 / np.where(weight > 0, weight, 1.0), fewest)
    return t_test(first.value + second.value, np.sqrt(squared), degrees, np.zeros(squared.shape, np.int64), squared == 0)
