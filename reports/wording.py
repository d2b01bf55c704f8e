"""What verdicts, effects and results are called, in words that claim no more than was shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from profiler.model.comparison import CandidateComparison, ComparisonRow, ProfilingCost, TestKind, Verdict
from profiler.model.interval import Interval
from profiler.model.quick_dataclass import dataclass
from reports.plain_text import printable
from reports.quantities import Scale, counted, probability, significant_decimals

_SINGLE_RUN = "one run: no interval"
_FACTOR = 2.0  # beyond it a change is given as a factor: "x48 down" says more than "-97.9 %"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a row is worded in.  ``scale``: of its values in ``unit``.  ``margin``: differences within this fraction count as
    none; of the baseline's total for a part of it (``is_part``), else of the row's own baseline."""

    scale: Scale
    unit: str
    margin: float
    is_part: bool = False


def verdict_word(row: ComparisonRow, terms: Terms) -> str:
    """The verdict in a table's cell.  Only time gets faster; everything else gets higher or lower."""
    match row.verdict:
        case Verdict.FASTER:
            return "faster" if terms.unit == "ns" else "lower"
        case Verdict.SLOWER:
            return "slower" if terms.unit == "ns" else "higher"
        case Verdict.EQUIVALENT:
            return f"no difference beyond {margin_text(terms.margin)}"
        case Verdict.UNDECIDED:
            return "inside noise"
        case Verdict.TOO_FEW_RUNS:
            return _SINGLE_RUN if _is_single(row) else "too few runs"
    return "not comparable"


def verdict_text(row: ComparisonRow, terms: Terms) -> str:
    """The verdict with what a reader needs to act on it: the smallest visible effect and the runs that would decide."""
    text = verdict_word(row, terms)
    if row.verdict is Verdict.EQUIVALENT and terms.is_part:
        text += " of the total"
    if row.verdict is Verdict.UNDECIDED and (details := _noise_details(row, terms.scale)):
        text += f" ({', '.join(details)})"
    note = note_text(row)
    return f"{text}; {note}" if note else text


def _noise_details(row: ComparisonRow, scale: Scale) -> list[str]:
    details = []
    if row.visible_effect is not None and math.isfinite(row.visible_effect):
        details.append(f"visible from {visible_effect_text(row, scale)} {scale.unit}".rstrip())
    if row.runs_needed is not None:
        details.append(f"{counted(row.runs_needed, 'run')} per arm to decide the effect seen")
    return details


def note_text(row: ComparisonRow) -> str:
    """What the row's note adds to its verdict."""
    parts = [part for part in printable(row.note).split("; ") if part != _SINGLE_RUN]
    return "; ".join(parts)


def visible_effect_text(row: ComparisonRow, scale: Scale) -> str:
    """ "±3.1" in the scale's unit, two significant digits; "" where it is not known."""
    if row.visible_effect is None or not math.isfinite(row.visible_effect):
        return ""
    return f"±{scale.number(row.visible_effect, scale.decimals_of(row.visible_effect))}"


def margin_text(margin: float) -> str:
    """0.01 as "1 %"."""
    return f"{100 * margin:g} %"


def relative_change(row: ComparisonRow) -> str:
    """The change as a share of the baseline: "-12.3 %", "x48 down", "x3.2 up", "new", "gone", "0 %"."""
    if row.relative is None:
        return "new" if row.candidate.mean > 0 and row.baseline.mean == 0 else ""
    if row.candidate.mean == 0 and row.baseline.mean > 0:
        return "gone"
    if row.relative <= -1:
        return f"{_signed_percent(row.relative, 0)} %" if row.candidate.mean < 0 else "to nearly nothing"
    return _change(row.relative, _relative_decimals(row.relative_interval))


def relative_interval(row: ComparisonRow) -> str:
    """ "[-14.1, -10.4] %", or "[x2.6 down to x2.1 down]" where the change is given as a factor; "" without an interval."""
    interval = row.relative_interval
    if interval is None or row.relative is None:
        return ""
    decimals = _relative_decimals(interval)
    if _is_factor(row.relative):
        return f"[{_change(interval.low, decimals)} to {_change(interval.high, decimals)}]"
    return f"[{_signed_percent(interval.low, decimals)}, {_signed_percent(interval.high, decimals)}] %"


def delta_text(row: ComparisonRow, scale: Scale) -> str:
    """The difference in the scale's unit, rounded to its interval; 0 shows without a sign."""
    return scale.signed(row.delta, scale.decimals_within(row.delta_interval))


def interval_text(interval: Interval | None, scale: Scale) -> str:
    """ "[-160.1, -152.5]" in the scale's unit; "" where there is none."""
    if interval is None:
        return ""
    decimals = scale.decimals_within(interval)
    return f"[{scale.signed(interval.low, decimals)}, {scale.signed(interval.high, decimals)}]"


def effect_text(row: ComparisonRow, scale: Scale) -> str:
    """Difference, interval and relative change in one breath: "-156.3 ms [-160.1, -152.5], -12.3 %"."""
    parts = f"{delta_text(row, scale)} {scale.unit} {interval_text(row.delta_interval, scale)}".split()
    change = relative_change(row)
    return " ".join(parts) + (f", {change}" if change else "")


def result_sentence(candidate: CandidateComparison, baseline_name: str, terms: Terms) -> str:
    """One sentence on the total, and one on the row that moved most among those that were decided."""
    total, scale = candidate.total, terms.scale
    p_text = probability(total.p_adjusted)
    p_text = f", p {'' if p_text.startswith('<') else '= '}{p_text}" if p_text else ""
    verdict = verdict_text(total, terms)
    text = (
        f"{printable(candidate.name)} against {printable(baseline_name)}: total {effect_text(total, scale)}{p_text}: {verdict}."
    )
    decided = [row for row in candidate.rows if row.verdict in (Verdict.FASTER, Verdict.SLOWER)]
    if decided:
        largest = max(decided, key=lambda row: abs(row.delta))
        text += f" Largest change: {printable(largest.label)} {effect_text(largest, scale)}."
    return text


def method_line(candidate: CandidateComparison, baseline_runs: int) -> str:
    """How the verdicts were reached."""
    runs = f"{counted(baseline_runs, 'run')} against {counted(candidate.runs, 'run')}"
    if candidate.test is TestKind.NONE:
        return f"{runs}: no interval, differences as measured"
    pairs = len(candidate.total.baseline.values)
    is_partial = candidate.test is TestKind.PAIRED and pairs < max(baseline_runs, candidate.runs)
    test = f"{candidate.test.value} over the {counted(pairs, 'round')} of both" if is_partial else candidate.test.value
    return f"{runs}, {test}, {counted(candidate.family, 'row')} tested, p adjusted by Holm, intervals 95 % unadjusted"


def metrics_method_line(candidate: CandidateComparison, baseline_runs: int) -> str:
    """How the verdicts on times and metrics were reached where nothing was profiled."""
    of_arms = [metric.row for metric in candidate.metrics]
    base, cand = (
        max((len(spread.values) for spread in spreads), default=0)
        for spreads in ([row.baseline for row in of_arms], [row.candidate for row in of_arms])
    )
    if any(of_arm for metric in candidate.metrics for of_arm in metric.instances):
        runs = f"{base} processes ({counted(baseline_runs, 'window')}) against {cand} ({candidate.runs})"
    else:
        runs = f"{counted(baseline_runs, 'run')} against {counted(candidate.runs, 'run')}"
    if candidate.test is TestKind.NONE:
        return f"{runs}: no interval, differences as measured"
    return f"times and metrics without a profile, {runs}, {candidate.test.value}, each tested by itself, intervals 95 %"


def evidence_text(row: ComparisonRow) -> str:
    """What stands behind the verdict beside p: "9.1 standard errors apart, no overlap, permutation p 0.029"; "" for nothing."""
    parts = []
    if row.sigma is not None:
        parts.append(f"{row.sigma:.1f} standard errors apart")
    if row.no_overlap and row.p is not None:
        parts.append("no overlap")
    if row.permutation_p is not None:
        parts.append(f"permutation p {probability(row.permutation_p)}")
    return ", ".join(parts)


def values_text(values: Sequence[float], instances: Sequence[str], scale: Scale) -> str:
    """ "8.997, 9.026", or of watched processes "node-1 8.997, node-2 9.026"; enough decimals to see what lies between them."""
    decimals = max(scale.decimals, significant_decimals((max(values) - min(values)) / scale.divisor, 0)) if values else 0
    shown = [scale.number(value, decimals) for value in values]
    if len(instances) == len(values):
        shown = [f"{printable(instance)} {value}" for instance, value in zip(instances, shown, strict=True)]
    return ", ".join(shown)


def profiling_cost_text(cost: ProfilingCost) -> str:
    """ "profiling base took 2.1 % more CPU time than its plain runs"."""
    change = 100 * (cost.ratio - 1)
    more = "more" if change >= 0 else "less"
    return f"profiling {printable(cost.arm)} took {abs(change):.1f} % {more} CPU time than its plain runs"


def _is_single(row: ComparisonRow) -> bool:
    return len(row.baseline.values) <= 1 and len(row.candidate.values) <= 1


def _is_factor(relative: float) -> bool:
    return relative > _FACTOR - 1 or relative < 1 / _FACTOR - 1


def _change(relative: float, decimals: int) -> str:
    if relative > _FACTOR - 1:
        return f"x{_factor_number(1 + relative)} up"
    if relative <= -1:
        return "gone"
    if relative < 1 / _FACTOR - 1:
        return f"x{_factor_number(1 / (1 + relative))} down"
    return f"{_signed_percent(relative, decimals)} %"


def _factor_number(factor: float) -> str:
    return f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}"


def _signed_percent(fraction: float, decimals: int) -> str:
    text = f"{100 * fraction:+.{decimals}f}"
    return text if text.strip("+-0.") else text[1:]


def _relative_decimals(interval: Interval | None) -> int:
    if interval is None:
        return 1
    return min(2, significant_decimals(100 * (interval.high - interval.low) / 2, 1))
