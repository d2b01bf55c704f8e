"""Costs: weight per (row, run) for one selection of runs of one arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from profiler.model.arrays import FloatColumn, Int64Column
from profiler.model.quality import ReportWarning
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CostTable:
    """Rows x runs, integers in the event's unit, exact.

    ``names``: row names (category, function key, ...), sorted by their self weight in all runs, heaviest first, ties by total
    weight and then by name.
    ``labels``: the shown form of each name (for functions the complete name; else equal to ``names``).
    ``self_weight``, ``total_weight``, ``self_samples``: int64[rows, runs].  ``self_squares``: float64[rows, runs], the sum of
    the squared weights of the samples behind ``self_weight``, which says how far sampling may be off.  ``total``: int64[runs],
    the weight of all samples admitted; ``self_weight`` sums to it exactly.
    """

    dimension: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    self_weight: Int64Column
    total_weight: Int64Column
    self_samples: Int64Column
    self_squares: FloatColumn
    total: Int64Column


@dataclass(frozen=True, slots=True)
class OwnerCell:
    """``weight`` of ``leaf`` category charged to ``owner`` category, summed over all runs."""

    leaf: str
    owner: str
    weight: int


@dataclass(frozen=True, slots=True)
class OtherFunction:
    """A heavy function inside ``other`` and a rule line that would catch it."""

    name: str
    weight: int
    suggested_rule: str


@dataclass(frozen=True, slots=True)
class ArmQuality:
    """Weight shares (fractions of the admitted weight) and counts over all runs of an arm.

    ``status`` is "ok", "warn" or "failed"; ``folded_interrupts``: share of kernel interrupt and scheduler frames that were
    passed over to the user frame below.  ``own_debug_share``: of the weight whose innermost frame lies in the program's own
    executable, the part in units with DWARF; -1 when there is none.
    """

    status: str
    samples: int
    lost_samples: int
    complete: float
    gap_possible: float
    rootless: float
    truncated: float
    no_user_stack: float
    unresolved: float
    folded_interrupts: float
    own_debug_share: float
    partial_names: float


@dataclass(frozen=True, slots=True)
class MissingSymbols:
    """A DSO whose frames stayed without a name: its share of the weight, and why."""

    path: str
    build_id: str
    share: float
    reason: str


@dataclass(frozen=True, slots=True)
class ArmCosts:
    """All that reports and comparisons need of one arm: the runs in order, and their costs for one phase and rule set.

    ``infos``: one per profiled run, same order as the columns of every table.  ``plain``: the plain runs.  ``tables``: by
    dimension ("category", "function", ...).  ``view``: "leaf" or "owner", what ``tables["category"]`` holds.
    ``phase_windows_ns``: int64[runs], summed window length, or None without a phase.  ``groups``: of each category that has
    one.
    """

    name: str
    event: str
    unit: str
    view: str
    phase: str
    rules: str
    infos: tuple[CaptureInfo, ...]
    plain: tuple[CaptureInfo, ...]
    failed: tuple[CaptureInfo, ...]
    tables: dict[str, CostTable]
    owners: tuple[OwnerCell, ...]
    other_functions: tuple[OtherFunction, ...]
    quality: ArmQuality
    missing: tuple[MissingSymbols, ...]
    phase_windows_ns: Int64Column | None
    warnings: tuple[ReportWarning, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
