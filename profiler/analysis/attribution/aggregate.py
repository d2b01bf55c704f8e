"""Sums by category, function, file, thread, ...: exact integers, one table per dimension, one column per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.analysis.attribution.level_order import outermost_occurrences, preorder, sums_of_subtrees
from profiler.analysis.attribution.row_names import RowNames, names_of_rows
from profiler.analysis.statistics.exact_sums import float_sums_by_group, sums_by_group
from profiler.errors import UsageError
from profiler.model.analysis_choices import DIMENSIONS, SAMPLE_DIMENSIONS, STACK_DIMENSIONS, VIEWS
from profiler.model.arrays import FloatColumn, Int32Column, Int64Column
from profiler.model.costs import CostTable
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunTable:
    """One run's rows of one dimension, in no particular order; names are distinct."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    self_weight: Int64Column
    total_weight: Int64Column
    self_samples: Int64Column
    self_squares: FloatColumn


def run_tables(run: AttributedRun, dimensions: Sequence[str], view: str) -> dict[str, RunTable]:
    """The tables of one run, by dimension.  Raises ``UsageError`` for an unknown dimension or view."""
    for dimension in dimensions:
        if dimension not in DIMENSIONS:
            raise UsageError(f"unknown dimension '{dimension}': choose one of {', '.join(DIMENSIONS)}")
    if view not in VIEWS:
        raise UsageError(f"unknown view '{view}': choose leaf or owner")
    tables = {}
    inclusive = None
    for dimension in dict.fromkeys(dimensions):
        if dimension in STACK_DIMENSIONS:
            inclusive = inclusive or _inclusive(run)
            tables[dimension] = _by_stack(run, names_of_rows(run, dimension), inclusive)
        elif dimension in SAMPLE_DIMENSIONS:
            tables[dimension] = _by_sample(run, dimension)
        else:
            tables[dimension] = _by_category(run, dimension, view)
    return tables


def merge_runs(dimension: str, tables: Sequence[RunTable]) -> CostTable:
    """One table with a column per run; rows heaviest first, ties by total weight and then by name."""
    row_of: dict[str, int] = {}
    for table in tables:
        for name in table.names:
            row_of.setdefault(name, len(row_of))
    shape = (len(row_of), len(tables))
    columns = [np.zeros(shape, np.int64) for _ in range(3)]
    squares = np.zeros(shape)
    for run, table in enumerate(tables):
        rows = np.array([row_of[name] for name in table.names], np.int64)
        for column, values in zip(columns, (table.self_weight, table.total_weight, table.self_samples), strict=True):
            column[rows, run] = values
        squares[rows, run] = table.self_squares
    names = list(row_of)
    own, overall = (column.sum(axis=1).tolist() for column in columns[:2])
    order = sorted(range(len(names)), key=lambda row: (-own[row], -overall[row], names[row]))
    labels = _labels(tables)
    return CostTable(
        dimension=dimension,
        names=tuple(names[row] for row in order),
        labels=tuple(labels[names[row]] for row in order),
        self_weight=columns[0][order],
        total_weight=columns[1][order],
        self_samples=columns[2][order],
        self_squares=squares[order],
        total=columns[0].sum(axis=0),
    )


def _labels(tables: Sequence[RunTable]) -> Mapping[str, str]:
    """The label that most runs' weight carries; ties by label."""
    weights: dict[str, dict[str, int]] = {}
    for table in tables:
        for name, label, weight in zip(table.names, table.labels, table.total_weight.tolist(), strict=True):
            by_label = weights.setdefault(name, {})
            by_label[label] = by_label.get(label, 0) + weight
    return {name: min(by_label, key=lambda label: (-by_label[label], label)) for name, by_label in weights.items()}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Inclusive:
    """Per logical row: the weight of the row and everything below it, and its preorder interval."""

    weight: Int64Column
    enter: Int64Column
    end: Int64Column


def _inclusive(run: AttributedRun) -> _Inclusive:
    stacks = run.stacks
    enter, end = preorder(stacks.levels, stacks.prefix)
    return _Inclusive(sums_of_subtrees(stacks.levels, stacks.prefix, run.weight), enter, end)


def _by_stack(run: AttributedRun, rows: RowNames, inclusive: _Inclusive) -> RunTable:
    count = len(rows.names)
    own = rows.name[run.attribution.self_row]
    outermost = outermost_occurrences(inclusive.enter, inclusive.end, rows.name)
    total = sums_by_group(rows.name[outermost], inclusive.weight[outermost], count)
    sums = _self_sums(own, run, count)
    labels = rows.labels_by_weight(inclusive.weight)
    return _without_empty(RunTable(rows.names, labels, sums.weight, total, sums.samples, sums.squares))


def _by_category(run: AttributedRun, dimension: str, view: str) -> RunTable:
    number = run.attribution.owner_category if view == "owner" else run.attribution.leaf_category
    names = run.category_names()
    if dimension == "group":
        groups = (*run.matches.groups, "")
        names = tuple(group or name for group, name in zip(groups, names, strict=True))
    number = np.where(number < 0, len(names) - 1, number)
    return _merged_names(names, _self_sums(number, run, len(names)))


def _by_sample(run: AttributedRun, dimension: str) -> RunTable:
    capture = run.symbolized.capture
    samples = capture.samples
    weight = samples.weight[run.admitted]
    if dimension == "host":
        names: tuple[str, ...] = (capture.info.host.hostname or "[unknown]",)
        number = np.zeros(len(weight), np.int32)
    else:
        column = capture.threads.thread_name if dimension == "thread" else capture.threads.process_name
        names = tuple(capture.strings[row] if row >= 0 else "[unknown]" for row in column.tolist())
        number = samples.thread[run.admitted]
    ones, squares = np.ones(len(weight), np.int64), weight.astype(np.float64) ** 2
    return _merged_names(names, _grouped(number, _SelfSums(weight, ones, squares), len(names)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _SelfSums:
    """What samples add up to: their weight, their number, and their squared weights."""

    weight: Int64Column
    samples: Int64Column
    squares: FloatColumn


def _self_sums(number: Int32Column | Int64Column, run: AttributedRun, count: int) -> _SelfSums:
    return _grouped(number, _SelfSums(run.weight, run.count, run.squares), count)


def _grouped(number: Int32Column | Int64Column, sums: _SelfSums, count: int) -> _SelfSums:
    return _SelfSums(
        sums_by_group(number, sums.weight, count),
        sums_by_group(number, sums.samples, count),
        float_sums_by_group(number, sums.squares, count),
    )


def _merged_names(names: Sequence[str], sums: _SelfSums) -> RunTable:
    """Rows of equal name added up; total = self."""
    row_of: dict[str, int] = {}
    rows = np.array([row_of.setdefault(name, len(row_of)) for name in names], np.int64)
    merged = _grouped(rows, sums, len(row_of))
    shown = tuple(row_of)
    return _without_empty(RunTable(shown, shown, merged.weight, merged.weight, merged.samples, merged.squares))


def _without_empty(table: RunTable) -> RunTable:
    kept = np.flatnonzero((table.total_weight > 0) | (table.self_samples > 0))
    return RunTable(
        names=tuple(table.names[row] for row in kept),
        labels=tuple(table.labels[row] for row in kept),
        self_weight=table.self_weight[kept],
        total_weight=table.total_weight[kept],
        self_samples=table.self_samples[kept],
        self_squares=table.self_squares[kept],
    )
