"""A statistical interval."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """Two-sided 95 % interval, ends included."""

    low: float
    high: float
