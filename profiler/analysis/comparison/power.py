"""What an experiment of so many runs could show, judged by the noise of one that was made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.comparison.compare import kind_of_test
from profiler.analysis.comparison.compare_replicates import match_runs, replicate_means
from profiler.analysis.comparison.compare_rows import ArmValues, RowFamily, noise_of, sampling_share
from profiler.analysis.comparison.compare_tables import arm_table, table_family, total_family
from profiler.analysis.comparison.control import ArmPair, ControlFamily, control_families
from profiler.analysis.measured_runs import headline_runs, measured, names_measured
from profiler.analysis.statistics import power, t_tests
from profiler.errors import AnalysisError
from profiler.model.arrays import FloatColumn
from profiler.model.comparison import TestKind
from profiler.model.costs import ArmCosts
from profiler.model.experiment_result import PowerRow, PowerTable
from profiler.model.interval import Interval
from profiler.model.quick_dataclass import dataclass

RUNS = (4, 5, 10, 20, 30)
# From this part of the variance on, sampling more often helps more than running more often.
_THIN_PROFILE = 0.5


@dataclass(frozen=True, slots=True)
class _Noise:
    """Of a family of rows.  ``mean``: of the baseline.  ``sampling``: part of the variance, None = nothing was sampled."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    unit: str
    mean: FloatColumn
    variance: power.NoiseVariance
    tested: int
    sampling: FloatColumn | None = None


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
    compared = profiled if total is not None else timed
    return PowerTable(
        candidate=candidate.name,
        test=kind_of_test(compared),
        unit=baseline.unit,
        margin=margin,
        runs=tuple(runs),
        promise=_promise(compared.is_paired),
        rows=rows,
        total=total,
        metrics=metrics,
        replicates="processes" if timed.by_instance else "runs",
    )


def control_power(treated: ArmPair, control: ArmPair, dimension: str, margin: float, runs: Sequence[int] = RUNS) -> PowerTable:
    """Of the difference of differences, as ``against_control`` tests it; its parts of a mean are those of the treated baseline.

    ``AnalysisError`` when an arm has fewer than 2 replicates.
    """
    families = control_families(treated, control, dimension, margin)
    # Without a profile total and rows have no replicates.
    of_rows, of_total = (_control_noise(family) for family in (families.rows, families.total))
    of_metrics = [(family.margin, noise) for family in families.metrics if (noise := _control_noise(family)) is not None]
    known = [noise for noise in (of_total, *(noise for _, noise in of_metrics)) if noise is not None]
    if not known:
        arms = ", ".join(arm.name for pair in (treated, control) for arm in (pair.baseline, pair.candidate))
        raise AnalysisError(f"{arms}: at least 2 runs of each are needed to know their noise")
    is_paired = known[0].variance.second is None
    pair = match_runs(*headline_runs(treated.baseline, treated.candidate))
    paired_test = TestKind.CROSSOVER if pair.by_instance else TestKind.PAIRED
    return PowerTable(
        candidate=treated.candidate.name,
        test=paired_test if is_paired else TestKind.WELCH,
        unit=treated.baseline.unit,
        margin=margin,
        runs=tuple(runs),
        promise=_promise(is_paired),
        rows=_power_rows(of_rows, families.rows.margin, runs) if of_rows is not None else (),
        total=_power_rows(of_total, families.total.margin, runs)[0] if of_total is not None else None,
        metrics=tuple(row for absolute, noise in of_metrics for row in _power_rows(noise, absolute, runs)),
        replicates="processes" if pair.by_instance else "runs",
        control=control.condition,
    )


def _promise(is_paired: bool) -> Interval:
    return Interval(power.promised_power(is_paired, False), power.promised_power(is_paired, True))


def _control_noise(family: ControlFamily) -> _Noise | None:
    """None with fewer than 2 replicates of an arm."""
    found = family.replicates()
    if found.fewest < 2 or not family.names:
        return None
    base, cand, held_base, held_cand = found.values
    if found.is_paired:
        variance = power.NoiseVariance((cand - base - held_cand + held_base).var(axis=-1, ddof=1), None, found.fewest)
    else:
        # As two groups of two arms, which have fewer degrees of freedom than four: never too hopeful.
        of_arms = [arm.var(axis=-1, ddof=1) for arm in found.values]
        variance = power.NoiseVariance(of_arms[0] + of_arms[2], of_arms[1] + of_arms[3], found.fewest)
    return _Noise(family.names, family.labels, family.unit, base.mean(axis=-1), variance, len(family.names))


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
    of_rows = _power_rows(_noise(rows, unit), absolute, runs) if rows.names else ()
    return of_rows, _power_rows(_noise(total, unit), absolute, runs)[0]


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
        noise = _noise(family, min(of_arms[0].units))
        found.extend(_power_rows(noise, margin * abs(float(base.values.mean())), runs))
    return tuple(found)


def _noise(family: RowFamily, unit: str) -> _Noise:
    base, cand = family.baseline.values, family.candidate.values
    test = t_tests.paired_t(base, cand) if family.is_paired else t_tests.welch_t(base, cand)
    return _Noise(
        family.names,
        family.labels,
        unit,
        base.mean(axis=-1),
        noise_of(family),
        tested=max(int((~family.is_absent()).sum()), 1),
        sampling=sampling_share(family, test.standard_error),
    )


def _power_rows(noise: _Noise, margin: float, runs: Sequence[int]) -> tuple[PowerRow, ...]:
    """``margin`` in the rows' unit."""
    visible = power.planned_effect(noise.variance, np.array(runs, dtype=np.int64), noise.tested)
    needed = power.runs_needed(np.full(len(noise.names), margin), noise.variance, noise.tested)
    sampling = noise.sampling
    return tuple(
        PowerRow(
            name=name,
            label=noise.labels[row],
            unit=noise.unit,
            mean=float(noise.mean[row]),
            visible=tuple(visible[row].tolist()),
            runs_for_margin=int(needed[row]) or None,
            sampling_share=float(sampling[row]) if sampling is not None else None,
            advice=_advice(float(sampling[row]) if sampling is not None else 0.0),
            has_spread=bool(noise.variance.variance[row] > 0),
        )
        for row, name in enumerate(noise.names)
    )


def _advice(sampling_part: float) -> str:
    if sampling_part < _THIN_PROFILE:
        return ""
    return f"{100 * sampling_part:.0f} % of the variance is sampling: a higher frequency helps more than more runs"
