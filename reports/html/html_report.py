"""Where the time of one arm went, as a piece of HTML."""

from __future__ import annotations

from profiler.model.costs import ArmCosts
from reports.arm_lines import (
    breakdown_lines,
    build_facts,
    commands_of,
    header_lines,
    missing_lines,
    unresolved_lines,
    warning_line,
)
from reports.arm_report import ArmReport, report_rows
from reports.experiment_tables import TextTable
from reports.html.elements import code_block, details, heading, items, notice, table
from reports.quantities import count, percent
from reports.report_cells import other_lines, row_cells


def render_report_html(report: ArmReport) -> str:
    """Header, what is missing, the table, whose work the pass-through categories did, ``other``, warnings, builds, commands."""
    costs = report.costs
    unresolved = unresolved_lines(costs)
    return "".join(
        (
            notice(unresolved),
            items(header_lines(report)),
            table(f"Where the time went, by {report.dimension}", _cells(report), len(report_rows(report))),
            items(breakdown_lines(report)),
            _other(report),
            warnings_section([warning_line(warning) for warning in costs.warnings]),
            details("Files without names", items(missing_lines(costs.missing))) if costs.missing and not unresolved else "",
            details("Builds, hosts and commands", arm_facts(costs)),
        )
    )


def warnings_section(lines: list[str]) -> str:
    """A heading and the warnings; "" for none."""
    return heading(2, "Warnings") + items(lines) if lines else ""


def arm_facts(costs: ArmCosts) -> str:
    """Builds, hosts, settings and commands of an arm's runs; "" where nothing of it is known."""
    lines = [", ".join(f"{what} {value}" for what, value in line) for line in build_facts(costs)]
    return items(lines) + code_block(commands_of(costs))


def _cells(report: ArmReport) -> TextTable:
    rows, runs, scale = report_rows(report), report.divisor, report.scale
    unit = f"{scale.unit} per run" if report.runs > 1 else scale.unit
    headers = (report.dimension, f"self {unit}", f"total {unit}", "share", "95 % interval", "samples")
    total, share = scale.number(report.total / runs), percent(1.0 if report.total else 0.0)
    last = ("total", total, total, share, "", count(sum(row.samples for row in rows)))
    return TextTable(headers, (*((row.label, *row_cells(row, runs, scale)) for row in rows), last))


def _other(report: ArmReport) -> str:
    functions = report.costs.other_functions
    if report.dimension != "category" or not functions:
        return ""
    return details("Heaviest functions of other, with a rule that would catch each", code_block(other_lines(report)))
