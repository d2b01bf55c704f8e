"""Where the time of one arm went, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from reports.arm_lines import breakdown_lines, header_lines, unresolved_lines, warning_line
from reports.arm_report import ArmReport, ReportRow, report_rows
from reports.plain_text import printable
from reports.quantities import Scale, count, percent
from reports.terminal_table import PATH_DIMENSIONS, Column, TerminalStyle, render_table, wrap


def render_report(report: ArmReport, style: TerminalStyle) -> str:
    """The whole report as text that ends with a newline; no line is wider than the style says, long words apart."""
    sections = [
        [wrap(line, style) for line in header_lines(report)],
        [wrap(line.strip(), style, "  " if line.startswith(" ") else "") for line in unresolved_lines(report.costs)],
        [_table(report, report_rows(report), style)],
        [wrap(line, style) for line in breakdown_lines(report)],
        _other_section(report, style),
        [wrap(f"warning {warning_line(warning)}", style) for warning in report.costs.warnings],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _table(report: ArmReport, rows: Sequence[ReportRow], style: TerminalStyle) -> str:
    runs, scale = report.divisor, report.scale
    total = report.total / runs
    has_totals = any(row.total_weight not in (row.self_weight, None) for row in rows)
    per_run = f"{scale.unit}/run" if report.runs > 1 else scale.unit
    columns = [
        Column(
            report.dimension,
            (*(row.label for row in rows), "total"),
            is_text=True,
            is_path=report.dimension in PATH_DIMENSIONS,
            styles=_styles(rows),
            short_cells=(*(row.name for row in rows), "total"),
        ),
        Column(f"self {per_run}" if has_totals else per_run, _numbers(rows, runs, scale, total)),
        Column("share", (*(percent(row.share) for row in rows), percent(1.0 if report.total else 0.0)), keep=90),
        Column(f"total {per_run}", _totals(rows, runs, scale) if has_totals else ("",) * (len(rows) + 1), keep=80),
        Column("95 % interval", (*(_share_interval(row) for row in rows), ""), keep=20, is_extra=True),
        Column("samples", (*(count(row.samples) for row in rows), count(sum(row.samples for row in rows))), keep=40),
    ]
    return render_table(columns, style).rstrip("\n")


def _numbers(rows: Sequence[ReportRow], runs: int, scale: Scale, total: float) -> tuple[str, ...]:
    return (*(scale.number(row.self_weight / runs) for row in rows), scale.number(total))


def _totals(rows: Sequence[ReportRow], runs: int, scale: Scale) -> tuple[str, ...]:
    return (*("" if row.total_weight is None else scale.number(row.total_weight / runs) for row in rows), "")


def _share_interval(row: ReportRow) -> str:
    if row.interval is None:
        return ""
    return f"{100 * row.interval.low:.1f} to {100 * row.interval.high:.1f} %"


def _styles(rows: Sequence[ReportRow]) -> tuple[str, ...]:
    return (*("" for _ in rows), "bold")


def _other_section(report: ArmReport, style: TerminalStyle) -> list[str]:
    """The heaviest functions that no rule named, each with a rule line that would."""
    functions = report.costs.other_functions
    if report.dimension != "category" or not functions:
        return []
    runs, scale = report.divisor, report.scale
    lines = [wrap("other is mostly these functions; a rule line that would catch each:", style)]
    for function in functions:
        share = percent(function.weight / report.total if report.total else 0.0)
        lines.append(wrap(f"{scale.quantity(function.weight / runs)}  {share}  {printable(function.name)}", style, "  "))
        lines += [f"    {printable(line)}" for line in function.suggested_rule.splitlines()]
    return lines
