"""Arms with given costs, for tests of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from profiler.model.costs import ArmCosts, ArmQuality, CostTable
from profiler.model.run import CaptureInfo, Metric, RunIdentity, RunMode, RunOutcome

PERIOD_NS = 1_000_000

GOOD_QUALITY = ArmQuality(
    status="ok",
    samples=10_000,
    lost_samples=0,
    complete=1.0,
    gap_possible=0.0,
    rootless=0.0,
    truncated=0.0,
    no_user_stack=0.0,
    unresolved=0.0,
    folded_interrupts=0.0,
    own_debug_share=1.0,
    partial_names=0.0,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where and when an arm's runs were made; round ``i`` of the arm is ``rounds[i]``, or ``i``."""

    session: str = "s1"
    host: str = "h1"
    mode: RunMode = RunMode.PROFILED
    rounds: Sequence[int] | None = None
    info: CaptureInfo = field(default_factory=lambda: CaptureInfo(RunIdentity("", "", 0, RunMode.PROFILED)))


def infos(variant: str, count: int, place: Place = Place()) -> tuple[CaptureInfo, ...]:
    rounds = place.rounds if place.rounds is not None else range(count)
    return tuple(
        replace(
            place.info,
            identity=RunIdentity(place.session, variant, number, place.mode, position=index),
            host=replace(place.info.host, hostname=place.host),
        )
        for index, number in enumerate(rounds)
    )


def arm(name: str, rows: Mapping[str, Sequence[int]], place: Place = Place(), **changes: Any) -> ArmCosts:
    """``rows``: weight per run in ns, by category; one sample per ms.  ``changes`` replace fields of the result."""
    table = cost_table(rows)
    made = ArmCosts(
        name=name,
        event="cpu-clock",
        unit="ns",
        view="leaf",
        phase="",
        rules="native",
        infos=infos(name, len(table.total), place),
        plain=(),
        failed=(),
        tables={"category": table},
        owners=(),
        other_functions=(),
        quality=GOOD_QUALITY,
        missing=(),
        phase_windows_ns=None,
        warnings=(),
    )
    return replace(made, **changes)


def cost_table(rows: Mapping[str, Sequence[int]]) -> CostTable:
    names = sorted(rows, key=lambda name: (-sum(rows[name]), name))
    weight = np.array([rows[name] for name in names], dtype=np.int64).reshape(len(names), len(next(iter(rows.values()), ())))
    return CostTable(
        dimension="category",
        names=tuple(names),
        labels=tuple(names),
        self_weight=weight,
        total_weight=weight,
        self_samples=weight // PERIOD_NS,
        self_squares=weight.astype(np.float64) * PERIOD_NS,
        total=weight.sum(axis=0),
    )


def with_times(runs: Sequence[CaptureInfo], wall_ns: Sequence[int], **metrics: Sequence[float]) -> tuple[CaptureInfo, ...]:
    """The runs with a wall time, 80 % user and 10 % system time of it, and metrics in ns."""
    return tuple(
        replace(
            info,
            outcome=RunOutcome(
                wall_ns=wall,
                user_ns=wall * 8 // 10,
                system_ns=wall // 10,
                metrics=tuple(Metric(name, values[index], "ns") for name, values in metrics.items()),
            ),
        )
        for index, (info, wall) in enumerate(zip(runs, wall_ns, strict=True))
    )
