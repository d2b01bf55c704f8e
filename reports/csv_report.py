"""Tables as CSV (RFC 4180 quoting, "\n" line ends, UTF-8): weights unscaled in the event's unit, empty where unknown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from profiler.model.comparison import Comparison, ComparisonRow
from profiler.model.interval import Interval
from reports.arm_report import ArmReport, report_rows
from reports.plain_text import valid_utf8

Cell = str | int | float | None

REPORT_COLUMNS = ("name", "label", "self", "total", "unit", "share", "share_low", "share_high", "samples", "runs")
COMPARISON_COLUMNS = (
    "candidate_name",
    "kind",
    "name",
    "label",
    "unit",
    "baseline",
    "candidate",
    "delta",
    "delta_low",
    "delta_high",
    "relative",
    "relative_low",
    "relative_high",
    "p",
    "p_adjusted",
    "verdict",
    "sigma",
    "baseline_median",
    "baseline_minimum",
    "baseline_maximum",
    "candidate_median",
    "candidate_minimum",
    "candidate_maximum",
    "visible_effect",
    "runs_needed",
    "note",
)


def render_report_csv(report: ArmReport) -> str:
    """One line per row; weights and samples are sums over the runs."""
    return _text(
        REPORT_COLUMNS,
        (
            (
                row.name,
                row.label,
                row.self_weight,
                row.total_weight,
                report.costs.unit,
                row.share,
                *_ends(row.interval),
                row.samples,
                report.runs,
            )
            for row in report_rows(report, with_empty_other=False)
        ),
    )


def render_comparison_csv(*comparisons: Comparison) -> str:
    """``kind`` is "row", "total" or "metric"; one line per candidate and row, comparison after comparison.  No total where
    there is no profile: it would be a 0 that nobody measured."""
    lines: list[Sequence[Cell]] = []
    for comparison in comparisons:
        for candidate in comparison.candidates:
            lines += [(candidate.name, "row", *_comparison_cells(row, comparison.unit)) for row in candidate.rows]
            if candidate.is_profiled:
                lines.append((candidate.name, "total", *_comparison_cells(candidate.total, comparison.unit)))
            lines += [(candidate.name, "metric", *_comparison_cells(metric.row, metric.unit)) for metric in candidate.metrics]
    return _text(COMPARISON_COLUMNS, lines)


def _comparison_cells(row: ComparisonRow, unit: str) -> tuple[Cell, ...]:
    return (
        row.name,
        row.label,
        unit,
        row.baseline.mean,
        row.candidate.mean,
        row.delta,
        *_ends(row.delta_interval),
        row.relative,
        *_ends(row.relative_interval),
        row.p,
        row.p_adjusted,
        row.verdict.value,
        row.sigma,
        row.baseline.median,
        row.baseline.minimum,
        row.baseline.maximum,
        row.candidate.median,
        row.candidate.minimum,
        row.candidate.maximum,
        row.visible_effect,
        row.runs_needed,
        row.note,
    )


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)


def _text(header: Sequence[str], lines: Iterable[Sequence[Cell]]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(header)
    for line in lines:
        writer.writerow([_shown(cell) for cell in line])
    return target.getvalue()


def _shown(cell: Cell) -> Cell:
    """Whole numbers without a point; nothing for what is not a finite number."""
    if isinstance(cell, str):
        return valid_utf8(cell)
    if isinstance(cell, float):
        return None if not math.isfinite(cell) else int(cell) if cell.is_integer() else cell
    return cell
