"""The gain under a condition against the gain under the control condition, in which it should vanish.

A difference of differences: (candidate - baseline) under the condition minus (candidate - baseline) under the control.  Where
all four arms share rounds it is tested block by block; else as a contrast of four independent groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from profiler.analysis.comparison.compare_replicates import Matching, match_arms, match_runs, replicate_means
from profiler.analysis.comparison.compare_tables import TOTAL, arm_table, named_rows, table_family
from profiler.analysis.comparison.verdicts import judge_family
from profiler.analysis.measured_runs import headline_runs, measured, names_measured
from profiler.analysis.statistics import t_tests
from profiler.analysis.statistics.contrast import Term, contrast
from profiler.model.arrays import FloatColumn
from profiler.model.comparison import Verdict
from profiler.model.costs import ArmCosts, CostTable
from profiler.model.experiment_result import ControlResult, ControlRow
from profiler.model.interval import Interval
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo


@dataclass(frozen=True, slots=True)
class ArmPair:
    """Two builds under one condition, ``condition`` its name."""

    condition: str
    baseline: ArmCosts
    candidate: ArmCosts


@dataclass(frozen=True, slots=True)
class ControlFamily:
    """``values``: [rows, runs] of treated baseline and candidate, control baseline and candidate.  ``margin``: of the treated
    baseline's total (of its own mean, for a metric), in ``unit``."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    unit: str
    infos: tuple[Sequence[CaptureInfo], ...]
    values: tuple[FloatColumn, ...]
    margin: float

    def replicates(self) -> ControlReplicates:
        matching = match_arms(self.infos)
        if not matching.fewest:
            return ControlReplicates(False, 0, ())
        arms = zip(self.values, matching.arms, strict=True)
        values = tuple(replicate_means(arm, replicates) for arm, replicates in arms)
        return ControlReplicates(matching.is_paired, matching.fewest, values)


@dataclass(frozen=True, slots=True)
class ControlReplicates:
    """``values``: as in the family, [rows, replicates]; of paired arms the same blocks in all; none where an arm has no
    replicate.  ``fewest``: of any arm."""

    is_paired: bool
    fewest: int
    values: tuple[FloatColumn, ...]


@dataclass(frozen=True, slots=True)
class ControlFamilies:
    """What is tested together: the rows of the treated pair's comparison; the total; each metric."""

    rows: ControlFamily
    total: ControlFamily
    metrics: tuple[ControlFamily, ...]


def against_control(treated: ArmPair, control: ArmPair, dimension: str, margin: float) -> ControlResult:
    """``margin``: differences within this fraction of the treated baseline's mean total (of its own mean, for a metric) count
    as none.  The rows are those of the treated pair's comparison."""
    families = control_families(treated, control, dimension, margin)
    return ControlResult(
        candidate=treated.candidate.name,
        condition=treated.condition,
        control=control.condition,
        unit=treated.baseline.unit,
        rows=_compared(families.rows),
        total=next(iter(_compared(replace(families.total, margin=0.0))), None),
        metrics=tuple(row for family in families.metrics for row in _compared(family)),
    )


def control_families(treated: ArmPair, control: ArmPair, dimension: str, margin: float) -> ControlFamilies:
    """The values of all four arms."""
    arms = treated.baseline, treated.candidate, control.baseline, control.candidate
    infos = tuple(arm.infos for arm in arms)
    tables = tuple(arm_table(arm, dimension) for arm in arms)
    matching = match_runs(infos[0], infos[1])
    names, labels = _rows_of((tables[0], tables[1]), matching) if matching.fewest else ((), ())
    totals = tuple(table.total[np.newaxis, :].astype(np.float64) for table in tables)
    absolute = margin * float(totals[0].mean()) if totals[0].size else 0.0
    of_rows = tuple(named_rows(table, names).astype(np.float64) for table in tables)
    unit = treated.baseline.unit
    return ControlFamilies(
        ControlFamily(names, labels, unit, infos, of_rows, absolute),
        ControlFamily((TOTAL,), (TOTAL,), unit, infos, totals, absolute),
        _metric_families(treated, control, margin),
    )


def _rows_of(tables: tuple[CostTable, CostTable], matching: Matching) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and labels of the rows of a comparison."""
    rows = table_family(tables, matching, margin=0.0, untestable="")
    return rows.names, rows.labels


def _metric_families(treated: ArmPair, control: ArmPair, margin: float) -> tuple[ControlFamily, ...]:
    runs = (*headline_runs(treated.baseline, treated.candidate), *headline_runs(control.baseline, control.candidate))
    found: list[ControlFamily] = []
    for name in names_measured(runs, ()):
        of_arms = [measured(infos, name) for infos in runs]
        if all(arm.infos for arm in of_arms) and len(frozenset.union(*(arm.units for arm in of_arms))) == 1:
            values = tuple(np.array([arm.values], dtype=np.float64) for arm in of_arms)
            infos = tuple(arm.infos for arm in of_arms)
            absolute = margin * abs(float(values[0].mean()))
            found.append(ControlFamily((name,), (name,), min(of_arms[0].units), infos, values, absolute))
    return tuple(found)


def _compared(family: ControlFamily) -> tuple[ControlRow, ...]:
    found = family.replicates()
    if not family.names or not found.fewest:
        return ()
    values = found.values
    means = [arm.mean(axis=-1) for arm in values]
    changes, control_changes = means[1] - means[0], means[3] - means[2]
    if found.fewest < 2:
        return tuple(_untested(family, row, changes, control_changes) for row in range(len(family.names)))
    if found.is_paired:
        test = t_tests.paired_t(values[3] - values[2], values[1] - values[0])
    else:
        test = contrast([Term(arm, factor) for arm, factor in zip(values, (-1.0, 1.0, 1.0, -1.0), strict=True)])
    judged = judge_family(test, found.fewest, family.margin)
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


def _untested(family: ControlFamily, row: int, changes: FloatColumn, control_changes: FloatColumn) -> ControlRow:
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
