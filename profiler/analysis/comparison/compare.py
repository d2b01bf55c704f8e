"""What changed between a baseline and candidates: every row with its interval and verdict, and what to beware of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profiler.analysis.comparison.comparability import (
    distinct,
    fact_warnings,
    matching_warnings,
    naming_warning,
    untestable_reason,
)
from profiler.analysis.comparison.compare_metrics import compare_metrics
from profiler.analysis.comparison.compare_replicates import Matching, match_runs
from profiler.analysis.comparison.compare_rows import FamilyResult, compare_family
from profiler.analysis.comparison.compare_tables import arm_table, table_family, total_family
from profiler.analysis.quality.arm_warnings import arm_warnings, profiling_cost
from profiler.errors import AnalysisError
from profiler.model.comparison import CandidateComparison, Comparison, TestKind
from profiler.model.costs import ArmCosts
from profiler.model.event import NON_IDLE_SAMPLES
from profiler.model.quality import ReportWarning
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo

# Windows whose lengths differ by more are different spans of time.
WINDOW_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """``dimension``: what the rows are.  ``margin``: differences within this fraction of the baseline's total (of its mean, for
    a metric) count as none.  ``metrics``: times and metrics to compare, all when empty."""

    dimension: str = "category"
    margin: float = 0.01
    metrics: tuple[str, ...] = ()


def compare_arms(baseline: ArmCosts, candidates: Sequence[ArmCosts], options: CompareOptions) -> Comparison:
    """Each candidate against the baseline, candidates in the order given.

    Raises ``UsageError`` for a dimension or metric that an arm does not have, ``AnalysisError`` for arms whose events count
    different things.
    """
    compared = [_compare(baseline, candidate, options) for candidate in candidates]
    arms = (baseline, *candidates)
    of_arms = [
        warning
        for arm in _with_runs_of_their_own(arms)
        for warning in arm_warnings(arm, arm_table(arm, options.dimension).total.tolist())
    ]
    of_pairs = [warning for _, warnings in compared for warning in warnings]
    costs = dict.fromkeys(cost for arm in arms if (cost := profiling_cost(arm)) is not None)
    return Comparison(
        dimension=options.dimension,
        unit=baseline.unit,
        event=baseline.event,
        baseline_name=baseline.name,
        baseline_runs=_run_count(baseline),
        candidates=tuple(candidate for candidate, _ in compared),
        margin=options.margin,
        warnings=distinct([*of_pairs, *of_arms]),
        profiling_costs=tuple(costs),
    )


def _compare(
    baseline: ArmCosts, candidate: ArmCosts, options: CompareOptions
) -> tuple[CandidateComparison, list[ReportWarning]]:
    if baseline.infos and candidate.infos and baseline.unit != candidate.unit:
        raise AnalysisError(
            f"{baseline.name} counts {baseline.event} in {baseline.unit} and {candidate.name} {candidate.event} in "
            f"{candidate.unit}: choose one event that both arms have with --event"
        )
    _check_windows(baseline, candidate)
    _check_rates(baseline, candidate)
    matching = match_runs(baseline.infos, candidate.infos)
    rows, total = _families(baseline, candidate, matching, options)
    compared_runs = _runs_compared(baseline, candidate)
    of_runs = match_runs(compared_runs[0].infos, compared_runs[1].infos)
    metrics = compare_metrics(baseline, candidate, options.metrics, options.margin)
    naming = naming_warning(baseline, candidate)
    warnings = [
        *([naming] if naming is not None else []),
        *matching_warnings(*compared_runs, of_runs),
        *fact_warnings(baseline, candidate),
        *metrics.warnings,
    ]
    compared = CandidateComparison(
        name=candidate.name,
        runs=_run_count(candidate),
        test=kind_of_test(of_runs),
        family=rows.tested,
        rows=rows.rows,
        total=total.rows[0],
        metrics=metrics.metrics,
        instances=matching.instances,
    )
    return compared, warnings


def _check_windows(baseline: ArmCosts, candidate: ArmCosts) -> None:
    """``AnalysisError`` for windows against whole runs or windows of another length: costs of different spans of time."""
    first, second = (_window_s(arm) for arm in (baseline, candidate))
    if bool(first) != bool(second) and baseline.infos and candidate.infos:
        windows, runs = (baseline, candidate) if first else (candidate, baseline)
        raise AnalysisError(
            f"{windows.name} is windows of a running process and {runs.name} whole runs: their costs have no common measure; "
            "attach to both, or record both"
        )
    if first and second and abs(first / second - 1.0) > WINDOW_TOLERANCE:
        raise AnalysisError(
            f"the windows of {baseline.name} last {first:.3g} s and those of {candidate.name} {second:.3g} s: their costs are "
            "those of different spans of time; attach to both with the same --window"
        )


def _window_s(arm: ArmCosts) -> float:
    """The middle length of profiled windows of processes, 0 for other runs."""
    lengths = sorted(info.outcome.wall_ns for info in arm.infos if info.identity.is_window)
    return lengths[len(lengths) // 2] / 1e9 if lengths else 0.0


def _check_rates(baseline: ArmCosts, candidate: ArmCosts) -> None:
    """``AnalysisError`` for counts of samples that were taken at different rates, or at a rate that one arm does not tell."""
    rates = [{info.perf.frequency_hz for info in arm.infos} for arm in (baseline, candidate)]
    if baseline.unit == NON_IDLE_SAMPLES and all(rates) and rates[0] != rates[1]:
        first, second = (" and ".join(f"{rate} Hz" if rate else "an unknown rate" for rate in sorted(each)) for each in rates)
        raise AnalysisError(
            f"{baseline.name} counts {baseline.unit} at {first}, {candidate.name} at {second}: such numbers have no common "
            "measure; record both at one rate"
        )


def _runs_compared(baseline: ArmCosts, candidate: ArmCosts) -> tuple[ArmCosts, ArmCosts]:
    """The arms with those runs as ``infos`` that are compared: plain ones where neither was profiled."""
    if baseline.infos or candidate.infos:
        return baseline, candidate
    return replace(baseline, infos=baseline.plain), replace(candidate, infos=candidate.plain)


def _families(
    baseline: ArmCosts, candidate: ArmCosts, matching: Matching, options: CompareOptions
) -> tuple[FamilyResult, FamilyResult]:
    tables = arm_table(baseline, options.dimension), arm_table(candidate, options.dimension)
    total = total_family(tables, matching)
    if not matching.fewest:
        return FamilyResult((), 0), compare_family(total)
    margin = options.margin * float(total.baseline.values.mean())
    total_result = compare_family(replace(total, margin=margin))
    untestable = untestable_reason(baseline, candidate, options.dimension)
    return compare_family(table_family(tables, matching, margin, untestable)), total_result


def kind_of_test(matching: Matching) -> TestKind:
    """Which test such replicates allow."""
    if matching.fewest < 2:
        return TestKind.NONE
    if not matching.is_paired:
        return TestKind.WELCH
    return TestKind.CROSSOVER if matching.by_instance else TestKind.PAIRED


def _with_runs_of_their_own(arms: Sequence[ArmCosts]) -> list[ArmCosts]:
    """Without the arms whose runs are those of an earlier one under another name: one warning is enough."""
    by_runs: dict[tuple[tuple[CaptureInfo, ...], tuple[CaptureInfo, ...]], ArmCosts] = {}
    for arm in arms:
        by_runs.setdefault((arm.infos, arm.plain), arm)
    return list(by_runs.values())


def _run_count(arm: ArmCosts) -> int:
    """Profiled runs; plain ones where none was profiled."""
    return len(arm.infos) or len(arm.plain)
