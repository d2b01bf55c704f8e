"""A comparison that was never run: baseline to via in one place, via to candidate in another.

Ratios multiply and errors add on the log scale.  That rests on one assumption which no run can check: that the build in the
middle behaves alike in both places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from profiler.analysis.comparison.compare_replicates import Matching, match_runs, replicate_means
from profiler.analysis.comparison.compare_tables import TOTAL, arm_table, named_rows, table_family
from profiler.analysis.comparison.verdicts import judge_family
from profiler.analysis.measured_runs import headline_runs, measured, names_measured
from profiler.analysis.statistics.log_ratio import LogRatio, log_ratio, product_test
from profiler.errors import AnalysisError
from profiler.model.arrays import FloatColumn
from profiler.model.costs import ArmCosts
from profiler.model.experiment_result import ComposedComparison, ComposedRow
from profiler.model.interval import Interval
from profiler.model.quality import ReportWarning
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Leg:
    """Two arms that were measured together."""

    baseline: ArmCosts
    candidate: ArmCosts


@dataclass(frozen=True, slots=True)
class _Ratios:
    names: tuple[str, ...]
    labels: tuple[str, ...]
    ratios: LogRatio
    fewest: int


def compose(first: Leg, second: Leg, dimension: str, margin: float) -> ComposedComparison:
    """``first`` from the baseline to the build in the middle, ``second`` from there to the candidate.

    Rows are those of the first leg's table; times and metrics alone where a leg has no profile.  ``margin``: ratios within
    1 +- this count as unchanged.  ``AnalysisError`` when a leg has fewer than 2 replicates in an arm, or when the legs count
    different things.
    """
    is_profiled = all(arm.infos for leg in (first, second) for arm in (leg.baseline, leg.candidate))
    rows, total = _composed_profile(first, second, dimension, margin) if is_profiled else ((), None)
    metrics = _composed_metrics(first, second, margin)
    if total is None and not metrics:
        raise AnalysisError(
            f"{first.baseline.name}, {first.candidate.name} and {second.candidate.name}: there is no profile, and no time or "
            "metric that at least 2 runs of all of them have"
        )
    return ComposedComparison(
        baseline=first.baseline.name,
        via=first.candidate.name,
        candidate=second.candidate.name,
        dimension=dimension,
        rows=rows,
        total=total,
        metrics=metrics,
        warnings=_warnings(first, second),
    )


def _composed_profile(first: Leg, second: Leg, dimension: str, margin: float) -> tuple[tuple[ComposedRow, ...], ComposedRow]:
    """Rows and total."""
    if first.baseline.unit != second.baseline.unit:
        raise AnalysisError(f"one pair counts {first.baseline.unit} and the other {second.baseline.unit}: no ratio is common")
    matching = match_runs(first.baseline.infos, first.candidate.infos)
    tables = arm_table(first.baseline, dimension), arm_table(first.candidate, dimension)
    family = table_family(tables, matching, margin=0.0, untestable="")
    of_rows = tuple(_row_ratios(leg, dimension, family.names, family.labels) for leg in (first, second))
    of_totals = tuple(_total_ratios(leg, dimension) for leg in (first, second))
    return _composed(of_rows[0], of_rows[1], margin), _composed(of_totals[0], of_totals[1], 0.0)[0]


def _row_ratios(leg: Leg, dimension: str, names: tuple[str, ...], labels: tuple[str, ...]) -> _Ratios:
    matching = match_runs(leg.baseline.infos, leg.candidate.infos)
    values = [named_rows(arm_table(arm, dimension), names).astype(np.float64) for arm in (leg.baseline, leg.candidate)]
    return _ratios(leg, names, labels, matching, values)


def _total_ratios(leg: Leg, dimension: str) -> _Ratios:
    matching = match_runs(leg.baseline.infos, leg.candidate.infos)
    values = [arm_table(arm, dimension).total[np.newaxis, :].astype(np.float64) for arm in (leg.baseline, leg.candidate)]
    return _ratios(leg, (TOTAL,), (TOTAL,), matching, values)


def _ratios(
    leg: Leg, names: tuple[str, ...], labels: tuple[str, ...], matching: Matching, values: Sequence[FloatColumn]
) -> _Ratios:
    if matching.fewest < 2:
        raise AnalysisError(f"{leg.baseline.name} and {leg.candidate.name}: one run in an arm has no error to carry over")
    base, cand = (
        replicate_means(arm, replicates)
        for arm, replicates in zip(values, (matching.baseline, matching.candidate), strict=True)
    )
    return _Ratios(names, labels, log_ratio(base, cand, matching.is_paired), matching.fewest)


def _composed_metrics(first: Leg, second: Leg, margin: float) -> tuple[ComposedRow, ...]:
    runs = tuple(headline_runs(leg.baseline, leg.candidate) for leg in (first, second))
    found: list[ComposedRow] = []
    for name in names_measured([infos for leg in runs for infos in leg], ()):
        legs = []
        for leg, infos in zip((first, second), runs, strict=True):
            of_arms = measured(infos[0], name), measured(infos[1], name)
            matching = match_runs(of_arms[0].infos, of_arms[1].infos)
            if matching.fewest >= 2 and of_arms[0].units == of_arms[1].units:
                values = [np.array([arm.values], dtype=np.float64) for arm in of_arms]
                legs.append(_ratios(leg, (name,), (name,), matching, values))
        if len(legs) == 2:
            found.extend(_composed(legs[0], legs[1], margin))
    return tuple(found)


def _composed(first: _Ratios, second: _Ratios, margin: float) -> tuple[ComposedRow, ...]:
    is_defined = first.ratios.is_defined & second.ratios.is_defined
    test = product_test(first.ratios, second.ratios)
    test = replace(test, is_testable=test.is_testable & is_defined)
    judged = judge_family(test, min(first.fewest, second.fewest), np.log1p(margin))
    rows = []
    for row, name in enumerate(first.names):
        has_ratio, is_tested = bool(is_defined[row]), bool(judged.is_tested[row])
        low, high = np.exp(test.low[row]), np.exp(test.high[row])
        rows.append(
            ComposedRow(
                name=name,
                label=first.labels[row],
                first_ratio=float(np.exp(first.ratios.value[row])) if first.ratios.is_defined[row] else None,
                second_ratio=float(np.exp(second.ratios.value[row])) if second.ratios.is_defined[row] else None,
                ratio=float(np.exp(test.difference[row])) if has_ratio else None,
                ratio_interval=Interval(float(low), float(high)) if is_tested else None,
                p=float(test.p[row]) if is_tested else None,
                p_adjusted=float(judged.p_adjusted[row]) if is_tested else None,
                verdict=judged.verdicts[row],
            )
        )
    return tuple(rows)


def _warnings(first: Leg, second: Leg) -> tuple[ReportWarning, ...]:
    """The build in the middle must be one and the same."""
    arms = first.candidate, second.baseline
    builds = [{info.program.build_id for info in (*arm.infos, *arm.plain)} for arm in arms]
    if builds[0] == builds[1] and len(builds[0]) == 1 and "" not in builds[0]:
        return ()
    shown = " and ".join(", ".join(sorted(build or "unknown" for build in of_arm)) for of_arm in builds)
    message = f"{first.candidate.name} is not known to be one build in both places (build IDs {shown})"
    return (ReportWarning("composed-via", message, "measure the two builds together instead"),)
