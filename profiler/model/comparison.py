"""Comparison: what changed between a baseline and candidates, row by row, with intervals and verdicts."""

from __future__ import annotations

from enum import StrEnum

from profiler.model.interval import Interval
from profiler.model.quality import ReportWarning
from profiler.model.quick_dataclass import dataclass


class Verdict(StrEnum):
    """Values as they stand in JSON; ``reports`` words them."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    TOO_FEW_RUNS = "too_few_runs"
    UNTESTABLE = "untestable"


class TestKind(StrEnum):
    """PAIRED: blocks of one interleaved session.  WELCH: separate sessions, hosts or processes.  CROSSOVER: processes that ran
    both arms, each its own pair.  NONE: one run per arm."""

    PAIRED = "paired t"
    WELCH = "Welch t"
    CROSSOVER = "crossover t"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Spread:
    """Per-run values of one arm, in run order, and what they look like.  ``mean_interval``: t interval of the mean, None for
    fewer than 2 values."""

    values: tuple[float, ...]
    mean: float
    median: float
    minimum: float
    maximum: float
    standard_deviation: float
    mean_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One row.  ``delta`` = candidate - baseline (means), so negative is faster.  ``relative`` = delta / baseline, None when
    the baseline is not above 0.  ``p_adjusted`` by Holm in the family; None where nothing was tested.  ``visible_effect``: the
    smallest effect these runs could show (same unit), ``runs_needed`` to decide the effect seen.  ``sigma`` = |delta| / its
    standard error.  ``no_overlap``: every value of one arm beyond every value of the other.  ``permutation_p`` only where it
    can reach 0.05 / rows.  ``sampling_share``: part of the variance that is sampling, not run to run, in 0..1.
    """

    name: str
    label: str
    baseline: Spread
    candidate: Spread
    delta: float
    delta_interval: Interval | None
    relative: float | None
    relative_interval: Interval | None
    p: float | None
    p_adjusted: float | None
    verdict: Verdict
    sigma: float | None
    no_overlap: bool
    visible_effect: float | None
    runs_needed: int | None
    permutation_p: float | None
    sampling_share: float | None
    note: str = ""


# Of the baseline and of the candidate: which watched process each value of a row is of; empty where values are runs.
InstanceNames = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """A metric or headline time of the plain runs ("wall", "user", "system", or a metric's name).  ``instances``: the processes
    that its values are of."""

    unit: str
    row: ComparisonRow
    instances: InstanceNames = ((), ())


@dataclass(frozen=True, slots=True)
class CandidateComparison:
    """``rows`` add up to ``total`` exactly; the last may be "(rest)".  ``family``: number of rows tested.  ``instances``: the
    processes that the values of the rows and of the total are of."""

    name: str
    runs: int
    test: TestKind
    family: int
    rows: tuple[ComparisonRow, ...]
    total: ComparisonRow
    metrics: tuple[MetricComparison, ...]
    instances: InstanceNames = ((), ())

    @property
    def is_profiled(self) -> bool:
        """Whether any run of the two arms was under perf; else there are times and metrics alone."""
        return bool(self.total.baseline.values or self.total.candidate.values)


@dataclass(frozen=True, slots=True)
class ProfilingCost:
    """``ratio``: mean CPU time (user + system) of the arm's profiled runs over that of its plain runs."""

    arm: str
    ratio: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """``margin`` is the equivalence margin as a fraction of the baseline's total; ``dimension`` what the rows are.
    ``profiling_costs``: of every arm that has both plain and profiled runs, the baseline first."""

    dimension: str
    unit: str
    event: str
    baseline_name: str
    baseline_runs: int
    candidates: tuple[CandidateComparison, ...]
    margin: float
    warnings: tuple[ReportWarning, ...]
    profiling_costs: tuple[ProfilingCost, ...] = ()
