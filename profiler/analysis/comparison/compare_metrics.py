"""Headline times and metrics of two arms: each a family of its own, from the runs without perf."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.comparison.compare_replicates import match_runs, replicate_means
from profiler.analysis.comparison.compare_rows import ArmValues, RowFamily, compare_family, spread
from profiler.analysis.measured_runs import Measured, headline_runs, measured, names_measured
from profiler.model.comparison import MetricComparison
from profiler.model.costs import ArmCosts
from profiler.model.quality import ReportWarning
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MetricsResult:
    metrics: tuple[MetricComparison, ...]
    warnings: tuple[ReportWarning, ...]


def compare_metrics(baseline: ArmCosts, candidate: ArmCosts, wanted: Sequence[str], margin: float) -> MetricsResult:
    """Wall, user and system time, then every metric by name, or only those ``wanted``.

    ``margin`` is a fraction of each baseline mean.  ``UsageError`` for a wanted name that neither arm has.
    """
    warnings: list[ReportWarning] = []
    runs = headline_runs(baseline, candidate)
    names = names_measured(runs, wanted)
    if names and not (baseline.plain and candidate.plain):
        warnings.append(_profiled_times(baseline, candidate))
    found: list[MetricComparison] = []
    for name in names:
        of_arms = measured(runs[0], name), measured(runs[1], name)
        problem = _problem(name, of_arms, (baseline.name, candidate.name))
        if problem is not None:
            warnings.append(problem)
        if of_arms[0].infos and of_arms[1].infos and of_arms[0].units == of_arms[1].units:
            found.append(_compared(name, of_arms, margin))
    return MetricsResult(tuple(found), tuple(warnings))


def _compared(name: str, of_arms: tuple[Measured, Measured], margin: float) -> MetricComparison:
    matching = match_runs(of_arms[0].infos, of_arms[1].infos)
    baseline, candidate = (
        ArmValues(replicate_means(np.array([arm.values], dtype=np.float64), replicates))
        for arm, replicates in zip(of_arms, (matching.baseline, matching.candidate), strict=True)
    )
    absolute = margin * abs(spread(baseline.values[0].tolist()).mean)
    family = RowFamily((name,), (name,), ("",), baseline, candidate, matching.is_paired, absolute)
    return MetricComparison(min(of_arms[0].units), compare_family(family).rows[0], matching.instances)


def _problem(name: str, of_arms: tuple[Measured, Measured], arms: tuple[str, str]) -> ReportWarning | None:
    for arm, runs in zip(arms, of_arms, strict=True):
        if not runs.infos:
            message = f"{name}: no run of {arm} reports it, so it is not compared"
            return ReportWarning("metric-missing", message, "record both arms with the same --metric options")
    if of_arms[0].units != of_arms[1].units or len(of_arms[0].units) > 1:
        units = " / ".join(",".join(sorted(unit or "no unit" for unit in runs.units)) for runs in of_arms)
        return ReportWarning("metric-unit", f"{name}: the runs report different units ({units}), so it is not compared")
    return None


def _profiled_times(baseline: ArmCosts, candidate: ArmCosts) -> ReportWarning:
    lacking = list(dict.fromkeys(arm.name for arm in (baseline, candidate) if not arm.plain))
    have = "has" if len(lacking) == 1 else "have"
    return ReportWarning(
        "no-plain-runs",
        f"times and metrics come from profiled runs: {' and '.join(lacking)} {have} no run without perf",
        "record with --profile separate, so that the cost of profiling stays out of the times",
    )
