"""A statistical interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """Two-sided 95 % interval, ends included."""

    low: float
    high: float
