"""``--fail-on [ROW:]PCT``: a limit for how much slower a candidate may get."""

from __future__ import annotations

import argparse
import difflib
import math
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TextIO

from profiler.errors import UsageError
from profiler.model.comparison import CandidateComparison, Comparison, ComparisonRow
from profiler.model.quick_dataclass import dataclass

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


def check_limits(comparison: Comparison, limits: Sequence[Limit], better_higher: Set[str] = frozenset()) -> CheckedLimits:
    """``better_higher``: metrics of which more is better, such as requests per second: they break a limit by falling.
    ``UsageError`` for a row that no candidate has."""
    broken = exceeded(comparison, limits, better_higher)
    return CheckedLimits(tuple(broken), tuple(undecidable(comparison, limits)))


def check_conditions(
    comparisons: Sequence[Comparison], limits: Sequence[Limit], better_higher: Set[str] = frozenset()
) -> CheckedLimits:
    """Each limit under every condition that has its row: what one load of several reports, the others need not."""
    checked = []
    for limit in limits:
        having = [found for found in comparisons if any(_row(candidate, limit.row) for candidate in found.candidates)]
        under = having or comparisons
        candidates = tuple(candidate for found in under for candidate in found.candidates)
        checked.append(check_limits(replace(under[0], candidates=candidates), [limit], better_higher))
    return CheckedLimits(
        tuple(line for found in checked for line in found.broken), tuple(line for found in checked for line in found.unchecked)
    )


def exceeded(comparison: Comparison, limits: Sequence[Limit], better_higher: Set[str] = frozenset()) -> list[str]:
    """Limits that a candidate broke, its whole relative interval lying beyond: one line each.  ``UsageError`` for a row that
    no candidate has."""
    found = []
    for limit in limits:
        rows = [(candidate, row) for candidate in comparison.candidates if (row := _row(candidate, limit.row)) is not None]
        if not rows:
            raise UsageError(_unknown_row(comparison, limit.row))
        for candidate, row in rows:
            falls = row.name in better_higher and any(row is metric.row for metric in candidate.metrics)
            worse = _least_worsening(row, falls)
            if worse is not None and worse > limit.fraction:
                moved = "fell" if falls else "rose"
                change = f"{moved} by at least {100 * worse:.2f} %, more than {100 * limit.fraction:g} %"
                found.append(f"{candidate.name}: {limit.row} {change}")
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
                found.append(f"--fail-on {limit.row}: {candidate.name} {_no_interval(candidate, row)}: not checked")
    return found


def _no_interval(candidate: CandidateComparison, row: ComparisonRow) -> str:
    if row is candidate.total and not candidate.is_profiled:
        names = [metric.row.name for metric in candidate.metrics]
        return f"has no profile (a time or metric can be named, such as {names[-1]}:5)" if names else "has no profile"
    return "has no interval (needs 2 runs per arm and a baseline above 0)"


def _row(candidate: CandidateComparison, name: str) -> ComparisonRow | None:
    if name == TOTAL:
        return candidate.total
    metrics = [metric.row for metric in candidate.metrics]
    found = next((row for row in (*candidate.rows, *metrics) if name in (row.name, row.label)), None)
    if found is None and name.startswith(METRIC):
        return next((row for row in metrics if row.name == name.removeprefix(METRIC)), None)
    return found


def _least_worsening(row: ComparisonRow, falls: bool) -> float | None:
    """The end of the interval that is better for the candidate, a fraction of the baseline; above 0 is worse."""
    if row.relative_interval is None:
        return None
    return -row.relative_interval.high if falls else row.relative_interval.low


def _unknown_row(comparison: Comparison, name: str) -> str:
    known = sorted(
        {row.name for candidate in comparison.candidates for row in candidate.rows}
        | {metric.row.name for candidate in comparison.candidates for metric in candidate.metrics}
    )
    nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known[:5]
    hint = f"; nearest: {', '.join(nearest)}" if nearest else ""
    return f"--fail-on: no row or metric {name!r} in this comparison{hint}"
