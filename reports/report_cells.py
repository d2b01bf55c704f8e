"""What stands in the cells of a report's table, whatever it is rendered to."""

from __future__ import annotations

from reports.arm_report import ArmReport, ReportRow
from reports.quantities import Scale, count, percent


def row_cells(row: ReportRow, runs: int, scale: Scale) -> tuple[str, ...]:
    """Behind the label: self, total, share, its interval, samples."""
    return (
        scale.number(row.self_weight / runs),
        "" if row.total_weight is None else scale.number(row.total_weight / runs),
        percent(row.share),
        f"{100 * row.interval.low:.1f} to {100 * row.interval.high:.1f} %" if row.interval else "",
        count(row.samples),
    )


def other_lines(report: ArmReport) -> list[str]:
    """The heaviest functions that no rule names, each with a rule that would catch it."""
    lines = []
    for function in report.costs.other_functions:
        share = percent(function.weight / report.total if report.total else 0.0)
        lines.append(f"# {report.scale.quantity(function.weight / report.divisor)}, {share}: {function.name}")
        lines += function.suggested_rule.splitlines()
    return lines
