"""Numbers as they are shown: one unit per column, and no more digits than the interval supports."""

from __future__ import annotations

import math
from collections.abc import Iterable

from profiler.model.interval import Interval
from profiler.model.quick_dataclass import dataclass

# A column takes the largest unit in which its largest value still has two digits before the point.
_TIME_UNITS = ((1e9, "s", 2), (1e6, "ms", 1), (1e3, "µs", 1))
_COUNT_UNITS = ((1e9, "G", 2), (1e6, "M", 1), (1e3, "k", 1))
_LARGEST_WRITTEN_OUT = 1e12


@dataclass(frozen=True, slots=True)
class Scale:
    """How the values of one column are printed: divided by ``divisor``, with ``decimals`` unless an interval says otherwise,
    in ``unit``."""

    unit: str
    divisor: float
    decimals: int

    def number(self, value: float, decimals: int | None = None) -> str:
        """Without unit; thousands separated by commas; never "-0"; in powers of ten where there would be too many digits.
        Negative ``decimals`` round before the point: -2 to hundreds."""
        if abs(value / self.divisor) >= _LARGEST_WRITTEN_OUT:
            return f"{value / self.divisor:.4g}"
        digits = self.decimals if decimals is None else decimals
        shown = value / self.divisor if digits >= 0 else round(value / self.divisor, digits)
        text = f"{shown:,.{max(0, digits)}f}"
        return text[1:] if text.startswith("-") and not text.strip("-0.,") else text

    def signed(self, value: float, decimals: int | None = None) -> str:
        """As ``number``, with "+" before what is shown as more than zero."""
        text = self.number(value, decimals)
        return text if text.startswith("-") or not text.strip("0.,") else "+" + text

    def quantity(self, value: float, decimals: int | None = None) -> str:
        """Number and unit."""
        return f"{self.number(value, decimals)} {self.unit}".rstrip()

    def decimals_within(self, interval: Interval | None) -> int:
        """Decimals that give the half width of ``interval`` two significant digits (at most 6; negative before the point)."""
        return self.decimals if interval is None else self.decimals_of((interval.high - interval.low) / 2)

    def decimals_of(self, half_width: float) -> int:
        """Decimals that give ``half_width``, not yet divided, two significant digits."""
        return _rounding(half_width / self.divisor, self.decimals)


def scale_for(values: Iterable[float], unit: str) -> Scale:
    """The scale for a column of ``values`` given in ``unit`` ("ns", an event's own unit, or "" for a bare number)."""
    shown = [value for value in values if math.isfinite(value)]
    largest = max((abs(value) for value in shown), default=0.0)
    for divisor, prefix, decimals in _TIME_UNITS if unit == "ns" else _COUNT_UNITS:
        if largest >= 10 * divisor and (unit == "ns" or unit):
            return Scale(prefix if unit == "ns" else f"{prefix} {unit}", divisor, decimals)
    is_whole = all(float(value).is_integer() for value in shown)
    return Scale(unit, 1.0, 0 if is_whole or largest >= 1000 else significant_decimals(largest / 100, 0))


def significant_decimals(half_width: float, otherwise: int) -> int:
    """Decimals, 0 or more, that show ``half_width`` with two significant digits; ``otherwise`` where it is 0 or not finite."""
    return max(0, _rounding(half_width, otherwise))


def _rounding(half_width: float, otherwise: int) -> int:
    if not half_width > 0 or not math.isfinite(half_width):
        return otherwise
    return min(6, 1 - math.floor(math.log10(half_width)))


def percent(fraction: float, decimals: int = 1) -> str:
    """0.067 as "6.7 %"."""
    text = f"{100 * fraction:.{decimals}f}"
    return ("0" + text[2:] if text.startswith("-0") and not text.strip("-0.") else text) + " %"


def probability(p: float | None) -> str:
    """A p value with two significant digits; "" where nothing was tested."""
    if p is None or not math.isfinite(p):
        return ""
    if p < 0.0001:
        return "<0.0001"
    return "1" if p >= 0.995 else f"{p:.{min(4, 1 - math.floor(math.log10(p)))}f}"


def count(number: int) -> str:
    """12345 as "12,345"."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """ "1 run", "3 runs"."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"
