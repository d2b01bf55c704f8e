"""Numbers of the runs themselves: wall, user and system time, and the metrics, as measured in each run."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence

from profiler.errors import UsageError
from profiler.model.costs import ArmCosts
from profiler.model.quick_dataclass import dataclass
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
class Measured:
    """The runs of one arm that report a number, and the number."""

    infos: tuple[CaptureInfo, ...]
    values: tuple[float, ...]
    units: frozenset[str]


def headline_runs(baseline: ArmCosts, candidate: ArmCosts) -> tuple[Sequence[CaptureInfo], Sequence[CaptureInfo]]:
    """The runs whose times count: plain ones where both arms have them, else the profiled ones."""
    has_plain = bool(baseline.plain and candidate.plain)
    base, cand = (arm.plain if has_plain else (arm.infos or arm.plain) for arm in (baseline, candidate))
    return base, cand


def names_measured(runs: Sequence[Sequence[CaptureInfo]], wanted: Sequence[str]) -> list[str]:
    """Wall, user and system time where they were measured, then every metric by name; or those ``wanted``.

    ``UsageError`` for a wanted name that no run has.
    """
    infos = [info for arm in runs for info in arm]
    # A run whose times were not measured (a file, say) has a wall time of 0.
    known = [name for name, _ in _TIMES if any(info.outcome.wall_ns > 0 for info in infos)]
    if any(info.identity.is_window for info in infos):
        known = [name for name in known if name != "wall"]  # whoever watched decided how long a window lasts
    known += sorted({metric.name for info in infos for metric in info.outcome.metrics} - set(known))
    if not wanted:
        return known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        nearest = difflib.get_close_matches(unknown[0], known, n=3, cutoff=0.4) or known
        hint = f"there are: {', '.join(nearest)}" if nearest else "these runs report none"
        raise UsageError(f"no metric or time {unknown[0]!r} in either arm; {hint}")
    return list(dict.fromkeys(wanted))


def measured(infos: Sequence[CaptureInfo], name: str) -> Measured:
    """The runs that report ``name``, in order."""
    runs: list[CaptureInfo] = []
    values: list[float] = []
    units: set[str] = set()
    for info in infos:
        reading = _reading(info, name)
        if reading is not None:
            runs.append(info)
            values.append(reading[0])
            units.add(reading[1])
    return Measured(tuple(runs), tuple(values), frozenset(units))


def _reading(info: CaptureInfo, name: str) -> tuple[float, str] | None:
    for metric in info.outcome.metrics:
        if metric.name == name:
            is_usable = math.isfinite(metric.value) and abs(metric.value) < _LARGEST
            return (metric.value if abs(metric.value) > _SMALLEST else 0.0, metric.unit) if is_usable else None
    for time, read in _TIMES:
        if time == name and info.outcome.wall_ns > 0:
            return float(read(info.outcome)), "ns"
    return None
