"""Comparisons per unit of work: a run that does 32 slots shown as one slot's time."""

from __future__ import annotations

from dataclasses import replace

from profiler.analysis.comparison.ladder import CPU_TIME
from profiler.model.comparison import CandidateComparison, Comparison, ComparisonRow, MetricComparison, Spread
from profiler.model.experiment_result import (
    ConditionResult,
    ControlResult,
    ControlRow,
    GainAttribution,
    Ladder,
    PowerRow,
    PowerTable,
)
from profiler.model.interval import Interval

_TIMES = ("wall", "user", "system")


def per_unit(comparison: Comparison, units: float) -> Comparison:
    """Weights and times divided by ``units``; relative changes, p, verdicts and the program's own metrics stay."""
    if units == 1:
        return comparison
    return replace(comparison, candidates=tuple(_candidate(found, units) for found in comparison.candidates))


def condition_per_unit(found: ConditionResult, units: float) -> ConditionResult:
    """Everything that an experiment says of a condition."""
    if units == 1:
        return found
    return replace(
        found,
        comparison=per_unit(found.comparison, units),
        gains=tuple(_gain(gain, units) for gain in found.gains),
        ladder=_ladder(found.ladder, units) if found.ladder is not None else None,
    )


def control_per_unit(found: ControlResult, units: float) -> ControlResult:
    """Differences of differences; those of the program's own metrics stay."""
    return replace(
        found,
        rows=tuple(_control_row(row, units) for row in found.rows),
        total=_control_row(found.total, units) if found.total is not None else None,
        metrics=tuple(_control_row(row, units) if row.name in _TIMES else row for row in found.metrics),
    )


def power_per_unit(found: PowerTable, units: float) -> PowerTable:
    """Visible changes in the unit that the experiment's own tables have; the numbers of runs stay."""
    return replace(
        found,
        rows=tuple(_power_row(row, units) for row in found.rows),
        total=_power_row(found.total, units) if found.total is not None else None,
        metrics=tuple(_power_row(row, units) if row.name in _TIMES else row for row in found.metrics),
    )


def _power_row(row: PowerRow, units: float) -> PowerRow:
    return replace(row, mean=row.mean / units, visible=tuple(effect / units for effect in row.visible))


def _gain(gain: GainAttribution, units: float) -> GainAttribution:
    return replace(gain, rows=tuple(replace(row, delta=row.delta / units) for row in gain.rows))


def _ladder(found: Ladder, units: float) -> Ladder:
    if found.quantity != CPU_TIME and found.quantity not in _TIMES:
        return found
    steps = tuple(
        replace(
            step,
            to_previous=scaled_row(step.to_previous, units),
            to_baseline=scaled_row(step.to_baseline, units),
        )
        for step in found.steps
    )
    return replace(found, steps=steps)


def _control_row(row: ControlRow, units: float) -> ControlRow:
    return replace(
        row,
        change=row.change / units,
        control_change=row.control_change / units,
        difference=row.difference / units,
        difference_interval=scaled_interval(row.difference_interval, units),
    )


def _candidate(found: CandidateComparison, units: float) -> CandidateComparison:
    return replace(
        found,
        rows=tuple(scaled_row(row, units) for row in found.rows),
        total=scaled_row(found.total, units),
        metrics=tuple(_metric(metric, units) for metric in found.metrics),
    )


def _metric(metric: MetricComparison, units: float) -> MetricComparison:
    return replace(metric, row=scaled_row(metric.row, units)) if metric.row.name in _TIMES else metric


def scaled_row(row: ComparisonRow, units: float) -> ComparisonRow:
    """Everything in the row's unit divided."""
    return replace(
        row,
        baseline=_spread(row.baseline, units),
        candidate=_spread(row.candidate, units),
        delta=row.delta / units,
        delta_interval=scaled_interval(row.delta_interval, units),
        visible_effect=row.visible_effect / units if row.visible_effect is not None else None,
    )


def scaled_interval(interval: Interval | None, units: float) -> Interval | None:
    return Interval(interval.low / units, interval.high / units) if interval is not None else None


def _spread(spread: Spread, units: float) -> Spread:
    return Spread(
        values=tuple(value / units for value in spread.values),
        mean=spread.mean / units,
        median=spread.median / units,
        minimum=spread.minimum / units,
        maximum=spread.maximum / units,
        standard_deviation=spread.standard_deviation / units,
        mean_interval=scaled_interval(spread.mean_interval, units),
    )
