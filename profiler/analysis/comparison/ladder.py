"""A series of builds, each on top of the one before: what every step brought, and which one brought most."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.errors import UsageError
from profiler.model.comparison import CandidateComparison, ComparisonRow, Verdict
from profiler.model.costs import ArmCosts
from profiler.model.experiment_result import Ladder, LadderStep

CPU_TIME = "CPU time"
_FLAGGED = (Verdict.FASTER, Verdict.SLOWER)


def ladder(arms: Sequence[ArmCosts], options: CompareOptions, primary: str = "", notes: Sequence[str] = ()) -> Ladder:
    """``arms``: the baseline, then the steps in order, at least one.  ``primary``: the metric that is compared, "" = the
    profile's total.  ``notes``: one per step.  ``UsageError`` for a metric that an arm does not have."""
    baseline, steps = arms[0], arms[1:]
    from_baseline = compare_arms(baseline, steps, options).candidates
    built = []
    unit = baseline.unit
    for index, step in enumerate(steps):
        previous = arms[index]
        from_previous = from_baseline[0] if index == 0 else compare_arms(previous, [step], options).candidates[0]
        to_previous, unit = _row(from_previous, primary, baseline.unit)
        to_baseline, _ = _row(from_baseline[index], primary, baseline.unit)
        built.append(LadderStep(step.name, notes[index] if index < len(notes) else "", to_previous, to_baseline))
    return Ladder(primary or CPU_TIME, unit, baseline.name, tuple(built), _largest(built))


def _row(compared: CandidateComparison, primary: str, unit: str) -> tuple[ComparisonRow, str]:
    if not primary:
        return compared.total, unit
    for metric in compared.metrics:
        if metric.row.name == primary:
            return metric.row, metric.unit
    raise UsageError(f"{compared.name}: no run reports {primary!r}, which the steps are to be compared by")


def _largest(steps: Sequence[LadderStep]) -> str:
    flagged = [step for step in steps if step.to_previous.verdict in _FLAGGED]
    return max(flagged, key=lambda step: abs(step.to_previous.delta)).name if flagged else ""
