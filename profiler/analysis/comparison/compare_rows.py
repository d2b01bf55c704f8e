"""One family of rows: values per replicate in, tested rows with verdicts out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from profiler.analysis.comparison.verdicts import Judgement, judge_family
from profiler.analysis.statistics import permutation, power, t_tests
from profiler.analysis.statistics.ratio import RelativeChange, paired_relative_change, welch_relative_change
from profiler.model.arrays import BoolColumn, FloatColumn, Int64Column
from profiler.model.comparison import ComparisonRow, Spread, Verdict
from profiler.model.interval import Interval
from profiler.model.quick_dataclass import dataclass

ONE_RUN = "one run: no interval"
NOTHING = "no time in either arm"
NO_SPREAD = "every run differs by exactly this amount: there is no spread to test against"
# From this part of the variance on, more samples help more than more runs.
_THIN_PROFILE = 0.5
# Half a two-sided 95 % interval, in standard errors.
_SAMPLING_ERRORS = 1.96


@dataclass(frozen=True, slots=True)
class ArmValues:
    """``values`` [rows, replicates]; ``sampling`` the variance of each value by sampling alone, None where nothing was
    sampled."""

    values: FloatColumn
    sampling: FloatColumn | None = None


@dataclass(frozen=True, slots=True)
class RowFamily:
    """Rows that are tested together.  ``margin``: differences up to it count as none, in the rows' unit.
    ``untestable``: why no row may have a verdict, "" as a rule."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    notes: tuple[str, ...]
    baseline: ArmValues
    candidate: ArmValues
    is_paired: bool
    margin: float
    untestable: str = ""

    @property
    def fewest(self) -> int:
        return min(int(self.baseline.values.shape[-1]), int(self.candidate.values.shape[-1]))

    def is_absent(self) -> BoolColumn:
        """Rows that are 0 in every run: that they are equal says nothing."""
        absent: BoolColumn = (self.baseline.values == 0).all(axis=-1) & (self.candidate.values == 0).all(axis=-1)
        return absent


@dataclass(frozen=True, slots=True)
class FamilyResult:
    """``tested``: the number of rows that Holm's adjustment counted.  ``rows`` stand in the family's order."""

    rows: tuple[ComparisonRow, ...]
    tested: int


@dataclass(frozen=True, slots=True)
class _Inference:
    """Columns over the rows of a family."""

    test: t_tests.TTest
    relative: RelativeChange
    judged: Judgement
    visible: FloatColumn
    runs_needed: Int64Column
    permutation_p: FloatColumn | None
    sampling_share: FloatColumn | None


def compare_family(family: RowFamily) -> FamilyResult:
    """Tests every row and gives its verdict.

    With one replicate in an arm there is only the difference; with two there is an interval and no verdict.
    """
    inference = _infer(family) if family.fewest >= 2 and family.names else None
    rows = tuple(_row(family, index, inference) for index in range(len(family.names)))
    return FamilyResult(rows, int(inference.judged.is_tested.sum()) if inference else 0)


def spread(values: Sequence[float]) -> Spread:
    """Of the replicates of one arm; the standard deviation of fewer than two values is 0, as is all of none."""
    if not values:
        return Spread((), 0.0, 0.0, 0.0, 0.0, 0.0)
    array = np.array(values, dtype=np.float64)
    mean, deviation, interval = float(array.mean()), 0.0, None
    if len(values) > 1:
        exponent = t_tests.common_exponent(array)
        deviation = float(np.ldexp(np.sqrt(t_tests.moments(array, exponent).variance), exponent))
        quantile = float(t_tests.t_quantile(np.array(len(values) - 1.0), 0.5 + t_tests.CONFIDENCE / 2))
        half = quantile * deviation / len(values) ** 0.5
        interval = Interval(mean - half, mean + half)
    extremes = float(array.min()), float(array.max())
    return Spread(tuple(values), mean, float(np.median(array)), *extremes, deviation, interval)


def _infer(family: RowFamily) -> _Inference:
    base, cand = family.baseline.values, family.candidate.values
    test = t_tests.paired_t(base, cand) if family.is_paired else t_tests.welch_t(base, cand)
    relative = (paired_relative_change if family.is_paired else welch_relative_change)(base, cand)
    may_test = ~family.is_absent() & (not family.untestable)
    judged = judge_family(
        replace(test, is_testable=test.is_testable & may_test), family.fewest, family.margin, _may_be_equal(family, test)
    )
    tested = max(int(judged.is_tested.sum()), 1)
    noise = noise_of(family)
    return _Inference(
        test,
        relative,
        judged,
        visible=power.visible_effect(test.standard_error, test.degrees, noise, tested),
        runs_needed=power.runs_needed(test.difference, noise, tested),
        permutation_p=_permutation_p(family, judged.is_tested, tested),
        sampling_share=sampling_share(family, test.standard_error),
    )


def noise_of(family: RowFamily) -> power.NoiseVariance:
    """What one replicate scatters; at least 2 replicates."""
    base, cand = family.baseline.values, family.candidate.values
    if family.is_paired:
        return power.NoiseVariance((cand - base).var(axis=-1, ddof=1), None, family.fewest)
    return power.NoiseVariance(base.var(axis=-1, ddof=1), cand.var(axis=-1, ddof=1), family.fewest)


def _permutation_p(family: RowFamily, is_tested: BoolColumn, tested: int) -> FloatColumn | None:
    base, cand = family.baseline.values[is_tested], family.candidate.values[is_tested]
    p = permutation.sign_flip_p(cand - base, tested) if family.is_paired else permutation.two_sample_p(base, cand, tested)
    if p is None:
        return None
    spread_out = np.ones(len(family.names))
    spread_out[is_tested] = p
    return spread_out


def sampling_share(family: RowFamily, standard_error: FloatColumn) -> FloatColumn | None:
    """Squared standard error by sampling alone, as a part of the one observed; 0 where none was observed.  None where nothing
    was sampled."""
    if family.baseline.sampling is None or family.candidate.sampling is None:
        return None
    arms = family.baseline.sampling, family.candidate.sampling
    by_sampling = sum(arm.mean(axis=-1) / arm.shape[-1] for arm in arms)
    observed = standard_error**2
    share: FloatColumn = np.clip(by_sampling / np.where(observed > 0, observed, 1.0), 0.0, 1.0)
    return np.where(observed > 0, share, 0.0)


def _row(family: RowFamily, index: int, inference: _Inference | None) -> ComparisonRow:
    baseline, candidate = (spread(arm.values[index].tolist()) for arm in (family.baseline, family.candidate))
    delta = candidate.mean - baseline.mean
    if inference is None:
        note = ONE_RUN if family.fewest == 1 else "no run"
        return ComparisonRow(
            name=family.names[index],
            label=family.labels[index],
            baseline=baseline,
            candidate=candidate,
            delta=delta,
            delta_interval=None,
            relative=delta / baseline.mean if baseline.mean > 0 else None,
            relative_interval=None,
            p=None,
            p_adjusted=None,
            verdict=Verdict.TOO_FEW_RUNS,
            sigma=None,
            no_overlap=False,
            visible_effect=None,
            runs_needed=None,
            permutation_p=None,
            sampling_share=None,
            note=_joined(note, family.notes[index]),
        )
    return _inferred_row(family, index, inference, baseline, candidate)


def _inferred_row(family: RowFamily, index: int, inference: _Inference, baseline: Spread, candidate: Spread) -> ComparisonRow:
    test, relative = inference.test, inference.relative
    verdict = inference.judged.verdicts[index]
    has_spread = bool(test.standard_error[index] > 0)
    is_tested = bool(inference.judged.is_tested[index])
    has_interval = bool(test.is_testable[index])
    # As a part of something below 0, a rise would be a fall.
    has_ratio = bool(relative.is_defined[index]) and baseline.mean > 0
    share = float(inference.sampling_share[index]) if inference.sampling_share is not None and has_spread else None
    return ComparisonRow(
        name=family.names[index],
        label=family.labels[index],
        baseline=baseline,
        candidate=candidate,
        delta=candidate.mean - baseline.mean,
        delta_interval=Interval(float(test.low[index]), float(test.high[index])) if has_interval else None,
        relative=float(relative.change[index]) if has_ratio else None,
        relative_interval=_relative_interval(family, index, relative) if has_interval and has_ratio else None,
        p=float(test.p[index]) if is_tested else None,
        p_adjusted=float(inference.judged.p_adjusted[index]) if is_tested else None,
        verdict=verdict,
        sigma=abs(float(test.difference[index])) / float(test.standard_error[index]) if has_spread else None,
        no_overlap=bool(t_tests.no_overlap(family.baseline.values[index], family.candidate.values[index])),
        visible_effect=float(inference.visible[index]) if is_tested and has_spread else None,
        runs_needed=int(inference.runs_needed[index]) or None if is_tested and has_spread else None,
        permutation_p=float(inference.permutation_p[index]) if inference.permutation_p is not None and is_tested else None,
        sampling_share=share,
        note=_joined(_note(family, index, verdict, (has_interval, has_spread), share), family.notes[index]),
    )


def _may_be_equal(family: RowFamily, test: t_tests.TTest) -> BoolColumn:
    """Not the rows whose runs agree exactly because they hold the same few samples: what sampling leaves open there is more
    than the margin.  All rows where every one agrees: then an arm is compared with itself."""
    arms = family.baseline.sampling, family.candidate.sampling
    if arms[0] is None or arms[1] is None or np.array_equal(family.baseline.values, family.candidate.values):
        return np.ones(len(family.names), dtype=np.bool_)
    by_sampling = arms[0].mean(axis=-1) / arms[0].shape[-1] + arms[1].mean(axis=-1) / arms[1].shape[-1]
    may_be: BoolColumn = (test.standard_error > 0) | (_SAMPLING_ERRORS * np.sqrt(by_sampling) <= family.margin)
    return may_be


def _relative_interval(family: RowFamily, index: int, relative: RelativeChange) -> Interval | None:
    if not relative.is_bounded[index]:
        return None
    low, high = float(relative.low[index]), float(relative.high[index])
    # Where nothing measured is negative, no ratio is.
    is_positive = bool(family.baseline.values[index].min() >= 0 and family.candidate.values[index].min() >= 0)
    return Interval(max(low, -1.0) if is_positive else low, high)


def _note(family: RowFamily, index: int, verdict: Verdict, spread: tuple[bool, bool], sampling_share: float | None) -> str:
    """``spread``: whether there is an interval, and whether it has a width."""
    has_interval, has_spread = spread
    if verdict is Verdict.UNTESTABLE:
        if family.is_absent()[index]:
            return NOTHING
        return NO_SPREAD if not has_interval else family.untestable
    if verdict is Verdict.UNDECIDED and sampling_share is not None and sampling_share >= _THIN_PROFILE:
        return f"profile too thin: {100 * sampling_share:.0f} % of the variance is sampling"
    if verdict is Verdict.UNDECIDED and not has_spread:
        return "profile too thin: the runs agree only because they hold so few samples"
    return ""


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
