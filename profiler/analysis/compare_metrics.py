"""Headline times and metrics of two arms: each a family of its own, from the runs without perf."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from profiler.analysis.compare_replicates import match_runs, replicate_means
from profiler.analysis.compare_rows import ArmValues, RowFamily, compare_family, spread
from profiler.errors import UsageError
from profiler.model.comparison import MetricComparison
from profiler.model.costs import ArmCosts
from profiler.model.quality import ReportWarning
from profiler.model.run import CaptureInfo, RunOutcome

# Beyond these sizes squares leave the range of a double; no time or count gets there.
_LARGEST = 1e150
_SMALLEST = 1e-150

_TIMES: tuple[tuple[str, Callable[[RunOutcome], int]], ...] = (
    ("wall", lambda outcome: outcome.wall_ns),
    ("user", lambda outcome: outcome.user_ns),
    ("system", lambda outcome: outcome.system_ns),
)


@dataclass(frozen=True, slots=True)
class MetricsResult:
    metrics: tuple[MetricComparison, ...]
    warnings: tuple[ReportWarning, ...]


@dataclass(frozen=True, slots=True)
class _Measured:
    """The runs of one arm that report a number, and the number."""

    infos: tuple[CaptureInfo, ...]
    values: tuple[float, ...]
    units: frozenset[str]


def compare_metrics(baseline: ArmCosts, candidate: ArmCosts, wanted: Sequence[str], margin: float) -> MetricsResult:
    """Wall, user and system time, then every metric by name, or only those ``wanted``.

    ``margin`` is a fraction of each baseline mean.  ``UsageError`` for a wanted name that neither arm has.
    """
    warnings: list[ReportWarning] = []
    has_plain = bool(baseline.plain and candidate.plain)
    runs = tuple(arm.plain if has_plain else (arm.infos or arm.plain) for arm in (baseline, candidate))
    names = _names(runs, wanted)
    if names and not has_plain:
        warnings.append(_profiled_times(baseline, candidate))
    found: list[MetricComparison] = []
    for name in names:
        measured = _measured(runs[0], name), _measured(runs[1], name)
        problem = _problem(name, measured, (baseline.name, candidate.name))
        if problem is not None:
            warnings.append(problem)
        if measured[0].infos and measured[1].infos and measured[0].units == measured[1].units:
            found.append(_compared(name, measured, margin))
    return MetricsResult(tuple(found), tuple(warnings))


def _compared(name: str, measured: tuple[_Measured, _Measured], margin: float) -> MetricComparison:
    matching = match_runs(measured[0].infos, measured[1].infos)
    baseline, candidate = (
        ArmValues(replicate_means(np.array([arm.values], dtype=np.float64), replicates))
        for arm, replicates in zip(measured, (matching.baseline, matching.candidate), strict=True)
    )
    absolute = margin * abs(spread(baseline.values[0].tolist()).mean)
    family = RowFamily((name,), (name,), ("",), baseline, candidate, matching.is_paired, absolute)
    return MetricComparison(unit=min(measured[0].units), row=compare_family(family).rows[0])


def _names(runs: Sequence[Sequence[CaptureInfo]], wanted: Sequence[str]) -> list[str]:
    infos = [info for arm in runs for info in arm]
    # A run whose times were not measured (a file, say) has a wall time of 0.
    known = [name for name, _ in _TIMES if any(info.outcome.wall_ns > 0 for info in infos)]
    known += sorted({metric.name for info in infos for metric in info.outcome.metrics} - set(known))
    if not wanted:
        return known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        nearest = difflib.get_close_matches(unknown[0], known, n=3, cutoff=0.4) or known
        hint = f"there are: {', '.join(nearest)}" if nearest else "these runs report none"
        raise UsageError(f"no metric or time {unknown[0]!r} in either arm; {hint}")
    return list(dict.fromkeys(wanted))


def _measured(infos: Sequence[CaptureInfo], name: str) -> _Measured:
    runs: list[CaptureInfo] = []
    values: list[float] = []
    units: set[str] = set()
    for info in infos:
        reading = _reading(info, name)
        if reading is not None:
            runs.append(info)
            values.append(reading[0])
            units.add(reading[1])
    return _Measured(tuple(runs), tuple(values), frozenset(units))


def _reading(info: CaptureInfo, name: str) -> tuple[float, str] | None:
    for metric in info.outcome.metrics:
        if metric.name == name:
            is_usable = math.isfinite(metric.value) and abs(metric.value) < _LARGEST
            return (metric.value if abs(metric.value) > _SMALLEST else 0.0, metric.unit) if is_usable else None
    for time, read in _TIMES:
        if time == name and info.outcome.wall_ns > 0:
            return float(read(info.outcome)), "ns"
    return None


def _problem(name: str, measured: tuple[_Measured, _Measured], arms: tuple[str, str]) -> ReportWarning | None:
    for arm, of_arm in zip(arms, measured, strict=True):
        if not of_arm.infos:
            message = f"{name}: no run of {arm} reports it, so it is not compared"
            return ReportWarning("metric-missing", message, "record both arms with the same --metric options")
    if measured[0].units != measured[1].units or len(measured[0].units) > 1:
        units = " / ".join(",".join(sorted(unit or "no unit" for unit in of_arm.units)) for of_arm in measured)
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
