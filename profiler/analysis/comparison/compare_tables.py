"""The rows of two cost tables side by side, and the small ones gathered in one row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.comparison.compare_replicates import Matching, replicate_means
from profiler.analysis.comparison.compare_rows import ArmValues, RowFamily
from profiler.analysis.statistics.spread import sampling_variance
from profiler.errors import UsageError
from profiler.model.arrays import BoolColumn, FloatColumn, Int64Column
from profiler.model.costs import ArmCosts, CostTable
from profiler.model.quick_dataclass import dataclass

REST = "(rest)"
TOTAL = "total"
# Rows below this part of the pooled mean of the totals are gathered.
SMALLEST_SHARE = 0.005


@dataclass(frozen=True, slots=True)
class _ArmRows:
    """``weight`` int64[rows, runs], ``squares`` float64[rows, runs], ``total`` int64[runs], rows in an order common to both
    arms."""

    weight: Int64Column
    squares: FloatColumn
    total: Int64Column


def arm_table(arm: ArmCosts, dimension: str) -> CostTable:
    """The arm's table; an empty one for an arm without profiled runs.  ``UsageError`` for a dimension that it does not have."""
    if not arm.infos:
        return _empty_table(dimension)
    table = arm.tables.get(dimension)
    if table is None:
        raise UsageError(f"{arm.name} has no rows by {dimension!r}; there are: {', '.join(sorted(arm.tables))}")
    return table


def _empty_table(dimension: str) -> CostTable:
    """Of an arm without profiled runs."""
    no_rows = np.zeros((0, 0), dtype=np.int64)
    return CostTable(dimension, (), (), no_rows, no_rows, no_rows, np.zeros((0, 0)), np.zeros(0, dtype=np.int64))


def table_family(tables: tuple[CostTable, CostTable], matching: Matching, margin: float, untestable: str) -> RowFamily:
    """The family of (baseline, candidate): rows by size of the difference, largest first, ties by name; ``(rest)`` last.

    Rows of one arm alone are 0 in the other.  For every replicate the rows add up to the total.
    """
    names = sorted({*tables[0].names, *tables[1].names})
    arms = _aligned(tables[0], names), _aligned(tables[1], names)
    shares = _pooled_shares(arms, matching)
    is_kept = shares >= SMALLEST_SHARE
    arms = _gathered(arms[0], is_kept), _gathered(arms[1], is_kept)
    values = _replicates(arms, matching)
    kept_names = [name for name, kept in zip(names, is_kept.tolist(), strict=True) if kept]
    order = _order(kept_names, values[1].values.mean(axis=-1) - values[0].values.mean(axis=-1))
    notes = [""] * len(kept_names)
    if not is_kept.all():
        order.append(len(kept_names))
        kept_names.append(REST)
        notes.append(_rest_note(int((~is_kept).sum())))
    labels = _labels(tables)
    return RowFamily(
        names=tuple(kept_names[row] for row in order),
        labels=tuple(labels.get(kept_names[row], kept_names[row]) for row in order),
        notes=tuple(notes[row] for row in order),
        baseline=_reordered(values[0], order),
        candidate=_reordered(values[1], order),
        is_paired=matching.is_paired,
        margin=margin,
        untestable=untestable,
    )


def named_rows(table: CostTable, names: Sequence[str]) -> Int64Column:
    """int64[len(names), runs]: self weight of each row by name, 0 where the table lacks it; ``REST`` is what the others leave
    of the total, so the rows of a family add up in every table."""
    own = [name for name in names if name != REST]
    rows = _aligned(table, sorted({*own, *table.names}))
    position = {name: row for row, name in enumerate(sorted({*own, *table.names}))}
    weight = np.zeros((len(names), len(table.total)), dtype=np.int64)
    for row, name in enumerate(names):
        weight[row] = rows.weight[position[name]] if name != REST else 0
    for row, name in enumerate(names):
        if name == REST:
            weight[row] = table.total - weight.sum(axis=0)
    return weight


def total_family(tables: tuple[CostTable, CostTable], matching: Matching) -> RowFamily:
    """The total as a family of its own, with a margin of 0; no part of its variance is sampling, for the timer fixes it."""
    baseline, candidate = (
        ArmValues(replicate_means(table.total[np.newaxis, :], replicates))
        for table, replicates in zip(tables, (matching.baseline, matching.candidate), strict=True)
    )
    return RowFamily((TOTAL,), (TOTAL,), ("",), baseline, candidate, matching.is_paired, 0.0)


def _aligned(table: CostTable, names: Sequence[str]) -> _ArmRows:
    weight = np.zeros((len(names), len(table.total)), dtype=np.int64)
    squares = np.zeros(weight.shape)
    position = {name: row for row, name in enumerate(names)}
    rows = np.array([position[name] for name in table.names], dtype=np.int64)
    weight[rows] = table.self_weight
    squares[rows] = table.self_squares
    return _ArmRows(weight, squares, table.total)


def _pooled_shares(arms: tuple[_ArmRows, _ArmRows], matching: Matching) -> FloatColumn:
    """Each row's part of the total, both taken as the mean of the two arms' means; so exchanging the arms changes nothing."""
    sides = tuple(zip(arms, (matching.baseline, matching.candidate), strict=True))
    weight = sum(replicate_means(arm.weight, replicates).mean(axis=-1) for arm, replicates in sides)
    total = float(sum(replicate_means(arm.total, replicates).mean() for arm, replicates in sides))
    return np.asarray(weight / total if total > 0 else np.ones(len(arms[0].weight)), dtype=np.float64)


def _gathered(arm: _ArmRows, is_kept: BoolColumn) -> _ArmRows:
    """Kept rows, then the sum of the others where there are any."""
    if is_kept.all():
        return arm
    weight = np.concatenate([arm.weight[is_kept], arm.weight[~is_kept].sum(axis=0, keepdims=True)])
    squares = np.concatenate([arm.squares[is_kept], arm.squares[~is_kept].sum(axis=0, keepdims=True)])
    return _ArmRows(weight, squares, arm.total)


def _replicates(arms: tuple[_ArmRows, _ArmRows], matching: Matching) -> tuple[ArmValues, ArmValues]:
    baseline, candidate = (
        ArmValues(replicate_means(arm.weight, replicates), _sampling(arm, replicates))
        for arm, replicates in zip(arms, (matching.baseline, matching.candidate), strict=True)
    )
    return baseline, candidate


def _sampling(arm: _ArmRows, replicates: Sequence[Sequence[int]]) -> FloatColumn:
    by_run = sampling_variance(arm.weight.astype(np.float64), arm.squares, arm.total.astype(np.float64))
    return replicate_means(by_run, replicates) / np.array([len(runs) for runs in replicates], dtype=np.float64)


def _order(names: Sequence[str], deltas: FloatColumn) -> list[int]:
    return sorted(range(len(names)), key=lambda row: (-abs(float(deltas[row])), names[row]))


def _reordered(arm: ArmValues, order: Sequence[int]) -> ArmValues:
    rows = list(order)
    return ArmValues(arm.values[rows], arm.sampling[rows] if arm.sampling is not None else None)


def _labels(tables: tuple[CostTable, CostTable]) -> dict[str, str]:
    """The candidate's label, where it has one: it is the code that the reader works on."""
    labels: dict[str, str] = {}
    for table in tables:
        labels.update(zip(table.names, table.labels, strict=True))
    return labels


def _rest_note(count: int) -> str:
    rows = "1 row" if count == 1 else f"{count} rows"
    return f"{rows} of less than {100 * SMALLEST_SHARE:g} % of the total each"
