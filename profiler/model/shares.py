"""Intervals for the shares of a cost table's rows."""

from __future__ import annotations

from profiler.model.interval import Interval
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ShareIntervals:
    """``intervals``: per row of the table of ``dimension``, same order, the 95 % interval of its share of the total, within
    [0, 1]; empty where nothing was sampled.  ``method`` says in words what the interval allows for."""

    dimension: str
    method: str
    intervals: tuple[Interval, ...]
