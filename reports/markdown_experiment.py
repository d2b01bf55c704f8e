"""An experiment as text for a pull request: GitHub-flavoured Markdown of at most 60,000 characters."""

from __future__ import annotations

from collections.abc import Iterable

from profiler.model.experiment_result import ConditionResult, ExperimentPower
from reports import experiment_tables as tables
from reports import experiment_wording as words
from reports.arm_lines import quality_line, warning_line
from reports.comparison_report import comparison_scale
from reports.experiment_report import ExperimentReport
from reports.markdown import arm_facts, candidate_blocks, value_blocks
from reports.markdown_text import MAX_CHARACTERS, code_block, details, fitting, name, table, text
from reports.wording import profiling_cost_text

_DETAILS_WRAPPER = 200  # characters that a folded section takes beside its content


def render_experiment_markdown(report: ExperimentReport) -> str:
    """Builds, results under every condition, who accounts for the gain, steps and controls, quality and warnings in the open;
    per-run values, builds, plan and the way to repeat it folded away."""
    shown = fitting([block for block in _shown(report) if block], MAX_CHARACTERS - 1_000)
    room = MAX_CHARACTERS - sum(len(block) + 2 for block in shown) - _DETAILS_WRAPPER
    body = fitting(_folded(report), room) if room > _DETAILS_WRAPPER else []
    folded = [details("Values of each run, builds, plan, and how to repeat it", "\n\n".join(body))] if body else []
    return "\n\n".join([*shown, *folded]) + "\n"


def render_power_markdown(power: ExperimentPower, limit: int) -> str:
    """What more runs could show: an overview of all comparisons where there are several, then each of them."""
    blocks = [text(words.power_line(power))]
    is_one = len(power.tables) == 1
    blocks += [] if is_one else [_table(tables.power_overview_table(power))]
    for found in power.tables:
        blocks += [] if is_one else [f"### {text(words.power_title(found))}"]
        blocks += [_table(tables.power_text_table(found, limit)), _list(map(text, words.power_advice(found)))]
    blocks.append(_list(f"not known: {text(line)}" for line in power.unknown))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _shown(report: ExperimentReport) -> list[str]:
    result = report.result
    record = result.record
    blocks = [
        f"## {name(record.name)}",
        _list(
            f"**{text(words.headline(condition, candidate, record))}**"
            for condition in result.conditions
            for candidate in condition.comparison.candidates
        ),
        text(words.design_line(result)),
        _table(tables.variant_table(record)),
        _list(text(line) for line in tables.build_lines(record)),
    ]
    for condition in result.conditions:
        blocks += _condition(report, condition)
    for control in result.controls:
        blocks += [
            f"### {text(words.control_title(control))}",
            _table(tables.control_table(control, report.limit, result.record.better_higher)),
        ]
    blocks.append(_list(text(f"made again: {line}") for line in result.repeated))
    blocks.append(_list(text(f"left out: {line}") for line in result.left_out))
    blocks.append(_list(f"{name(arm.name)}: {text(quality_line(arm))}" for arm in report.arms if arm.infos))
    blocks.append(_list(_warnings(report)))
    return blocks


def _condition(report: ExperimentReport, condition: ConditionResult) -> list[str]:
    comparison = report.comparison(condition)
    title = words.condition_title(condition, report.result.record)
    blocks = [f"## {text(title)}"] if title else []
    gains = {gain.candidate: gain for gain in condition.gains}
    for candidate in condition.comparison.candidates:
        blocks += candidate_blocks(comparison, candidate)
        gain = gains.get(candidate.name)
        if gain is None:
            continue
        if any(row.share is not None for row in gain.rows):
            scale = comparison_scale(condition.comparison, candidate)
            title = f"#### Where the change of the {words.quantity_of(condition.comparison)} came from"
            blocks += [title, _table(tables.gain_table(gain, scale, report.limit))]
        blocks.append(_list(text(tables.agreement_line(agreement)) for agreement in gain.agreements))
    if condition.ladder is not None:
        blocks += ["#### Step by step", _table(tables.ladder_table(condition.ladder, condition.comparison.margin))]
    return blocks


def _warnings(report: ExperimentReport) -> Iterable[str]:
    lines = [text(profiling_cost_text(cost)) for c in report.result.conditions for cost in c.comparison.profiling_costs]
    found = [*report.result.warnings, *(w for c in report.result.conditions for w in c.comparison.warnings)]
    return [*lines, *dict.fromkeys(f"**warning** {text(warning_line(warning))}" for warning in found)]


def _folded(report: ExperimentReport) -> list[str]:
    record = report.result.record
    blocks = []
    for given in record.inputs:
        note = f" ({text(given.note)})" if given.note else ""
        blocks.append(f"Input {name(given.name)}{note}: {given.size_bytes:,} bytes, SHA-256 {given.sha256}")
    blocks.append("How to repeat it:\n\n" + code_block([record.command_again]))
    for condition in report.result.conditions:
        for candidate in condition.comparison.candidates:
            blocks.append(f"#### Values of {name(condition.comparison.baseline_name)} and {name(candidate.name)}")
            blocks += value_blocks(report.comparison(condition), candidate)
    blocks += [facts for arm in report.arms if (facts := arm_facts(arm))]
    return [*blocks, "The plan:\n\n" + code_block(record.plan_text.splitlines())]


def _table(cells: tables.TextTable) -> str:
    if not cells.rows:
        return ""
    headers = tuple(text(header) for header in cells.headers)
    rows = [tuple(name(cell) if column == 0 else text(cell) for column, cell in enumerate(row)) for row in cells.rows]
    return table(headers, rows, cells.text_columns)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
