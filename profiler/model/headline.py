"""Which number an experiment's result is told by."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.model.comparison import CandidateComparison
from profiler.model.experiment import ExperimentRecord


def headline_metric(record: ExperimentRecord, candidates: Sequence[CandidateComparison]) -> str | None:
    """A metric or time that all ``candidates`` have, "" for the profile's total, None where there is nothing.

    The primary metric; without it, which one load of several may not have, the total; without a profile the plan's first
    metric, or else the first time that was measured.
    """
    of_first = [metric.row.name for metric in candidates[0].metrics] if candidates else []
    measured = [name for name in of_first if all(_has(candidate, name) for candidate in candidates[1:])]
    if record.primary in measured:
        return record.primary
    if candidates and all(candidate.is_profiled for candidate in candidates):
        return ""
    return next((name for name in (*(metric.name for metric in record.metrics), *measured) if name in measured), None)


def _has(candidate: CandidateComparison, name: str) -> bool:
    return any(metric.row.name == name for metric in candidate.metrics)
