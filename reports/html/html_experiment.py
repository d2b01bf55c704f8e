"""What an experiment found, as a piece of HTML with the content of the pull-request text."""

from __future__ import annotations

from profiler.model.comparison import CandidateComparison
from profiler.model.experiment_result import ConditionResult, GainAttribution
from reports import experiment_tables as tables
from reports import experiment_wording as words
from reports.arm_lines import quality_line, warning_line
from reports.comparison_report import comparison_scale
from reports.experiment_report import ExperimentReport
from reports.html.elements import code_block, details, heading, items, paragraph, table
from reports.html.html_comparison import candidate_section, value_lists
from reports.html.html_report import arm_facts, warnings_section
from reports.wording import profiling_cost_text


def render_experiment_html(report: ExperimentReport) -> str:
    """Builds, results under every condition, who accounts for the gain, steps and controls, quality and warnings in the open;
    per-run values, builds, plan and the way to repeat it folded away."""
    result, record = report.result, report.result.record
    return "".join(
        (
            items(
                words.headline(condition, candidate, record)
                for condition in result.conditions
                for candidate in condition.comparison.candidates
            ),
            paragraph(words.design_line(result)),
            table("Variants", tables.variant_table(record)),
            items(tables.build_lines(record)),
            *(_condition(report, condition) for condition in result.conditions),
            _controls(report),
            items(f"made again: {line}" for line in result.repeated),
            items(f"left out: {line}" for line in result.left_out),
            items(f"{arm.name}: {quality_line(arm)}" for arm in report.arms if arm.infos),
            _warnings(report),
            *_folded(report),
        )
    )


def _condition(report: ExperimentReport, condition: ConditionResult) -> str:
    comparison = report.comparison(condition)
    title = words.condition_title(condition, report.result.record)
    parts = [heading(2, title)] if title else []
    gains = {gain.candidate: gain for gain in condition.gains}
    for candidate in condition.comparison.candidates:
        parts.append(candidate_section(comparison, candidate, 3 if title else 2))
        parts.append(_gain(report, condition, candidate, gains.get(candidate.name)))
    if condition.ladder is not None:
        steps = tables.ladder_table(condition.ladder, condition.comparison.margin)
        parts.append(table("Step by step", steps))
    return "".join(parts)


def _gain(
    report: ExperimentReport, condition: ConditionResult, candidate: CandidateComparison, gain: GainAttribution | None
) -> str:
    if gain is None:
        return ""
    agreements = items(tables.agreement_line(agreement) for agreement in gain.agreements)
    if all(row.share is None for row in gain.rows):
        return agreements
    scale = comparison_scale(condition.comparison, candidate)
    caption = f"Where the change of the {words.quantity_of(condition.comparison)} came from: {candidate.name}"
    return table(caption, tables.gain_table(gain, scale, report.limit)) + agreements


def _controls(report: ExperimentReport) -> str:
    result = report.result
    return "".join(
        table(words.control_title(control), tables.control_table(control, report.limit, result.record.better_higher))
        for control in result.controls
    )


def _warnings(report: ExperimentReport) -> str:
    conditions = report.result.conditions
    costs = [profiling_cost_text(cost) for condition in conditions for cost in condition.comparison.profiling_costs]
    found = [*report.result.warnings, *(warning for each in conditions for warning in each.comparison.warnings)]
    return items(costs) + warnings_section(list(dict.fromkeys(warning_line(warning) for warning in found)))


def _folded(report: ExperimentReport) -> list[str]:
    record = report.result.record
    inputs = [
        f"{given.name}{f' ({given.note})' if given.note else ''}: {given.size_bytes:,} bytes, SHA-256 {given.sha256}"
        for given in record.inputs
    ]
    values = [
        details(
            f"Values of {condition.comparison.baseline_name} and {candidate.name}",
            value_lists(report.comparison(condition), candidate),
        )
        for condition in report.result.conditions
        for candidate in condition.comparison.candidates
    ]
    return [
        *values,
        *(details(f"Builds, hosts and commands of {arm.name}", arm_facts(arm)) for arm in report.arms),
        details("Inputs", items(inputs)),
        details("How to repeat it", code_block([record.command_again])),
        details("The plan", code_block(record.plan_text.splitlines())),
    ]
