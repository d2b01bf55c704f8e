"""Sentences about an experiment as a whole, the same for every format."""

from __future__ import annotations

from profiler.model.comparison import CandidateComparison, Comparison
from profiler.model.experiment import Design, ExperimentRecord
from profiler.model.experiment_result import ConditionResult, ControlResult, ExperimentPower, ExperimentResult, PowerTable
from profiler.model.headline import headline_metric
from reports.comparison_report import comparison_scale, metric_scale, units_text
from reports.quantities import counted, probability
from reports.wording import Terms, effect_text, verdict_word


def design_line(result: ExperimentResult) -> str:
    """ "2 variants under 2 conditions, interleaved, 10 rounds, session 20260301-100000-abcd"."""
    record = result.record
    conditions = f" under {counted(len(record.conditions), 'condition')}" if record.conditions else ""
    line = f"{counted(len(record.variants), 'variant')}{conditions}, {record.design}, {_repetitions(record)}"
    line += f", session {result.session} of {result.started_at}"
    if record.per != 1:
        line += f"; {units_text(record.per)}"
    return line


def _repetitions(record: ExperimentRecord) -> str:
    if record.design is Design.INTERLEAVED:
        return counted(record.runs, "round")
    windows = counted(record.runs, "window")
    return f"{windows} under each variant" if record.design is Design.CROSSOVER else windows


def headline(condition: ConditionResult, candidate: CandidateComparison, record: ExperimentRecord) -> str:
    """The primary metric's result, or that of the CPU time where there is none; without a profile, of the plan's first
    metric, or else of the first time that was measured."""
    comparison = condition.comparison
    quantity = headline_metric(record, [candidate])
    if quantity is None:
        return f"{candidate.name}: nothing was measured"
    if quantity:
        metric = next(metric for metric in candidate.metrics if metric.row.name == quantity)
        scale = metric_scale(metric)
        effect = f"{metric.row.name} {effect_text(metric.row, scale)}"
        verdict = verdict_word(metric.row, Terms(scale, metric.unit, comparison.margin))
        return f"{candidate.name}: {effect}{_p(metric.row.p_adjusted)}: {verdict}"
    scale = comparison_scale(comparison, candidate)
    effect = f"CPU time {effect_text(candidate.total, scale)}"
    verdict = verdict_word(candidate.total, Terms(scale, comparison.unit, comparison.margin))
    return f"{candidate.name}: {effect}{_p(candidate.total.p_adjusted)}: {verdict}"


def condition_title(condition: ConditionResult, record: ExperimentRecord) -> str:
    """Of a section; "" for an experiment without conditions."""
    for facts in record.conditions:
        if facts.name == condition.condition:
            arguments = f" ({' '.join(facts.args)})" if facts.args else ""
            return f"{facts.name}{arguments}{', the control' if facts.is_control else ''}"
    return ""


def control_title(control: ControlResult) -> str:
    return f"{control.candidate}: its change under {control.condition} less its change under {control.control}"


def power_line(power: ExperimentPower) -> str:
    """Above the tables of what more runs could show."""
    line = f"smallest changes that so many {power.tables[0].replicates} per arm would show with a probability of about 80 %"
    promises = dict.fromkeys(
        f"{table.test}: {100 * table.promise.high:.0f} % where noise is normal, {100 * table.promise.low:.0f} % where it is "
        "heavy-tailed or skewed"
        for table in power.tables
    )
    line += f" ({'; '.join(promises)}; within 5 points)"
    if power.per != 1:
        line += f"; {units_text(power.per)}"
    return line


def power_title(table: PowerTable) -> str:
    """Of one comparison: "vecmap@full", or "vecmap@full less its change under partial"."""
    return f"{table.candidate} less its change under {table.control}" if table.control else table.candidate


def power_advice(table: PowerTable) -> list[str]:
    return [f"{row.label}: {row.advice}" for row in table.rows if row.advice]


def quantity_of(comparison: Comparison) -> str:
    return "CPU time" if comparison.unit == "ns" else comparison.event


def per_text(record: ExperimentRecord, quantity: str) -> str:
    """What a weight or a time is per; "" for the program's own metrics, which are what the program says they are."""
    if quantity in {metric.name for metric in record.metrics}:
        return ""
    return " per run" if record.per == 1 else " per unit of work"


def _p(p: float | None) -> str:
    text = probability(p)
    return f", p {'' if text.startswith('<') else '= '}{text}" if text else ""
