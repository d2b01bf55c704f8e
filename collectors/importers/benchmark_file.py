"""A benchmark's file on its way to measured arms: what its reader is given, and what it makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, Metric, RunIdentity, RunMode, RunOutcome


@dataclass(frozen=True, slots=True)
class MeasuredArm:
    """``name``: what was measured; ``runs`` in the file's order, failed ones with the reason."""

    name: str
    runs: tuple[CaptureInfo, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """``source``: the file's name for messages; ``info``: what is known of all of its runs."""

    source: str
    document: Mapping[str, Any]
    info: CaptureInfo

    def error(self, message: str) -> FormatError:
        return FormatError(self.source, message)

    def run(self, arm: str, number: int, outcome: RunOutcome) -> CaptureInfo:
        """Belongs to no session, so it is never taken for the partner of another arm's run."""
        identity = RunIdentity("", arm, number, RunMode.PLAIN, position=number)
        return replace(self.info, identity=identity, outcome=outcome)


def number(value: object) -> float | None:
    """A finite number, ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def duration(name: str, value_ns: float) -> Metric:
    """A metric in ns."""
    return Metric(name, value_ns, "ns", (value_ns,))
