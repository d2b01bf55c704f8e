"""How far the shares of a cost table can be trusted: 95 % intervals.

One run can only speak of its own sampling error: Wilson's score interval (E. B. Wilson, JASA 22, 1927), with the number of
samples as the number of trials.  Where samples weigh differently (several periods, a period that adapts) they are worth fewer:
as many as would give the share the variance that it has, (sum w)^2 / (sum w^2) where weight and row have nothing to do with
each other (L. Kish, Survey Sampling, 1965; E. L. Korn and B. I. Graubard, Survey Methodology 24, 1998).  Several runs show how
much runs differ, sampling included: the t interval of a ratio estimate (W. G. Cochran, Sampling Techniques, section 6.5), which
for runs of equal length is the ordinary t interval of their shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from profiler.analysis.statistics.spread import sampling_variance
from profiler.model.arrays import FloatColumn, Int64Column
from profiler.model.costs import CostTable
from profiler.model.interval import Interval
from profiler.model.shares import ShareIntervals

SAMPLING = "95 % sampling interval (Wilson)"
RUN_TO_RUN = "95 % t interval over runs"
PROCESS_TO_PROCESS = "95 % t interval over processes"
NO_SAMPLES = "no samples"

_NORMAL_QUANTILE = 1.959963984540054  # of probability 0.975


def share_intervals(table: CostTable, processes: Sequence[Sequence[int]] = ()) -> ShareIntervals:
    """Intervals around (self weight of the row) / (total), both summed over the runs; one per row, in table order.

    ``processes``: for runs that are windows, the columns of each process.  Its windows share its luck, and are one replicate.
    """
    if processes:
        table = _by_process(table, processes)
    runs = len(table.total)
    total = int(table.total.sum())
    if total <= 0:
        return ShareIntervals(table.dimension, NO_SAMPLES, ())
    share = table.self_weight.sum(axis=1) / total
    if runs == 1:
        half_width, centre = _wilson(share, _effective_samples(share, table))
        return ShareIntervals(table.dimension, SAMPLING, _around(share, centre - half_width, centre + half_width))
    half_width = _ratio_half_width(share, table.self_weight, table.total)
    method = PROCESS_TO_PROCESS if processes else RUN_TO_RUN
    return ShareIntervals(table.dimension, method, _around(share, share - half_width, share + half_width))


def _by_process(table: CostTable, processes: Sequence[Sequence[int]]) -> CostTable:
    """The windows of each process as one column."""

    def summed(values: Int64Column) -> Int64Column:
        return np.stack([values[..., list(columns)].sum(axis=-1) for columns in processes], axis=-1)

    return replace(
        table,
        self_weight=summed(table.self_weight),
        total_weight=summed(table.total_weight),
        self_samples=summed(table.self_samples),
        self_squares=np.stack([table.self_squares[:, list(columns)].sum(axis=1) for columns in processes], axis=-1),
        total=summed(table.total),
    )


def _effective_samples(share: FloatColumn, table: CostTable) -> FloatColumn:
    """Per row: samples of equal weight that would leave its share as uncertain; the number of samples where all are equal."""
    total = float(table.total[0])
    variance = sampling_variance(table.self_weight.astype(np.float64), table.self_squares, table.total.astype(np.float64))[:, 0]
    of_all = total**2 / float(table.self_squares.sum())
    own = share * (1.0 - share) * total**2 / np.where(variance > 0, variance, 1.0)
    return np.where((variance > 0) & (own > 0), own, of_all)


def _wilson(share: FloatColumn, samples: FloatColumn) -> tuple[FloatColumn, FloatColumn]:
    """(half width, centre) per row; ``samples``: what stands behind the whole table, as far as the row is concerned."""
    z_squared = _NORMAL_QUANTILE**2
    scale = 1.0 / (1.0 + z_squared / samples)
    centre = (share + z_squared / (2.0 * samples)) * scale
    half_width = _NORMAL_QUANTILE * scale * np.sqrt(share * (1.0 - share) / samples + z_squared / (4.0 * samples**2))
    return half_width, centre


def _ratio_half_width(share: FloatColumn, self_weight: Int64Column, total: Int64Column) -> FloatColumn:
    from scipy.special import stdtrit

    runs = len(total)
    residual = self_weight - share[:, None] * total[None, :]
    standard_error = np.sqrt((residual**2).sum(axis=1) / (runs * (runs - 1))) / total.mean()
    return np.asarray(float(stdtrit(runs - 1, 0.975)) * standard_error, np.float64)


def _around(share: FloatColumn, low: FloatColumn, high: FloatColumn) -> tuple[Interval, ...]:
    """From 0 to 1 at most; the shares of nothing and of everything are ends of their own intervals, which rounding misses."""
    lows, highs = np.clip(low, 0.0, share), np.clip(high, share, 1.0)
    return tuple(Interval(a, b) for a, b in zip(lows.tolist(), highs.tolist(), strict=True))
