"""An experiment for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.model.experiment_result import ConditionResult, ExperimentPower
from reports import experiment_tables as tables
from reports import experiment_wording as words
from reports.arm_lines import quality_line, warning_line
from reports.comparison_report import comparison_scale
from reports.experiment_report import ExperimentReport
from reports.plain_text import printable
from reports.terminal_comparison import candidate_sections
from reports.terminal_table import KEEP_ALWAYS, Column, TerminalStyle, render_table, wrap
from reports.wording import profiling_cost_text


def render_experiment(report: ExperimentReport, style: TerminalStyle) -> str:
    """Results first, then builds, every condition, steps and controls, quality and warnings; ends with a newline."""
    result = report.result
    lines = [
        words.headline(condition, candidate, result.record)
        for condition in result.conditions
        for candidate in condition.comparison.candidates
    ]
    sections = [
        _wrapped([f"{printable(result.record.name)}: {words.design_line(result)}", *lines], style),
        _table(tables.variant_table(result.record), style),
        _wrapped(tables.build_lines(result.record), style),
    ]
    for condition in result.conditions:
        sections += _condition(report, condition, style)
    for control in result.controls:
        sections += [
            wrap(words.control_title(control), style)
            + "\n"
            + _table(tables.control_table(control, report.limit, result.record.better_higher), style)
        ]
    sections.append(_wrapped([f"made again: {line}" for line in result.repeated], style))
    sections.append(_wrapped([f"left out: {line}" for line in result.left_out], style))
    sections.append(_wrapped([f"{printable(arm.name)}: {quality_line(arm)}" for arm in report.arms if arm.infos], style))
    sections.append(_wrapped(_warnings(report), style))
    return "\n\n".join(section for section in sections if section) + "\n"


def render_power(power: ExperimentPower, limit: int, style: TerminalStyle) -> str:
    """What more runs could show: an overview of all comparisons where there are several, then each; ends with a newline."""
    sections = [wrap(words.power_line(power), style)]
    is_one = len(power.tables) == 1
    sections += [] if is_one else [_table(tables.power_overview_table(power), style)]
    for found in power.tables:
        title = "" if is_one else wrap(printable(words.power_title(found)), style) + "\n"
        sections += [title + _table(tables.power_text_table(found, limit), style), _wrapped(words.power_advice(found), style)]
    sections.append(_wrapped([f"not known: {line}" for line in power.unknown], style))
    return "\n\n".join(section for section in sections if section) + "\n"


def _condition(report: ExperimentReport, condition: ConditionResult, style: TerminalStyle) -> list[str]:
    comparison = report.comparison(condition)
    title = words.condition_title(condition, report.result.record)
    sections = [wrap(f"== {printable(title)} ==", style)] if title else []
    gains = {gain.candidate: gain for gain in condition.gains}
    for candidate in condition.comparison.candidates:
        sections += candidate_sections(comparison, candidate, style)
        gain = gains.get(candidate.name)
        if gain is None:
            continue
        if any(row.share is not None for row in gain.rows):
            scale = comparison_scale(condition.comparison, candidate)
            head = f"where the change of the {words.quantity_of(condition.comparison)} came from"
            sections.append(head + "\n" + _table(tables.gain_table(gain, scale, report.limit), style))
        sections.append(_wrapped([tables.agreement_line(agreement) for agreement in gain.agreements], style))
    if condition.ladder is not None:
        steps = _table(tables.ladder_table(condition.ladder, condition.comparison.margin), style)
        sections.append(f"step by step\n{steps}")
    return sections


def _warnings(report: ExperimentReport) -> list[str]:
    lines = [profiling_cost_text(cost) for c in report.result.conditions for cost in c.comparison.profiling_costs]
    found = [*report.result.warnings, *(w for c in report.result.conditions for w in c.comparison.warnings)]
    return [*lines, *dict.fromkeys(f"warning {warning_line(warning)}" for warning in found)]


def _table(cells: tables.TextTable, style: TerminalStyle) -> str:
    if not cells.rows:
        return ""
    columns = [
        Column(
            header,
            tuple(row[place] for row in cells.rows),
            keep=KEEP_ALWAYS - place,
            is_text=place in cells.text_columns,
            is_extra=bool(place),
            goes_below=True,
        )
        for place, header in enumerate(cells.headers)
    ]
    return render_table(columns, style).rstrip("\n")


def _wrapped(lines: Sequence[str], style: TerminalStyle) -> str:
    return "\n".join(wrap(line, style) for line in lines)
