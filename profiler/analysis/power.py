"""What an experiment of so many runs could show, judged by the noise of one that was made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis import stats, stats_power
from profiler.analysis.compare import kind_of_test
from profiler.analysis.compare_replicates import match_runs, replicate_means
from profiler.analysis.compare_rows import ArmValues, RowFamily, noise_of, sampling_share
from profiler.analysis.compare_tables import arm_table, table_family, total_family
from profiler.analysis.measured_runs import headline_runs, measured, names_measured
from profiler.errors import AnalysisError
from profiler.model.costs import ArmCosts
from profiler.model.experiment_result import PowerRow, PowerTable

RUNS = (4, 5, 10, 20, 30)
# From this part of the variance on, sampling more often helps more than running more often.
_THIN_PROFILE = 0.5


def power_table(
    baseline: ArmCosts, candidate: ArmCosts, dimension: str, margin: float, runs: Sequence[int] = RUNS
) -> PowerTable:
    """``margin``: the change that is to be shown, a fraction of the baseline's total (of its own mean, for a metric).

    Without a profile of either arm's runs: what times and metrics could show.  ``AnalysisError`` when these too have fewer than
    2 replicates in an arm: one run shows no noise.
    """
    of_runs = headline_runs(baseline, candidate)
    profiled, timed = match_runs(baseline.infos, candidate.infos), match_runs(*of_runs)
    metrics = _metric_rows(baseline, candidate, margin, runs)
    if profiled.fewest < 2 and not metrics:
        raise AnalysisError(f"{baseline.name} and {candidate.name}: at least 2 runs of either are needed to know their noise")
    rows, total = _profile_rows((baseline, candidate), dimension, margin, runs) if profiled.fewest >= 2 else ((), None)
    return PowerTable(
        session=(*baseline.infos, *of_runs[0])[0].identity.session,
        test=kind_of_test(profiled if total is not None else timed),
        unit=baseline.unit,
        margin=margin,
        runs=tuple(runs),
        rows=rows,
        total=total,
        metrics=metrics,
        replicates="processes" if timed.by_instance else "runs",
    )


def _profile_rows(
    arms: tuple[ArmCosts, ArmCosts], dimension: str, margin: float, runs: Sequence[int]
) -> tuple[tuple[PowerRow, ...], PowerRow]:
    """The family's rows and the total."""
    matching = match_runs(arms[0].infos, arms[1].infos)
    tables = arm_table(arms[0], dimension), arm_table(arms[1], dimension)
    total = total_family(tables, matching)
    absolute = margin * float(total.baseline.values.mean())
    rows = table_family(tables, matching, absolute, untestable="")
    unit = arms[0].unit
    return _power_rows(rows, unit, absolute, runs), _power_rows(total, unit, absolute, runs)[0]


def _metric_rows(baseline: ArmCosts, candidate: ArmCosts, margin: float, runs: Sequence[int]) -> tuple[PowerRow, ...]:
    of_runs = headline_runs(baseline, candidate)
    found: list[PowerRow] = []
    for name in names_measured(of_runs, ()):
        of_arms = measured(of_runs[0], name), measured(of_runs[1], name)
        matching = match_runs(of_arms[0].infos, of_arms[1].infos)
        if matching.fewest < 2 or of_arms[0].units != of_arms[1].units:
            continue
        base, cand = (
            ArmValues(replicate_means(np.array([arm.values], dtype=np.float64), replicates))
            for arm, replicates in zip(of_arms, (matching.baseline, matching.candidate), strict=True)
        )
        family = RowFamily((name,), (name,), ("",), base, cand, matching.is_paired, 0.0)
        unit = min(of_arms[0].units)
        found.extend(_power_rows(family, unit, margin * abs(float(base.values.mean())), runs))
    return tuple(found)


def _power_rows(family: RowFamily, unit: str, margin: float, runs: Sequence[int]) -> tuple[PowerRow, ...]:
    if not family.names:
        return ()
    noise = noise_of(family)
    tested = max(int((~family.is_absent()).sum()), 1)
    visible = stats_power.planned_effect(noise, np.array(runs, dtype=np.int64), tested)
    needed = stats_power.runs_needed(np.full(len(family.names), margin), noise, tested)
    base, cand = family.baseline.values, family.candidate.values
    test = stats.paired_t(base, cand) if family.is_paired else stats.welch_t(base, cand)
    sampling = sampling_share(family, test.standard_error)
    return tuple(
        PowerRow(
            name=name,
            label=family.labels[row],
            unit=unit,
            mean=float(base[row].mean()),
            visible=tuple(visible[row].tolist()),
            runs_for_margin=int(needed[row]) or None,
            sampling_share=float(sampling[row]) if sampling is not None else None,
            advice=_advice(float(sampling[row]) if sampling is not None else 0.0),
        )
        for row, name in enumerate(family.names)
    )


def _advice(sampling_part: float) -> str:
    if sampling_part < _THIN_PROFILE:
        return ""
    return f"{100 * sampling_part:.0f} % of the variance is sampling: a higher frequency helps more than more runs"
