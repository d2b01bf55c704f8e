"""The gain under a condition against the gain under the control condition, in which it should vanish.

A difference of differences: (candidate - baseline) under the condition minus (candidate - baseline) under the control.  Where
all four arms share rounds it is tested block by block; else as a contrast of four independent groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.analysis import stats
from profiler.analysis.compare_replicates import match_arms, match_runs, replicate_means
from profiler.analysis.compare_tables import TOTAL, arm_table, named_rows, table_family
from profiler.analysis.measured_runs import headline_runs, measured, names_measured
from profiler.analysis.stats_contrast import Term, contrast
from profiler.analysis.verdicts import judge_family
from profiler.model.arrays import FloatColumn
from profiler.model.comparison import Verdict
from profiler.model.costs import ArmCosts
from profiler.model.experiment_result import ControlResult, ControlRow
from profiler.model.interval import Interval
from profiler.model.run import CaptureInfo


@dataclass(frozen=True, slots=True)
class ArmPair:
    """Two builds under one condition, ``condition`` its name."""

    condition: str
    baseline: ArmCosts
    candidate: ArmCosts


@dataclass(frozen=True, slots=True)
class _Family:
    """``values``: [rows, runs] of treated baseline and candidate, control baseline and candidate."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    unit: str
    infos: tuple[Sequence[CaptureInfo], ...]
    values: tuple[FloatColumn, ...]


def against_control(treated: ArmPair, control: ArmPair, dimension: str, margin: float) -> ControlResult:
    """``margin``: differences within this fraction of the treated baseline's mean total (of its own mean, for a metric) count
    as none.  The rows are those of the treated pair's comparison."""
    arms = treated.baseline, treated.candidate, control.baseline, control.candidate
    rows, total = _profile_rows(arms, dimension, margin) if all(arm.infos for arm in arms) else ((), None)
    return ControlResult(
        candidate=treated.candidate.name,
        condition=treated.condition,
        control=control.condition,
        unit=treated.baseline.unit,
        rows=rows,
        total=total,
        metrics=_metric_rows(treated, control, margin),
    )


def _profile_rows(
    arms: tuple[ArmCosts, ...], dimension: str, margin: float
) -> tuple[tuple[ControlRow, ...], ControlRow | None]:
    """Of four arms as in ``_Family``; the rows, and the total, which is None without a run that all have."""
    infos = tuple(arm.infos for arm in arms)
    tables = tuple(arm_table(arm, dimension) for arm in arms)
    totals = tuple(table.total[np.newaxis, :].astype(np.float64) for table in tables)
    total = _compared(_Family((TOTAL,), (TOTAL,), arms[0].unit, infos, totals), 0.0)
    matching = match_runs(infos[0], infos[1])
    if not total or not matching.fewest:
        return (), None
    rows = table_family((tables[0], tables[1]), matching, margin=0.0, untestable="")
    values = tuple(named_rows(table, rows.names).astype(np.float64) for table in tables)
    by_row = _Family(rows.names, rows.labels, arms[0].unit, infos, values)
    return _compared(by_row, margin * float(totals[0].mean())), total[0]


def _metric_rows(treated: ArmPair, control: ArmPair, margin: float) -> tuple[ControlRow, ...]:
    runs = (*headline_runs(treated.baseline, treated.candidate), *headline_runs(control.baseline, control.candidate))
    found: list[ControlRow] = []
    for name in names_measured(runs, ()):
        of_arms = [measured(infos, name) for infos in runs]
        if all(arm.infos for arm in of_arms) and len(frozenset.union(*(arm.units for arm in of_arms))) == 1:
            values = tuple(np.array([arm.values], dtype=np.float64) for arm in of_arms)
            unit = min(of_arms[0].units)
            family = _Family((name,), (name,), unit, tuple(arm.infos for arm in of_arms), values)
            found.extend(_compared(family, margin * abs(float(values[0].mean()))))
    return tuple(found)


def _compared(family: _Family, margin: float) -> tuple[ControlRow, ...]:
    matching = match_arms(family.infos)
    if not family.names or not matching.fewest:
        return ()
    values = [replicate_means(arm, replicates) for arm, replicates in zip(family.values, matching.arms, strict=True)]
    means = [arm.mean(axis=-1) for arm in values]
    changes, control_changes = means[1] - means[0], means[3] - means[2]
    if matching.fewest < 2:
        return tuple(_untested(family, row, changes, control_changes) for row in range(len(family.names)))
    if matching.is_paired:
        test = stats.paired_t(values[3] - values[2], values[1] - values[0])
    else:
        test = contrast([Term(arm, factor) for arm, factor in zip(values, (-1.0, 1.0, 1.0, -1.0), strict=True)])
    judged = judge_family(test, matching.fewest, margin)
    return tuple(
        ControlRow(
            name=name,
            label=family.labels[row],
            unit=family.unit,
            change=float(changes[row]),
            control_change=float(control_changes[row]),
            difference=float(test.difference[row]),
            difference_interval=Interval(float(test.low[row]), float(test.high[row])) if test.is_testable[row] else None,
            p=float(test.p[row]) if judged.is_tested[row] else None,
            p_adjusted=float(judged.p_adjusted[row]) if judged.is_tested[row] else None,
            verdict=judged.verdicts[row],
        )
        for row, name in enumerate(family.names)
    )


def _untested(family: _Family, row: int, changes: FloatColumn, control_changes: FloatColumn) -> ControlRow:
    change, control_change = float(changes[row]), float(control_changes[row])
    return ControlRow(
        name=family.names[row],
        label=family.labels[row],
        unit=family.unit,
        change=change,
        control_change=control_change,
        difference=change - control_change,
        difference_interval=None,
        p=None,
        p_adjusted=None,
        verdict=Verdict.TOO_FEW_RUNS,
    )
