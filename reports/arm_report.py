"""What the renderers of one arm are given, and its rows."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.model.category import OTHER
from profiler.model.costs import ArmCosts, CostTable
from profiler.model.interval import Interval
from profiler.model.quick_dataclass import dataclass
from profiler.model.shares import ShareIntervals
from reports.quantities import Scale, count, scale_for


@dataclass(frozen=True, slots=True)
class ArmReport:
    """One table of an arm.  ``limit``: rows shown before the remainder is summed up, 0 = all."""

    costs: ArmCosts
    dimension: str
    shares: ShareIntervals
    limit: int = 0

    @property
    def table(self) -> CostTable:
        return self.costs.tables[self.dimension]

    @property
    def runs(self) -> int:
        return len(self.table.total)

    @property
    def divisor(self) -> int:
        """What sums are divided by to be shown per run; 1 when there is no run."""
        return max(1, self.runs)

    @property
    def scale(self) -> Scale:
        """One scale for everything that is shown of this arm."""
        return scale_for([self.total / self.divisor], self.costs.unit)

    @property
    def total(self) -> int:
        """Weight of all admitted samples of all runs."""
        return int(self.table.total.sum())


@dataclass(frozen=True, slots=True)
class ReportRow:
    """Weights and samples summed over the runs; ``share`` of ``self_weight`` in the total, 0 when that is 0.
    ``total_weight`` and ``interval`` are None for the row that sums up what a limit left out."""

    name: str
    label: str
    self_weight: int
    total_weight: int | None
    share: float
    interval: Interval | None
    samples: int


def report_rows(report: ArmReport, with_empty_other: bool = True) -> tuple[ReportRow, ...]:
    """Heaviest first.  With a limit, the rows beyond it become one row "other rows (n)"; the category ``other`` is always a
    row of its own, by default even when it is empty.  A single row beyond the limit is shown itself."""
    rows = _all_rows(report)
    if with_empty_other and report.dimension == "category" and all(row.name != OTHER for row in rows):
        rows.append(ReportRow(OTHER, OTHER, 0, 0, 0.0, None, 0))
    if not report.limit or len(rows) <= report.limit:
        return tuple(rows)
    kept = [row for place, row in enumerate(rows) if place < report.limit or _is_other(report, row)]
    left_out = [row for place, row in enumerate(rows) if place >= report.limit and not _is_other(report, row)]
    return (*kept, _summed(left_out, report.total)) if len(left_out) > 1 else tuple(rows)


def owner_breakdown(report: ArmReport) -> list[tuple[str, int, list[tuple[str, int]]]]:
    """(leaf, weight, [(owner, weight), ...]) of every category that is charged to others, heaviest first on both levels."""
    by_leaf: dict[str, list[tuple[str, int]]] = {}
    for cell in report.costs.owners:
        by_leaf.setdefault(cell.leaf, []).append((cell.owner, cell.weight))
    shared = [
        (leaf, sum(weight for _, weight in owners), sorted(owners, key=lambda owner: (-owner[1], owner[0])))
        for leaf, owners in by_leaf.items()
        if any(owner != leaf and weight for owner, weight in owners)
    ]
    return sorted(shared, key=lambda entry: (-entry[1], entry[0]))


def group_breakdown(report: ArmReport) -> list[tuple[str, int, list[tuple[str, int]]]]:
    """(group, weight, [(category, weight), ...]) of every group that is not one category of the same name, heaviest first on
    both levels; in the view of the report."""
    by_group: dict[str, dict[str, int]] = {}
    for cell in report.costs.owners:
        category = cell.owner if report.costs.view == "owner" else cell.leaf
        parts = by_group.setdefault(report.costs.groups.get(category, category), {})
        parts[category] = parts.get(category, 0) + cell.weight
    found = [
        (group, sum(parts.values()), sorted(parts.items(), key=lambda part: (-part[1], part[0])))
        for group, parts in by_group.items()
        if list(parts) != [group]
    ]
    return sorted(found, key=lambda entry: (-entry[1], entry[0]))


def _is_other(report: ArmReport, row: ReportRow) -> bool:
    return report.dimension == "category" and row.name == OTHER


def _all_rows(report: ArmReport) -> list[ReportRow]:
    table, total = report.table, report.total
    sums = zip(
        table.names,
        table.labels,
        table.self_weight.sum(axis=1).tolist(),
        table.total_weight.sum(axis=1).tolist(),
        table.self_samples.sum(axis=1).tolist(),
        report.shares.intervals or (None,) * len(table.names),
        strict=True,
    )
    return [
        ReportRow(name, label, own, overall, own / total if total else 0.0, interval, samples)
        for name, label, own, overall, samples, interval in sums
    ]


def _summed(rows: Sequence[ReportRow], total: int) -> ReportRow:
    name = f"other rows ({count(len(rows))})"
    weight = sum(row.self_weight for row in rows)
    return ReportRow(name, name, weight, None, weight / total if total else 0.0, None, sum(row.samples for row in rows))
