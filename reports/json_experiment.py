"""An experiment as JSON for other programs: ``slotscope.experiment/1`` and ``slotscope.power/1``."""

from __future__ import annotations

from dataclasses import asdict

from profiler.model.comparison import Comparison
from profiler.model.experiment_result import (
    ConditionResult,
    ControlResult,
    ControlRow,
    ExperimentPower,
    ExperimentResult,
    GainAttribution,
    Ladder,
    PowerRow,
    PowerTable,
)
from reports.json_report import (
    Json,
    candidate_json,
    document_text,
    interval_json,
    number_json,
    row_json,
    value_json,
    warnings_json,
)
from reports.plain_text import valid_utf8

EXPERIMENT_SCHEMA = "slotscope.experiment/1"
POWER_SCHEMA = "slotscope.power/1"


def render_experiment_json(result: ExperimentResult) -> str:
    """Conditions, candidates and rows in their order; ``delta`` = candidate - baseline, means per run or unit of work."""
    record = result.record
    document: dict[str, Json] = {
        "schema": EXPERIMENT_SCHEMA,
        "session": result.session,
        "started_at": result.started_at,
        "experiment": value_json(asdict(record)),
        "conditions": [_condition(condition) for condition in result.conditions],
        "controls": [_control(control) for control in result.controls],
        "repeated": [valid_utf8(line) for line in result.repeated],
        "left_out": [valid_utf8(line) for line in result.left_out],
        "warnings": warnings_json(result.warnings),
    }
    return document_text(document)


def render_power_json(power: ExperimentPower) -> str:
    """``comparisons``: every candidate under every condition, then against the control; ``promise``: the
    probabilities, within 5 points, that an effect of the size ``visible`` is found: where noise is not normal, and where it is.
    """
    document: dict[str, Json] = {
        "schema": POWER_SCHEMA,
        "session": power.session,
        "primary": valid_utf8(power.primary),
        "per": number_json(power.per),
        "comparisons": [_power_table(table) for table in power.tables],
        "unknown": [valid_utf8(line) for line in power.unknown],
    }
    return document_text(document)


def _power_table(table: PowerTable) -> Json:
    return {
        "candidate": valid_utf8(table.candidate),
        "control": valid_utf8(table.control) if table.control else None,
        "test": table.test.value,
        "unit": valid_utf8(table.unit),
        "margin": number_json(table.margin),
        "promise": interval_json(table.promise),
        "replicates": table.replicates,
        "runs": [number_json(runs) for runs in table.runs],
        "rows": [_power_row(row) for row in table.rows],
        "total": _power_row(table.total) if table.total is not None else None,
        "metrics": [_power_row(row) for row in table.metrics],
    }


def _condition(condition: ConditionResult) -> Json:
    comparison: Comparison = condition.comparison
    return {
        "name": valid_utf8(condition.condition),
        "unit": valid_utf8(comparison.unit),
        "baseline": {"name": valid_utf8(comparison.baseline_name), "runs": comparison.baseline_runs},
        "candidates": [candidate_json(candidate) for candidate in comparison.candidates],
        "gains": [_gain(gain) for gain in condition.gains],
        "ladder": _ladder(condition.ladder) if condition.ladder is not None else None,
        "warnings": warnings_json(comparison.warnings),
    }


def _gain(gain: GainAttribution) -> Json:
    return {
        "candidate": valid_utf8(gain.candidate),
        "rows": [
            {
                "name": valid_utf8(row.name),
                "delta": number_json(row.delta),
                "share": number_json(row.share),
                "share_interval": interval_json(row.share_interval),
            }
            for row in gain.rows
        ],
        "metrics": [
            {
                "name": valid_utf8(agreement.metric),
                "profile_change": number_json(agreement.profile_change),
                "metric_change": number_json(agreement.metric_change),
                "difference": number_json(agreement.difference),
                "difference_interval": interval_json(agreement.difference_interval),
                "agreement": agreement.agreement.value,
            }
            for agreement in gain.agreements
        ],
    }


def _ladder(ladder: Ladder) -> Json:
    return {
        "quantity": valid_utf8(ladder.quantity),
        "unit": valid_utf8(ladder.unit),
        "baseline": valid_utf8(ladder.baseline),
        "largest": valid_utf8(ladder.largest),
        "steps": [
            {
                "name": valid_utf8(step.name),
                "note": valid_utf8(step.note),
                "to_previous": row_json(step.to_previous),
                "to_baseline": row_json(step.to_baseline),
            }
            for step in ladder.steps
        ],
    }


def _control(control: ControlResult) -> Json:
    return {
        "candidate": valid_utf8(control.candidate),
        "condition": valid_utf8(control.condition),
        "control": valid_utf8(control.control),
        "unit": valid_utf8(control.unit),
        "rows": [_control_row(row) for row in control.rows],
        "total": _control_row(control.total) if control.total is not None else None,
        "metrics": [_control_row(row) for row in control.metrics],
    }


def _control_row(row: ControlRow) -> Json:
    return {
        "name": valid_utf8(row.name),
        "unit": valid_utf8(row.unit),
        "change": number_json(row.change),
        "control_change": number_json(row.control_change),
        "difference": number_json(row.difference),
        "difference_interval": interval_json(row.difference_interval),
        "p": number_json(row.p),
        "p_adjusted": number_json(row.p_adjusted),
        "verdict": row.verdict.value,
    }


def _power_row(row: PowerRow) -> Json:
    return {
        "name": valid_utf8(row.name),
        "unit": valid_utf8(row.unit),
        "mean": number_json(row.mean),
        "visible": [number_json(effect) for effect in row.visible] if row.has_spread else [],
        "runs_for_margin": row.runs_for_margin if row.has_spread else None,
        "sampling_share": number_json(row.sampling_share),
    }
