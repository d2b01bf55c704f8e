"""What the windows of watched processes warn of: drift from window to window, and processes that stand apart.

The process is the replicate; its windows say whether it was in a steady state while it was watched.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

from profiler.analysis.measured_runs import Measured, measured, names_measured
from profiler.analysis.statistics import spread
from profiler.model.arrays import FloatColumn
from profiler.model.costs import ArmCosts
from profiler.model.quality import ReportWarning
from profiler.model.run import CaptureInfo

_Key = TypeVar("_Key", bound=Hashable)


def window_warnings(arm: ArmCosts) -> list[ReportWarning]:
    """Of every metric of an arm whose runs are windows of processes; none of other arms."""
    windows = [info for info in (arm.plain or arm.infos) if info.identity.instance]
    found: list[ReportWarning] = []
    for name in names_measured([windows], ()):
        values = measured(windows, name)
        if len(values.units) == 1:
            found += _drift(arm.name, name, values)
            found += _outliers(arm.name, name, values)
    return found


def _drift(arm: str, name: str, values: Measured) -> list[ReportWarning]:
    """Over the windows, each the mean of what all processes in it are off their own mean."""
    of_process = _groups([_process(info) for info in values.infos])
    of_window = _groups([info.identity.round for info in values.infos])
    if len(of_window) < spread.FEWEST_RUNS:
        return []
    taken = np.array(values.values, dtype=np.float64)
    level = float(np.mean([taken[places].mean() for places in of_process.values()]))
    for places in of_process.values():
        taken[places] -= taken[places].mean()
    series: FloatColumn = level + np.array([taken[of_window[number]].mean() for number in sorted(of_window)])
    found = spread.trend(series)
    if not found.is_notable:
        return []
    message = f"{arm}: {name} drifted by {100 * found.change:+.1f} % from the first window to the last (p {found.p:.2g})"
    advice = "let the processes settle (settle) and watch both arms at the same time: then they share the drift"
    return [ReportWarning("order-drift", message, advice)]


def _outliers(arm: str, name: str, values: Measured) -> list[ReportWarning]:
    groups = _groups([_process(info) for info in values.infos])
    if len(groups) < spread.FEWEST_RUNS:
        return []
    taken = np.array(values.values, dtype=np.float64)
    means = np.array([taken[places].mean() for places in groups.values()])
    apart = np.flatnonzero(spread.outliers(means)).tolist()
    if not apart:
        return []
    median, processes = float(np.median(means)), [process for _, process in groups]
    shown = ", ".join(f"{processes[place]} ({100 * (means[place] / median - 1):+.1f} %)" for place in apart)
    limit = spread.outlier_limit(len(means))
    message = f"{arm}: {name} of {shown} stands apart from the median (modified z-score beyond {limit:.1f})"
    return [ReportWarning("outliers", message, "nothing was removed; find out what else that host does, or exclude it")]


def _process(info: CaptureInfo) -> tuple[str, str]:
    return info.host.hostname, info.identity.instance


def _groups(keys: Sequence[_Key]) -> dict[_Key, list[int]]:
    found: dict[_Key, list[int]] = {}
    for place, key in enumerate(keys):
        found.setdefault(key, []).append(place)
    return found
