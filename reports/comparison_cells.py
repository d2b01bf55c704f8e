"""A comparison's rows as cells of text, the same for every format that has all columns; cells are not escaped."""

from __future__ import annotations

from profiler.model.comparison import ComparisonRow
from reports.comparison_report import RowsSum
from reports.quantities import Scale, probability
from reports.wording import Terms, delta_text, interval_text, relative_change, verdict_text


def row_cells(row: ComparisonRow, terms: Terms) -> tuple[str, ...]:
    """Label, baseline, candidate, difference, its interval, relative change, adjusted p, verdict."""
    scale = terms.scale
    return (
        row.label,
        scale.number(row.baseline.mean),
        scale.number(row.candidate.mean),
        delta_text(row, scale),
        interval_text(row.delta_interval, scale),
        relative_change(row),
        probability(row.p_adjusted),
        verdict_text(row, terms),
    )


def rest_cells(rest: RowsSum, scale: Scale) -> tuple[str, ...]:
    """The same columns of rows that were added up, of which nothing was tested."""
    return (rest.label, scale.number(rest.baseline), scale.number(rest.candidate), scale.signed(rest.delta), "", "", "", "")
