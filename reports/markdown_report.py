"""Where the time of one arm went, as GitHub-flavoured Markdown of at most 60,000 characters."""

from __future__ import annotations

from reports.arm_lines import breakdown_lines, header_lines, unresolved_lines, warning_line
from reports.arm_report import ArmReport, ReportRow, report_rows
from reports.markdown_text import MAX_CHARACTERS, code_block, details, fitting, name, table, text
from reports.quantities import Scale, count, percent


def render_report_markdown(report: ArmReport) -> str:
    """Header, what is missing, the table, whose work the pass-through categories did, ``other`` and warnings."""
    blocks = [
        "\n".join(f"- {text(line)}" for line in header_lines(report)),
        "\n".join(f"> {text(line)}" for line in unresolved_lines(report.costs)),
        _table(report),
        "\n".join(f"- {text(line)}" for line in breakdown_lines(report)),
        _other(report),
        "\n".join(f"- **warning** {text(warning_line(warning))}" for warning in report.costs.warnings),
    ]
    return "\n\n".join(fitting([block for block in blocks if block], MAX_CHARACTERS - 1)) + "\n"


def _table(report: ArmReport) -> str:
    rows, runs, scale = report_rows(report), report.divisor, report.scale
    unit = text(f"{scale.unit} per run" if report.runs > 1 else scale.unit)
    headers = (text(report.dimension), f"self {unit}", f"total {unit}", "share", "95 % interval", "samples")
    lines = [_row(row, runs, scale) for row in rows]
    total = scale.number(report.total / runs)
    samples = count(sum(row.samples for row in rows))
    lines.append(("**total**", total, total, percent(1.0 if report.total else 0.0), "", samples))
    return table(headers, lines, frozenset({0}))


def _row(row: ReportRow, runs: int, scale: Scale) -> tuple[str, ...]:
    return (
        name(row.label),
        scale.number(row.self_weight / runs),
        "" if row.total_weight is None else scale.number(row.total_weight / runs),
        percent(row.share),
        f"{100 * row.interval.low:.1f} to {100 * row.interval.high:.1f} %" if row.interval else "",
        count(row.samples),
    )


def _other(report: ArmReport) -> str:
    functions = report.costs.other_functions
    if report.dimension != "category" or not functions:
        return ""
    runs, scale = report.divisor, report.scale
    lines = []
    for function in functions:
        share = percent(function.weight / report.total if report.total else 0.0)
        lines.append(f"# {scale.quantity(function.weight / runs)}, {share}: {function.name}")
        lines += function.suggested_rule.splitlines()
    return details("Heaviest functions of other, with a rule that would catch each", code_block(lines))
