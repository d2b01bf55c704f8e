"""``--fail-on [ROW:]PCT``: a limit for how much slower a candidate may get."""

from __future__ import annotations

import argparse
import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from profiler.errors import UsageError
from profiler.model.comparison import CandidateComparison, Comparison, ComparisonRow

TOTAL = "total"
METRIC = "metric:"
EXIT_LIMIT_EXCEEDED = 3
EXIT_NOT_CHECKED = 2


@dataclass(frozen=True, slots=True)
class Limit:
    """``row``: the name of a row or metric, "total" for the whole; ``fraction``: of the baseline."""

    row: str
    fraction: float


def parse_limit(text: str) -> Limit:
    """Argument type: "5", "5%", "memmove:2.5"; the last colon separates, so names may hold colons."""
    row, colon, number = text.rpartition(":")
    try:
        percentage = float(number.strip().removesuffix("%"))
    except ValueError:
        percentage = math.nan
    if not (math.isfinite(percentage) and percentage >= 0) or (colon and not row):
        raise argparse.ArgumentTypeError(f"{text!r} is not [ROW:]PCT, a percentage of the baseline such as 5 or memmove:2.5")
    return Limit(row or TOTAL, percentage / 100)


@dataclass(frozen=True, slots=True)
class CheckedLimits:
    """One line for every limit that was broken, and for every one that could not be checked."""

    broken: tuple[str, ...]
    unchecked: tuple[str, ...]

    def tell(self, stream: TextIO) -> int:
        """Writes the lines; the exit code that they mean."""
        for line in (*self.unchecked, *self.broken):
            print(f"slotscope: {line}", file=stream)
        if self.broken:
            return EXIT_LIMIT_EXCEEDED
        return EXIT_NOT_CHECKED if self.unchecked else 0


def check_limits(comparison: Comparison, limits: Sequence[Limit]) -> CheckedLimits:
    """``UsageError`` for a row that no candidate has."""
    return CheckedLimits(tuple(exceeded(comparison, limits)), tuple(undecidable(comparison, limits)))


def exceeded(comparison: Comparison, limits: Sequence[Limit]) -> list[str]:
    """Limits that a candidate broke, its whole relative interval lying beyond: one line each.  ``UsageError`` for a row that
    no candidate has."""
    found = []
    for limit in limits:
        rows = [(candidate, row) for candidate in comparison.candidates if (row := _row(candidate, limit.row)) is not None]
        if not rows:
            raise UsageError(_unknown_row(comparison, limit.row))
        found += [_message(candidate, row, limit) for candidate, row in rows if _is_beyond(row, limit)]
    return found


def undecidable(comparison: Comparison, limits: Sequence[Limit]) -> list[str]:
    """Limits that could not be checked for a candidate, because it lacks the row or the row has no interval: one line each."""
    found = []
    for limit in limits:
        for candidate in comparison.candidates:
            row = _row(candidate, limit.row)
            if row is None:
                found.append(f"--fail-on {limit.row}: {candidate.name} has no such row: not checked")
            elif row.relative_interval is None:
                reason = "has no interval (needs 2 runs per arm and a baseline above 0)"
                found.append(f"--fail-on {limit.row}: {candidate.name} {reason}: not checked")
    return found


def _row(candidate: CandidateComparison, name: str) -> ComparisonRow | None:
    if name == TOTAL:
        return candidate.total
    metrics = [metric.row for metric in candidate.metrics]
    found = next((row for row in (*candidate.rows, *metrics) if name in (row.name, row.label)), None)
    if found is None and name.startswith(METRIC):
        return next((row for row in metrics if row.name == name.removeprefix(METRIC)), None)
    return found


def _is_beyond(row: ComparisonRow, limit: Limit) -> bool:
    return row.relative_interval is not None and row.relative_interval.low > limit.fraction


def _message(candidate: CandidateComparison, row: ComparisonRow, limit: Limit) -> str:
    low = row.relative_interval.low if row.relative_interval else math.nan
    return f"{candidate.name}: {limit.row} rose by at least {100 * low:.2f} %, more than {100 * limit.fraction:g} %"


def _unknown_row(comparison: Comparison, name: str) -> str:
    known = sorted(
        {row.name for candidate in comparison.candidates for row in candidate.rows}
        | {metric.row.name for candidate in comparison.candidates for metric in candidate.metrics}
    )
    nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known[:5]
    hint = f"; nearest: {', '.join(nearest)}" if nearest else ""
    return f"--fail-on: no row or metric {name!r} in this comparison{hint}"
