"""Small hand-built values for tests of renderers and commands: every number in them is meant to be added up by eye."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from profiler.model.call_stacks import CallFrame, CallStacks, ProcessWeights
from profiler.model.comparison import (
    CandidateComparison,
    Comparison,
    ComparisonRow,
    Interval,
    MetricComparison,
    Spread,
    TestKind,
    Verdict,
)
from profiler.model.costs import ArmCosts, ArmQuality, CostTable, MissingSymbols, OtherFunction, OwnerCell
from profiler.model.quality import ReportWarning
from profiler.model.run import CaptureInfo, HostFacts, Metric, ProgramFacts, RunIdentity, RunMode, RunOutcome
from profiler.model.shares import ShareIntervals
from support import arms

MS = 1_000_000


def cost_table(
    rows: dict[str, Sequence[int]], dimension: str = "category", totals: dict[str, Sequence[int]] | None = None
) -> CostTable:
    """``rows``: name -> self weight per run in ms; one sample per ms.  ``totals`` where they differ from self."""
    weights = np.array(list(rows.values()), np.int64).reshape(len(rows), -1)
    overall = weights if totals is None else np.array([totals[name] for name in rows], np.int64)
    return CostTable(
        dimension=dimension,
        names=tuple(rows),
        labels=tuple(rows),
        self_weight=weights * MS,
        total_weight=overall * MS,
        self_samples=weights,
        self_squares=weights.astype(np.float64) * MS**2,
        total=weights.sum(axis=0) * MS,
    )


GOOD_QUALITY = replace(arms.GOOD_QUALITY, samples=1000)


def run_info(
    variant: str = "base", mode: RunMode = RunMode.PROFILED, metrics: tuple[Metric, ...] = (), failure: str = ""
) -> CaptureInfo:
    return CaptureInfo(
        identity=RunIdentity("20260102-030405-abcd", variant, 0, mode),
        host=HostFacts(hostname="node-1", kernel="6.1.0", cpu="Some CPU"),
        program=ProgramFacts(path="/opt/bin/epoch", build_id="00aabb", toolchain="GNU C++17 12.2.0"),
        outcome=RunOutcome(metrics=metrics, failure=failure),
        command=("/opt/bin/epoch", "--count", "4 096"),
        revision="abc123",
    )


def arm_costs(
    tables: Sequence[CostTable],
    name: str = "base",
    unit: str = "ns",
    event: str = "cpu-clock",
    phase: str = "",
    infos: tuple[CaptureInfo, ...] | None = None,
    plain: tuple[CaptureInfo, ...] = (),
    failed: tuple[CaptureInfo, ...] = (),
    owners: tuple[OwnerCell, ...] = (),
    other_functions: tuple[OtherFunction, ...] = (),
    quality: ArmQuality = GOOD_QUALITY,
    missing: tuple[MissingSymbols, ...] = (),
    phase_windows_ns: Sequence[int] | None = None,
    warnings: tuple[ReportWarning, ...] = (),
) -> ArmCosts:
    runs = len(tables[0].total)
    return ArmCosts(
        name=name,
        event=event,
        unit=unit,
        view="leaf",
        phase=phase,
        rules="ethereum+native",
        infos=infos if infos is not None else (run_info(name),) * runs,
        plain=plain,
        failed=failed,
        tables={table.dimension: table for table in tables},
        owners=owners,
        other_functions=other_functions,
        quality=quality,
        missing=missing,
        phase_windows_ns=None if phase_windows_ns is None else np.array(phase_windows_ns, np.int64),
        warnings=warnings,
    )


def no_intervals(dimension: str = "category") -> ShareIntervals:
    return ShareIntervals(dimension, "none", ())


def spread(*values: float) -> Spread:
    """Mean, median and extremes by hand arithmetic on the few values that tests use."""
    ordered = sorted(values)
    mean = sum(values) / len(values)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    deviation = (sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5
    return Spread(tuple(values), mean, median, ordered[0], ordered[-1], deviation)


def comparison_row(
    name: str,
    baseline: Sequence[float],
    candidate: Sequence[float],
    verdict: Verdict = Verdict.UNDECIDED,
    delta_interval: tuple[float, float] | None = None,
    relative_interval: tuple[float, float] | None = None,
    p: float | None = None,
    visible_effect: float | None = None,
    runs_needed: int | None = None,
    sigma: float | None = None,
    no_overlap: bool = False,
    label: str = "",
    note: str = "",
) -> ComparisonRow:
    before, after = spread(*baseline), spread(*candidate)
    delta = after.mean - before.mean
    return ComparisonRow(
        name=name,
        label=label or name,
        baseline=before,
        candidate=after,
        delta=delta,
        delta_interval=Interval(*delta_interval) if delta_interval else None,
        relative=delta / before.mean if before.mean else None,
        relative_interval=Interval(*relative_interval) if relative_interval else None,
        p=p,
        p_adjusted=p,
        verdict=verdict,
        sigma=sigma,
        no_overlap=no_overlap,
        visible_effect=visible_effect,
        runs_needed=runs_needed,
        permutation_p=None,
        sampling_share=None,
        note=note,
    )


def comparison(
    rows: Sequence[ComparisonRow],
    total: ComparisonRow,
    metrics: Sequence[MetricComparison] = (),
    unit: str = "ns",
    warnings: tuple[ReportWarning, ...] = (),
    names: tuple[str, str] = ("base", "cand"),
    dimension: str = "category",
) -> Comparison:
    runs = len(total.baseline.values)
    candidate = CandidateComparison(
        name=names[1],
        runs=len(total.candidate.values),
        test=TestKind.PAIRED if runs > 1 else TestKind.NONE,
        family=len(rows),
        rows=tuple(rows),
        total=total,
        metrics=tuple(metrics),
    )
    return Comparison(
        dimension=dimension,
        unit=unit,
        event="cpu-clock",
        baseline_name=names[0],
        baseline_runs=runs,
        candidates=(candidate,),
        margin=0.01,
        warnings=warnings,
    )


def call_stacks(
    lines: dict[str, Sequence[int]],
    arm: str = "base",
    unit: str = "ns",
    process: str = "epoch",
    categories: dict[str, str] | None = None,
    separator: str = "/",
    files: dict[str, tuple[str, int]] | None = None,
) -> CallStacks:
    """``lines``: "main/work/leaf" -> self weight per run.  ``categories``: leaf name -> category, "other" unless given."""
    frame_rows: dict[str, int] = {}
    nodes: dict[tuple[str, ...], int] = {}
    prefix: list[int] = []
    frame: list[int] = []
    weights: dict[int, Sequence[int]] = {}
    for line, weight in lines.items():
        parts = tuple(line.split(separator))
        for depth in range(1, len(parts) + 1):
            if parts[:depth] not in nodes:
                nodes[parts[:depth]] = len(prefix)
                prefix.append(nodes.get(parts[: depth - 1], -1))
                frame.append(frame_rows.setdefault(parts[depth - 1], len(frame_rows)))
        weights[nodes[parts]] = weight
    runs = len(next(iter(lines.values())))
    names = sorted(set((categories or {}).values()) | {"other"})
    shown = [(categories or {}).get(name, "other") for name in frame_rows]
    places = files or {}
    sums = np.array([sum(weights.get(row, ())) for row in range(len(prefix))], np.int64)
    rows = np.flatnonzero(sums).astype(np.int32)
    return CallStacks(
        arm=arm,
        event="cpu-clock" if unit == "ns" else unit,
        unit=unit,
        processes=ProcessWeights((process,), rows, np.zeros(len(rows), np.int32), sums[rows]),
        frames=tuple(
            CallFrame(name, *places.get(name, ("", 0)), category) for name, category in zip(frame_rows, shown, strict=True)
        ),
        prefix=np.array(prefix, np.int32),
        frame=np.array(frame, np.int32),
        category=np.array([names.index(shown[row]) for row in frame], np.int32),
        categories=tuple(names),
        weight=np.array([weights.get(row, [0] * runs) for row in range(len(prefix))], np.int64),
    )
