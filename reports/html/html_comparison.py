"""What a build changed, as a piece of HTML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from profiler.model.comparison import CandidateComparison, ComparisonRow, InstanceNames, Verdict
from reports.arm_lines import quality_line, warning_line
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
from reports.experiment_tables import TextTable
from reports.html.elements import details, heading, items, paragraph, table
from reports.html.html_report import arm_facts, warnings_section
from reports.quantities import Scale
from reports.wording import (
    Terms,
    evidence_text,
    profiling_cost_text,
    relative_interval,
    values_text,
)

_DECIDED = (Verdict.FASTER, Verdict.SLOWER)


def render_comparison_html(report: ComparisonReport) -> str:
    """Result, method, tables, quality and warnings in the open; per-run values, builds and commands folded away."""
    comparison = report.comparison
    facts = per_lines(report.per)
    facts += [f"{arm.name}: {quality_line(arm)}" for arm in report.arms if arm.infos]
    facts += [profiling_cost_text(cost) for cost in comparison.profiling_costs]
    return "".join(
        (
            *(candidate_section(report, candidate, 2) for candidate in comparison.candidates),
            items(facts),
            warnings_section([warning_line(warning) for warning in comparison.warnings]),
            details("Values of each run", *(value_lists(report, candidate) for candidate in comparison.candidates)),
            *(details(f"Builds, hosts and commands of {arm.name}", arm_facts(arm)) for arm in report.arms),
        )
    )


def candidate_section(report: ComparisonReport, candidate: CandidateComparison, level: int) -> str:
    """Heading of this level, result, method and tables of one candidate."""
    sentence, method = result_and_method(report.comparison, candidate)
    return "".join(
        (
            heading(level, f"{candidate.name} against {report.comparison.baseline_name}"),
            paragraph(sentence, is_result=True) if sentence else "",
            paragraph(method),
            _rows_table(report, candidate) if sentence else "",
            _metrics_table(report, candidate),
        )
    )


def value_lists(report: ComparisonReport, candidate: CandidateComparison) -> str:
    """The value of every run, a list per row."""
    arms = (report.comparison.baseline_name, candidate.name)
    rows = valued_rows(report.comparison, candidate)
    return "".join(_values(row, scale, arms, instances) for row, scale, instances in rows)


def _rows_table(report: ComparisonReport, candidate: CandidateComparison) -> str:
    comparison = report.comparison
    scale = comparison_scale(comparison, candidate)
    rows, rest = shown_rows(candidate, report.limit)
    terms = Terms(scale, comparison.unit, comparison.margin, is_part=True)
    lines = [row_cells(row, terms) for row in rows]
    lines += [rest_cells(rest, scale)] if rest else []
    lines.append(("total", *row_cells(candidate.total, replace(terms, is_part=False))[1:]))
    unit = f" {scale.unit}" if scale.unit else ""
    names = (f"{comparison.baseline_name}{unit}", f"{candidate.name}{unit}", f"delta{unit}")
    headers = (comparison.dimension, *names, "95 % interval", "change", "p adjusted", "verdict")
    caption = f"{candidate.name} against {comparison.baseline_name}, by {comparison.dimension}"
    decided = {place for place, row in enumerate(rows) if row.verdict in _DECIDED}
    decided |= {len(lines) - 1} if candidate.total.verdict in _DECIDED else set()
    return table(caption, TextTable(headers, tuple(lines), frozenset({0, 7})), len(lines) - 1, decided)


def _metrics_table(report: ComparisonReport, candidate: CandidateComparison) -> str:
    lines = []
    for metric in candidate.metrics:
        scale = metric_scale(metric)
        label, *numbers, change, p, verdict = row_cells(metric.row, Terms(scale, metric.unit, report.comparison.margin))
        lines.append((label, scale.unit, *numbers, f"{change} {relative_interval(metric.row)}".strip(), p, verdict))
    names = (report.comparison.baseline_name, candidate.name)
    headers = ("time or metric", "unit", *names, "delta", "95 % interval", "change", "p (not adjusted)", "verdict")
    caption = f"{candidate.name} against {names[0]}, times and metrics"
    decided = {place for place, metric in enumerate(candidate.metrics) if metric.row.verdict in _DECIDED}
    return table(caption, TextTable(headers, tuple(lines), frozenset({0, 1, 8})), decided_rows=decided)


def _values(row: ComparisonRow, scale: Scale, arms: Iterable[str], instances: InstanceNames) -> str:
    unit = f" ({scale.unit})" if scale.unit else ""
    spreads = zip(arms, (row.baseline, row.candidate), instances, strict=True)
    lines = [f"{arm}: {values_text(spread.values, names, scale)}" for arm, spread, names in spreads]
    evidence = evidence_text(row)
    return heading(3, f"{row.label}{unit}") + items([*lines, *([evidence] if evidence else [])])
