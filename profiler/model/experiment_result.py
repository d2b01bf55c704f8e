"""What an experiment found beyond single comparisons: who accounts for the gain, steps, controls, composed pairs."""

from __future__ import annotations

from enum import StrEnum

from profiler.model.comparison import Comparison, ComparisonRow, TestKind, Verdict
from profiler.model.experiment import ExperimentRecord
from profiler.model.interval import Interval
from profiler.model.quality import ReportWarning
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class GainShare:
    """One row's part of the change of the total.  ``delta``: candidate - baseline; ``share`` = ``delta`` / the total's delta,
    so shares add up to 1, and one that worked against the change is negative.  ``share_interval`` is None where the total's
    change may be 0: then there is nothing to share."""

    name: str
    label: str
    delta: float
    share: float | None
    share_interval: Interval | None


class Agreement(StrEnum):
    """AGREE: the profile's relative change and the metric's differ by no more than chance.  DIFFER: by more.  UNTESTABLE: too
    few runs have both."""

    AGREE = "agree"
    DIFFER = "differ"
    UNTESTABLE = "untestable"


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """The profile's change beside a metric's.  Changes are relative (fractions); ``difference`` = profile - metric on the
    log scale, with its interval.  ``meaning``: what it says about the gain, "" when they agree."""

    metric: str
    profile_change: float | None
    metric_change: float | None
    difference: float | None
    difference_interval: Interval | None
    agreement: Agreement
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class GainAttribution:
    """Of one candidate.  ``rows``: those of the comparison's table, in its order.  ``agreements``: one per metric."""

    candidate: str
    rows: tuple[GainShare, ...]
    agreements: tuple[MetricAgreement, ...] = ()


@dataclass(frozen=True, slots=True)
class LadderStep:
    """``to_previous``, ``to_baseline``: the total or the primary metric against the step before and against the baseline."""

    name: str
    note: str
    to_previous: ComparisonRow
    to_baseline: ComparisonRow


@dataclass(frozen=True, slots=True)
class Ladder:
    """Steps in order, the baseline left out.  ``largest``: name of the step whose change from the one before is the largest
    of those that were flagged, "" = none was.  ``quantity``: what is compared, "CPU time" or a metric's name."""

    quantity: str
    unit: str
    baseline: str
    steps: tuple[LadderStep, ...]
    largest: str


@dataclass(frozen=True, slots=True)
class ControlRow:
    """A difference of differences: the change under the condition minus the change under the control, in ``unit``."""

    name: str
    label: str
    unit: str
    change: float
    control_change: float
    difference: float
    difference_interval: Interval | None
    p: float | None
    p_adjusted: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ControlResult:
    """One candidate under one condition, held against the control condition.  ``rows`` in the order of the condition's table;
    ``total`` and each of ``metrics`` are families of their own.  ``total``: None, and no ``rows``, where an arm has no
    profile."""

    candidate: str
    condition: str
    control: str
    unit: str
    rows: tuple[ControlRow, ...]
    total: ControlRow | None
    metrics: tuple[ControlRow, ...]


@dataclass(frozen=True, slots=True)
class ComposedRow:
    """A change that no run shows: ``baseline`` to ``via`` measured in one place, ``via`` to ``candidate`` in another.  Ratios
    (candidate / baseline) multiply; their intervals come from errors that add on the log scale."""

    name: str
    label: str
    first_ratio: float | None
    second_ratio: float | None
    ratio: float | None
    ratio_interval: Interval | None
    p: float | None
    p_adjusted: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ComposedComparison:
    """``rows`` of the table, then ``total`` and ``metrics``, each metric a family of its own.  ``total``: None, and no
    ``rows``, where a pair has no profile."""

    baseline: str
    via: str
    candidate: str
    dimension: str
    rows: tuple[ComposedRow, ...]
    total: ComposedRow | None
    metrics: tuple[ComposedRow, ...]
    warnings: tuple[ReportWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """All variants against the baseline under one condition, "" = the experiment has none.  ``gains``: one per candidate."""

    condition: str
    comparison: Comparison
    gains: tuple[GainAttribution, ...]
    ladder: Ladder | None = None


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """``conditions`` in the plan's order, controls included; ``controls``: every candidate under every other condition.
    ``repeated``: runs that failed or were disturbed and were made again, with the reason; ``left_out``: those that count for
    nothing and were not made again."""

    session: str
    started_at: str
    record: ExperimentRecord
    conditions: tuple[ConditionResult, ...]
    controls: tuple[ControlResult, ...] = ()
    repeated: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    warnings: tuple[ReportWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class PowerRow:
    """One row of the family, in ``unit``.  ``visible``: the smallest effect that 80 % of experiments of so many runs would
    flag, one per entry of ``PowerTable.runs``.  ``runs_for_margin``: runs that show a change of the margin, None = more
    than can be run.  ``sampling_share``: part of the variance that is sampling.  ``has_spread``: False where the runs agree
    exactly, which tells nothing of other runs."""

    name: str
    label: str
    unit: str
    mean: float
    visible: tuple[float, ...]
    runs_for_margin: int | None
    sampling_share: float | None
    advice: str = ""
    has_spread: bool = True


@dataclass(frozen=True, slots=True)
class PowerTable:
    """What experiments like this one could show of one candidate; with ``control``, a condition's name, of its change less the
    change there.  ``runs``: numbers of ``replicates`` ("runs" or "processes") per arm that are asked about.  ``promise``:
    the probabilities, within 5 points, that a visible effect is found: low where noise is heavy-tailed or skewed, high where it
    is normal.  ``total``: None, and no ``rows``, without 2 profiled runs of every arm."""

    candidate: str
    test: TestKind
    unit: str
    margin: float
    runs: tuple[int, ...]
    promise: Interval
    rows: tuple[PowerRow, ...]
    total: PowerRow | None
    metrics: tuple[PowerRow, ...]
    replicates: str = "runs"
    control: str = ""

    @property
    def profile(self) -> tuple[PowerRow, ...]:
        """Every row in ``unit``, the total last."""
        return self.rows if self.total is None else (*self.rows, self.total)

    def headline(self, primary: str) -> PowerRow:
        """The metric of that name; without it the total, or else the first metric."""
        named = next((row for row in self.metrics if row.name == primary), self.total)
        return named if named is not None else self.metrics[0]


@dataclass(frozen=True, slots=True)
class ExperimentPower:
    """``tables``, one at least: every candidate under every condition, then against the control.  ``unknown``: of which
    comparisons nothing is known, and why.  ``primary``: the metric that the experiment is about, "" = the total.  ``per``: work
    units in a run; weights and times are divided by it."""

    session: str
    primary: str
    tables: tuple[PowerTable, ...]
    unknown: tuple[str, ...] = ()
    per: float = 1.0
