"""What a change of the total is made of: every row's share in it, and whether the metrics changed as the profile did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.comparison.compare_replicates import Block, match_runs, runs_by_block
from profiler.analysis.comparison.compare_rows import RowFamily
from profiler.analysis.comparison.compare_tables import arm_table, table_family, total_family
from profiler.analysis.measured_runs import Measured, headline_runs, measured, names_measured
from profiler.analysis.statistics import t_tests
from profiler.analysis.statistics.contrast import Term, contrast
from profiler.analysis.statistics.ratio import PartAndWhole, Share, paired_share, welch_share
from profiler.model.arrays import FloatColumn
from profiler.model.costs import ArmCosts
from profiler.model.experiment_result import Agreement, GainAttribution, GainShare, MetricAgreement
from profiler.model.interval import Interval
from profiler.model.quick_dataclass import dataclass


def gain_attribution(baseline: ArmCosts, candidate: ArmCosts, dimension: str, metrics: Sequence[str] = ()) -> GainAttribution:
    """Rows as ``compare_arms`` has them.  Shares are of the change of the profile's total, ``metrics`` those held against it,
    all when empty.  ``UsageError`` for a dimension or metric that an arm does not have."""
    matching = match_runs(baseline.infos, candidate.infos)
    agreements = _agreements(baseline, candidate, metrics) if baseline.infos and candidate.infos else ()
    if not matching.fewest:
        return GainAttribution(candidate.name, (), agreements)
    tables = arm_table(baseline, dimension), arm_table(candidate, dimension)
    rows = table_family(tables, matching, margin=0.0, untestable="")
    shares = _shares(rows, total_family(tables, matching)) if matching.fewest > 1 else None
    return GainAttribution(candidate.name, tuple(_row(rows, index, shares) for index in range(len(rows.names))), agreements)


def _shares(rows: RowFamily, total: RowFamily) -> Share:
    share = paired_share if rows.is_paired else welch_share
    base, cand = (
        PartAndWhole(of_rows.values, of_total.values)
        for of_rows, of_total in ((rows.baseline, total.baseline), (rows.candidate, total.candidate))
    )
    return share(base, cand)


def _row(rows: RowFamily, index: int, shares: Share | None) -> GainShare:
    delta = float(rows.candidate.values[index].mean() - rows.baseline.values[index].mean())
    has_share = shares is not None and bool(shares.is_bounded[index])
    share = float(shares.share[index]) if shares is not None and has_share else None
    interval = Interval(float(shares.low[index]), float(shares.high[index])) if shares is not None and has_share else None
    return GainShare(rows.names[index], rows.labels[index], delta, share, interval)


@dataclass(frozen=True, slots=True)
class _Changes:
    """Log ratios candidate / baseline: one per common block, or the logarithms of either arm's runs."""

    by_block: dict[Block, float]
    baseline: FloatColumn
    candidate: FloatColumn

    @property
    def relative(self) -> float | None:
        if self.by_block:
            return float(np.expm1(np.mean(list(self.by_block.values()))))
        if len(self.baseline) and len(self.candidate):
            return float(np.expm1(self.candidate.mean() - self.baseline.mean()))
        return None


def _agreements(baseline: ArmCosts, candidate: ArmCosts, wanted: Sequence[str]) -> tuple[MetricAgreement, ...]:
    """For every duration that may measure what the profile does.  User and system time are the profile's own subject, and with
    a phase the wall time covers more than the profile."""
    runs = headline_runs(baseline, candidate)
    left_out = {"user", "system", *(("wall",) if baseline.phase else ())}
    found = []
    for name in names_measured(runs, wanted):
        of_arms = measured(runs[0], name), measured(runs[1], name)
        if name not in left_out and of_arms[0].units == of_arms[1].units == {"ns"}:
            of_profile = _changes(_profile_totals(baseline), _profile_totals(candidate))
            found.append(_agreement(name, of_profile, _changes(*of_arms)))
    return tuple(found)


def _agreement(name: str, of_profile: _Changes, of_metric: _Changes) -> MetricAgreement:
    test = _difference(of_profile, of_metric)
    changes = of_profile.relative, of_metric.relative
    if test is None or not bool(test.is_testable):
        reason = "too few runs have both" if test is None else "they differ by exactly the same in every run"
        return MetricAgreement(name, *changes, None, None, Agreement.UNTESTABLE, reason)
    interval = Interval(float(test.low), float(test.high))
    agrees = interval.low <= 0 <= interval.high
    meaning = "" if agrees else _meaning(name, float(test.difference), changes)
    agreement = Agreement.AGREE if agrees else Agreement.DIFFER
    return MetricAgreement(name, *changes, float(test.difference), interval, agreement, meaning)


def _meaning(metric: str, difference: float, changes: tuple[float | None, float | None]) -> str:
    """``difference``: change of the profile less that of the metric, on the log scale."""
    higher, lower = ("the profile", metric) if difference > 0 else (metric, "the profile")
    if all(change is not None and change > 0 for change in changes):
        moved = f"{higher} rose further than {lower}"
    elif any(change is not None and change > 0 for change in changes):
        moved = f"{higher} rose and {lower} fell"
    else:
        moved = f"{lower} fell further than {higher}"
    return (
        f"{moved}: they do not measure the same work (waiting, other threads, time outside the phase, or what profiling costs)"
    )


def _profile_totals(arm: ArmCosts) -> Measured:
    table = next(iter(arm.tables.values()), None)
    values = tuple(float(total) for total in table.total.tolist()) if table is not None and arm.infos else ()
    return Measured(arm.infos if values else (), values, frozenset({arm.unit}))


def _changes(baseline: Measured, candidate: Measured) -> _Changes:
    """Without any value that has no logarithm: a change to or from nothing is no ratio."""
    if not baseline.values or not candidate.values or min(*baseline.values, *candidate.values) <= 0:
        return _Changes({}, np.zeros(0), np.zeros(0))
    logarithms = np.log(baseline.values), np.log(candidate.values)
    blocks = runs_by_block(baseline.infos), runs_by_block(candidate.infos)
    by_block = {
        block: float(logarithms[1][blocks[1][block]].mean() - logarithms[0][blocks[0][block]].mean())
        for block in sorted(blocks[0].keys() & blocks[1].keys())
    }
    return _Changes(by_block, *logarithms)


def _difference(profile: _Changes, metric: _Changes) -> t_tests.TTest | None:
    """Profile - metric: paired over the blocks that both have, else over independent runs."""
    common = sorted(profile.by_block.keys() & metric.by_block.keys())
    if len(common) >= t_tests.MIN_REPLICATES:
        of_metric, of_profile = (np.array([changes.by_block[block] for block in common]) for changes in (metric, profile))
        return t_tests.paired_t(of_metric, of_profile)
    groups = (profile.candidate, 1.0), (profile.baseline, -1.0), (metric.candidate, -1.0), (metric.baseline, 1.0)
    if min(len(values) for values, _ in groups) < t_tests.MIN_REPLICATES:
        return None
    return contrast([Term(values, factor) for values, factor in groups])
