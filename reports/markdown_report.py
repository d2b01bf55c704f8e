"""Where the time of one arm went, as GitHub-flavoured Markdown of at most 60,000 characters."""

from __future__ import annotations

from reports.arm_lines import breakdown_lines, header_lines, unresolved_lines, warning_line
from reports.arm_report import ArmReport, report_rows
from reports.markdown_text import MAX_CHARACTERS, code_block, details, fitting, name, table, text
from reports.quantities import count, percent
from reports.report_cells import other_lines, row_cells


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
    lines = [(name(row.label), *row_cells(row, runs, scale)) for row in rows]
    total = scale.number(report.total / runs)
    samples = count(sum(row.samples for row in rows))
    lines.append(("**total**", total, total, percent(1.0 if report.total else 0.0), "", samples))
    return table(headers, lines, frozenset({0}))


def _other(report: ArmReport) -> str:
    functions = report.costs.other_functions
    if report.dimension != "category" or not functions:
        return ""
    return details("Heaviest functions of other, with a rule that would catch each", code_block(other_lines(report)))
