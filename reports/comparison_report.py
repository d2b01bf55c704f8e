"""What the renderers of a comparison are given, and its rows."""

from __future__ import annotations

from profiler.model.comparison import CandidateComparison, Comparison, ComparisonRow, InstanceNames, MetricComparison
from profiler.model.costs import ArmCosts
from profiler.model.quick_dataclass import dataclass
from reports.quantities import Scale, count, scale_for
from reports.wording import Terms, method_line, metrics_method_line, result_sentence


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """``arms``: the baseline's costs, then each candidate's, for quality, build IDs and commands.  ``limit``: rows shown
    before the remainder is summed up, 0 = all.  ``per``: the units of work of a run, one of which is shown.
    ``better_higher``: metrics of which more is better."""

    comparison: Comparison
    arms: tuple[ArmCosts, ...] = ()
    limit: int = 0
    per: float = 1.0
    better_higher: frozenset[str] = frozenset()


def per_lines(per: float) -> list[str]:
    """What weights and times are divided by, if by anything."""
    return [f"weights and {units_text(per)}"] if per != 1 else []


def units_text(per: float) -> str:
    return f"times are per unit of work, {per:g} of which are in a run; metrics are as the program reports them"


@dataclass(frozen=True, slots=True)
class RowsSum:
    """The rows that a limit left out, added up: plain sums, so nothing is said about their significance."""

    label: str
    baseline: float
    candidate: float
    delta: float


def shown_rows(candidate: CandidateComparison, limit: int) -> tuple[tuple[ComparisonRow, ...], RowsSum | None]:
    """The first ``limit`` rows and the sum of the others, which is None when nothing was left out.  A single row beyond the
    limit is shown: its sum would take the same line and say less."""
    if not limit or len(candidate.rows) <= limit + 1:
        return candidate.rows, None
    rest = candidate.rows[limit:]
    summed = RowsSum(
        f"other rows ({count(len(rest))})",
        sum(row.baseline.mean for row in rest),
        sum(row.candidate.mean for row in rest),
        sum(row.delta for row in rest),
    )
    return candidate.rows[:limit], summed


def is_profiled(candidate: CandidateComparison) -> bool:
    """Whether any run of the two arms was under perf; else there are times and metrics alone."""
    return candidate.is_profiled


def comparison_scale(comparison: Comparison, candidate: CandidateComparison) -> Scale:
    """One scale for every weight of a candidate's table."""
    return scale_for([candidate.total.baseline.mean, candidate.total.candidate.mean], comparison.unit)


def metric_scale(metric: MetricComparison) -> Scale:
    """Each metric has its own unit and so its own scale."""
    return scale_for([metric.row.baseline.mean, metric.row.candidate.mean], metric.unit)


def result_and_method(comparison: Comparison, candidate: CandidateComparison) -> tuple[str, str]:
    """(a sentence on the result, "" where nothing was profiled; a sentence on how verdicts were reached)."""
    if not is_profiled(candidate):
        method = metrics_method_line(candidate, comparison.baseline_runs)
        return "", f"{method[0].upper()}{method[1:]}."
    terms = Terms(comparison_scale(comparison, candidate), comparison.unit, comparison.margin)
    method = f"{comparison.event} by {comparison.dimension}; {method_line(candidate, comparison.baseline_runs)}."
    return result_sentence(candidate, comparison.baseline_name, terms), method


def valued_rows(comparison: Comparison, candidate: CandidateComparison) -> list[tuple[ComparisonRow, Scale, InstanceNames]]:
    """The rows whose values of each run are listed, in order: total, times and metrics, parts of the total."""
    scale, names = comparison_scale(comparison, candidate), candidate.instances
    total = [(candidate.total, scale, names)] if is_profiled(candidate) else []
    metrics = [(metric.row, metric_scale(metric), metric.instances) for metric in candidate.metrics]
    return [*total, *metrics, *((row, scale, names) for row in candidate.rows)]
