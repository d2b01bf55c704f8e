"""Pull-request text: what a build changed, in at most 60,000 characters of GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from profiler.model.comparison import CandidateComparison, ComparisonRow, InstanceNames, Verdict
from profiler.model.costs import ArmCosts
from reports.arm_lines import build_facts, commands_of, quality_line, warning_line
from reports.comparison_cells import rest_cells, row_cells
from reports.comparison_report import (
    ComparisonReport,
    comparison_scale,
    metric_scale,
    per_lines,
    result_and_method,
    shown_rows,
    valued_rows,
)
from reports.markdown_text import MAX_CHARACTERS, code_block, details, fitting, name, table, text
from reports.quantities import Scale
from reports.wording import (
    Terms,
    evidence_text,
    profiling_cost_text,
    relative_interval,
    values_text,
)

_DETAILS_WRAPPER = 200  # characters that a folded section takes beside its content


def render_comparison_markdown(report: ComparisonReport) -> str:
    """Result, method, tables, quality and warnings in the open; per-run values, build IDs and commands folded away."""
    comparison = report.comparison
    head = [block for candidate in comparison.candidates for block in candidate_blocks(report, candidate)]
    head.append(_list(text(line) for line in per_lines(report.per)))
    head.append(_list(f"{name(arm.name)}: {text(quality_line(arm))}" for arm in report.arms if arm.infos))
    head.append(_list(text(profiling_cost_text(cost)) for cost in comparison.profiling_costs))
    head.append(_list(f"**warning** {text(warning_line(warning))}" for warning in comparison.warnings))
    shown = fitting([block for block in head if block], MAX_CHARACTERS - 1_000)
    room = MAX_CHARACTERS - sum(len(block) + 2 for block in shown) - _DETAILS_WRAPPER
    body = fitting(_details(report), room) if room > _DETAILS_WRAPPER else []
    folded = [details("Values of each run, builds and commands", "\n\n".join(body))] if body else []
    return "\n\n".join([*shown, *folded]) + "\n"


def candidate_blocks(report: ComparisonReport, candidate: CandidateComparison) -> list[str]:
    """Heading, result, method and tables of one candidate; some may be empty."""
    sentence, method = result_and_method(report.comparison, candidate)
    return [
        f"### {name(candidate.name)} against {name(report.comparison.baseline_name)}",
        f"**{text(sentence)}**" if sentence else "",
        text(method),
        _rows_table(report, candidate) if sentence else "",
        _metrics_table(report, candidate),
    ]


def _rows_table(report: ComparisonReport, candidate: CandidateComparison) -> str:
    comparison = report.comparison
    scale = comparison_scale(comparison, candidate)
    rows, rest = shown_rows(candidate, report.limit)
    unit = f" {text(scale.unit)}" if scale.unit else ""
    headers = (
        text(comparison.dimension),
        f"{name(comparison.baseline_name)}{unit}",
        f"{name(candidate.name)}{unit}",
        f"delta{unit}",
        "95 % interval",
        "change",
        "p adjusted",
        "verdict",
    )
    terms = Terms(scale, comparison.unit, comparison.margin, is_part=True)
    lines = [_row(row, terms) for row in rows]
    if rest:
        lines.append(rest_cells(rest, scale))
    total = _row(candidate.total, replace(terms, is_part=False))
    lines.append(("**total**", *total[1:]))
    return table(headers, lines, frozenset({0, 7}))


def _row(row: ComparisonRow, terms: Terms) -> tuple[str, ...]:
    label, *numbers, p, verdict = row_cells(row, terms)
    shown = text(verdict)
    is_decided = row.verdict in (Verdict.FASTER, Verdict.SLOWER)
    return (name(label), *numbers, text(p), f"**{shown}**" if is_decided else shown)


def _metrics_table(report: ComparisonReport, candidate: CandidateComparison) -> str:
    if not candidate.metrics:
        return ""
    lines = []
    for metric in candidate.metrics:
        scale = metric_scale(metric)
        cells = _row(metric.row, Terms(scale, metric.unit, report.comparison.margin))
        lines.append(
            (cells[0], text(scale.unit), *cells[1:5], f"{cells[5]} {relative_interval(metric.row)}".strip(), *cells[6:])
        )
    headers = (
        "time or metric",
        "unit",
        name(report.comparison.baseline_name),
        name(candidate.name),
        "delta",
        "95 % interval",
        "change",
    )
    return table((*headers, "p (not adjusted)", "verdict"), lines, frozenset({0, 1, 8}))


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _details(report: ComparisonReport) -> list[str]:
    blocks = []
    for candidate in report.comparison.candidates:
        blocks += value_blocks(report, candidate)
    return [*blocks, *(facts for arm in report.arms if (facts := arm_facts(arm)))]


def value_blocks(report: ComparisonReport, candidate: CandidateComparison) -> list[str]:
    """Per-run values, one block per row so that a length limit cuts between rows."""
    arms = (report.comparison.baseline_name, candidate.name)
    rows = valued_rows(report.comparison, candidate)
    return [_row_values(row, scale, arms, instances) for row, scale, instances in rows]


def _row_values(row: ComparisonRow, scale: Scale, arms: tuple[str, str], instances: InstanceNames) -> str:
    unit = f" ({text(scale.unit)})" if scale.unit else ""
    spreads = zip(arms, (row.baseline, row.candidate), instances, strict=True)
    lines = [f"{name(arm)}: {text(values_text(spread.values, names, scale))}" for arm, spread, names in spreads]
    if evidence := evidence_text(row):
        lines.append(text(evidence))
    return f"**{name(row.label)}**{unit}\n\n{_list(lines)}"


def arm_facts(arm: ArmCosts) -> str:
    """Builds, hosts, settings and commands of an arm's runs; "" where nothing of it is known."""
    lines = [", ".join(f"{what} {name(value)}" for what, value in line) for line in build_facts(arm)]
    commands = commands_of(arm)
    if not lines and not commands:
        return ""
    parts = [f"**{name(arm.name)}**", _list(lines), code_block(commands) if commands else ""]
    return "\n\n".join(part for part in parts if part)
