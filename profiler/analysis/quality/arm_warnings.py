"""What one arm's own runs warn of: drift, outliers, lost samples, unresolved weight, failures, the cost of profiling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.quality.window_warnings import window_warnings
from profiler.analysis.statistics import spread
from profiler.model.arrays import FloatColumn
from profiler.model.comparison import ProfilingCost
from profiler.model.costs import ArmCosts
from profiler.model.quality import ReportWarning
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo

LOST_SHARE = 0.001
UNRESOLVED_SHARE = 0.20
PROFILING_COST = 1.10


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Series:
    """Values of runs in execution order."""

    what: str
    infos: tuple[CaptureInfo, ...]
    values: FloatColumn


def arm_warnings(arm: ArmCosts, totals: Sequence[int]) -> tuple[ReportWarning, ...]:
    """The arm's own warnings, headed by its name, and those that follow from its runs.  ``totals``: weight per profiled run."""
    found = [ReportWarning(w.code, _headed(arm.name, w.message), w.advice) for w in arm.warnings]
    known = {warning.code for warning in found}
    found += [warning for warning in _quality(arm) if warning.code not in known]
    for series in _series(arm, totals):
        found += _drift(arm.name, series)
        found += _outliers(arm.name, series)
    found += window_warnings(arm)
    found += _disturbed(arm)
    cost = profiling_cost(arm)
    if cost is not None and cost.ratio >= PROFILING_COST:
        message = f"{arm.name}: profiling cost {100 * (cost.ratio - 1):.0f} % CPU time"
        found.append(ReportWarning("profiling-cost", message, "record with a lower --frequency"))
    return tuple(found)


def _disturbed(arm: ArmCosts) -> list[ReportWarning]:
    """Runs that count although something else happened on their host meanwhile."""
    disturbed = [info.outcome.disturbance for info in (*arm.plain, *arm.infos) if info.outcome.disturbance]
    if not disturbed:
        return []
    runs = len(arm.plain) + len(arm.infos)
    was = "was" if len(disturbed) == 1 else "were"
    message = f"{arm.name}: {len(disturbed)} of {runs} runs {was} disturbed ({disturbed[0]})"
    return [ReportWarning("disturbed", message, "leave the machine alone and record again")]


def profiling_cost(arm: ArmCosts) -> ProfilingCost | None:
    """Mean CPU time (user + system) of the profiled runs over that of the plain runs; None where either is unknown."""
    plain, profiled = ([i.outcome.user_ns + i.outcome.system_ns for i in infos] for infos in (arm.plain, arm.infos))
    if not sum(plain) or not sum(profiled):
        return None
    return ProfilingCost(arm.name, (sum(profiled) / len(profiled)) / (sum(plain) / len(plain)))


def _quality(arm: ArmCosts) -> list[ReportWarning]:
    found: list[ReportWarning] = []
    quality = arm.quality
    seen = quality.samples + quality.lost_samples
    if quality.lost_samples > LOST_SHARE * seen:
        share = 100 * quality.lost_samples / seen
        message = f"{arm.name}: {quality.lost_samples:,} samples were lost ({share:.1f} %)"
        found.append(ReportWarning("lost-samples", message, "record with a lower --frequency or a smaller stack dump"))
    if quality.unresolved > UNRESOLVED_SHARE:
        message = f"{arm.name}: {100 * quality.unresolved:.0f} % of the weight has no function name"
        found.append(ReportWarning("unresolved", message, "see the missing files: slotscope report"))
    if arm.failed:
        runs = "1 run" if len(arm.failed) == 1 else f"{len(arm.failed)} runs"
        message = f"{arm.name}: {runs} failed and left out ({arm.failed[0].outcome.failure})"
        found.append(ReportWarning("failed-runs", message, "see why: slotscope show"))
    return found


def _series(arm: ArmCosts, totals: Sequence[int]) -> list[_Series]:
    """Per host: CPU time in the profiles of the profiled runs, wall time of the plain ones."""
    found = []
    for what, infos, values in (
        ("profiled total", arm.infos, totals),
        ("wall time", arm.plain, [info.outcome.wall_ns for info in arm.plain]),
    ):
        for host in sorted({info.host.hostname for info in infos}):
            runs = [run for run, info in enumerate(infos) if info.host.hostname == host]
            runs.sort(key=lambda run: _execution_order(infos[run]))
            in_order = tuple(infos[run] for run in runs)
            found.append(_Series(what, in_order, np.array([values[run] for run in runs], dtype=np.float64)))
    return [series for series in found if len(series.values) >= spread.FEWEST_RUNS]


def _execution_order(info: CaptureInfo) -> tuple[str, str, int]:
    return info.identity.session, info.started_at, info.identity.position


def _drift(name: str, series: _Series) -> list[ReportWarning]:
    """Only where the order of the runs is known."""
    if len({_execution_order(info) for info in series.infos}) < len(series.infos):
        return []
    found = spread.trend(series.values)
    if not found.is_notable:
        return []
    message = f"{name}: {series.what} drifted by {100 * found.change:+.1f} % from the first run to the last (p {found.p:.2g})"
    return [
        ReportWarning(
            "order-drift", message, "let the machine warm up (--warmup) and keep it quiet; arms of one session share the drift"
        )
    ]


def _outliers(name: str, series: _Series) -> list[ReportWarning]:
    found = np.flatnonzero(spread.outliers(series.values)).tolist()
    if not found:
        return []
    median = float(np.median(series.values))
    runs = ", ".join(f"run {run + 1} ({100 * (series.values[run] / median - 1):+.1f} %)" for run in found)
    limit = spread.outlier_limit(len(series.values))
    message = f"{name}: {series.what} of {runs} stands apart from the median (modified z-score beyond {limit:.1f})"
    return [ReportWarning("outliers", message, "nothing was removed; find out what else ran, or record more runs")]


def _headed(name: str, message: str) -> str:
    return message if message.startswith(f"{name}:") else f"{name}: {message}"
