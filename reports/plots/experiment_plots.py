"""An experiment's plots: every run as a dot, the change of the total as a waterfall of its categories, the steps of a ladder.

Drawn with matplotlib's objects alone, without its global state; SVG and PNG have the same bytes for the same result.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from profiler.errors import UsageError
from profiler.model.comparison import CandidateComparison, Comparison, ComparisonRow, Verdict
from profiler.model.experiment import Design, ExperimentRecord
from profiler.model.experiment_result import ConditionResult, ExperimentResult, Ladder
from profiler.model.headline import headline_metric
from profiler.model.interval import Interval
from profiler.model.quick_dataclass import dataclass
from reports.comparison_report import comparison_scale
from reports.experiment_wording import per_text, quantity_of
from reports.plain_text import printable, shorten_middle
from reports.quantities import Scale, scale_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LARGEST_WATERFALL = 10
_FASTER, _SLOWER, _NEUTRAL, _INK = "#2a7f4f", "#b3382c", "#8a8f98", "#23272e"
_PIXELS_PER_INCH = 144
_LABEL_WIDTH = 28


@dataclass(frozen=True, slots=True)
class Plot:
    """``name``: file name without suffix."""

    name: str
    svg: bytes
    png: bytes


def experiment_plots(result: ExperimentResult) -> tuple[Plot, ...]:
    """``runs``, ``waterfall`` per profiled candidate and ``ladder``, of every condition.  ``UsageError`` without matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("--plots needs matplotlib: pip install 'slotscope[plots]'") from None
    plots = []
    for condition in result.conditions:
        suffix = f"-{condition.condition}" if condition.condition else ""
        quantity = headline_metric(result.record, condition.comparison.candidates)
        if quantity is not None:
            plots.append(_plot(f"runs{suffix}", _runs_figure(result, condition, quantity)))
        for candidate in condition.comparison.candidates:
            if candidate.is_profiled:
                figure = _waterfall_figure(result.record, condition.comparison, candidate)
                plots.append(_plot(f"waterfall-{candidate.name}", figure))
        if condition.ladder is not None:
            plots.append(_plot(f"ladder{suffix}", _ladder_figure(result.record, condition.ladder)))
    return tuple(plots)


def _plot(name: str, figure: Figure) -> Plot:
    import matplotlib

    svg, png = io.BytesIO(), io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "slotscope", "svg.fonttype": "none"}):
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
        figure.savefig(png, format="png", dpi=_PIXELS_PER_INCH, metadata={"Software": None}, bbox_inches="tight")
    return Plot(name, svg.getvalue(), png.getvalue())


def _new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _runs_figure(result: ExperimentResult, condition: ConditionResult, quantity: str) -> Figure:
    """The headline's metric, or the total, of every run or process, and the mean of each arm with its 95 % interval."""
    name, unit, rows = _headline_rows(condition, quantity)
    scale = scale_for([mean for row in rows for mean in (row.baseline.mean, row.candidate.mean)], unit)
    arms = [(condition.comparison.baseline_name, rows[0].baseline)]
    arms += [(c.name, row.candidate) for c, row in zip(condition.comparison.candidates, rows, strict=True)]
    figure, axes = _new_figure(6.4, 0.9 + 0.6 * len(arms))
    for place, (_, spread) in enumerate(arms):
        shown = [value / scale.divisor for value in spread.values]
        axes.plot(shown, _spread_out(place, len(shown)), "o", color=_NEUTRAL, markersize=4, alpha=0.8)
        half = _half_width(spread.mean_interval) / scale.divisor
        axes.errorbar([spread.mean / scale.divisor], [place], xerr=[half], fmt="D", color=_INK, markersize=5, capsize=4)
    axes.set_yticks(range(len(arms)), [_label(arm) for arm, _ in arms])
    axes.set_ylim(len(arms) - 0.5, -0.5)
    replicate = "run" if result.record.design is Design.INTERLEAVED else "process"
    what = f"{name}{per_text(result.record, name)} {scale.unit}".rstrip()
    axes.set_xlabel(f"{what}, one dot a {replicate}; mean with 95 % interval")
    return figure


def _headline_rows(condition: ConditionResult, quantity: str) -> tuple[str, str, list[ComparisonRow]]:
    candidates = condition.comparison.candidates
    if not quantity:
        return quantity_of(condition.comparison), condition.comparison.unit, [candidate.total for candidate in candidates]
    metrics = [next(metric for metric in candidate.metrics if metric.row.name == quantity) for candidate in candidates]
    return quantity, metrics[0].unit, [metric.row for metric in metrics]


def _spread_out(place: int, count: int) -> list[float]:
    """Dots of one arm beside each other, so that equal values stay visible."""
    return [place + 0.3 * ((index % 5) - 2) / 4 for index in range(count)]


def _waterfall_figure(record: ExperimentRecord, comparison: Comparison, candidate: CandidateComparison) -> Figure:
    """From the baseline's total to the candidate's, one bar per row, the largest changes first."""
    scale = comparison_scale(comparison, candidate)
    rows = sorted(candidate.rows, key=lambda row: -abs(row.delta))
    shown, left = rows[:_LARGEST_WATERFALL], rows[_LARGEST_WATERFALL:]
    steps = [(row.label, row.delta, row.delta_interval, row.verdict) for row in shown]
    if left:
        steps.append((f"other ({len(left)})", sum(row.delta for row in left), None, Verdict.UNDECIDED))
    figure, axes = _new_figure(7.2, 1.2 + 0.34 * (len(steps) + 2))
    level = candidate.total.baseline.mean
    labels = [comparison.baseline_name, *(label for label, *_ in steps), candidate.name]
    axes.barh([0], [level / scale.divisor], color=_INK)
    for place, (_, delta, interval, verdict) in enumerate(steps, 1):
        _bar(axes, place, (level, delta), interval, (scale, verdict))
        level += delta
    axes.barh([len(steps) + 1], [candidate.total.candidate.mean / scale.divisor], color=_INK)
    axes.set_yticks(range(len(labels)), [_label(label) for label in labels])
    axes.invert_yaxis()
    _zoom(axes, [candidate.total.baseline.mean, candidate.total.candidate.mean], [delta for _, delta, *_ in steps], scale)
    quantity = quantity_of(comparison)
    axes.set_xlabel(f"{quantity}{per_text(record, quantity)}, {scale.unit}; lines: 95 % intervals of the changes")
    return figure


def _bar(axes: Axes, place: int, step: tuple[float, float], interval: Interval | None, style: tuple[Scale, Verdict]) -> None:
    level, delta = step
    scale, verdict = style
    is_certain = verdict in (Verdict.FASTER, Verdict.SLOWER)
    color = (_FASTER if delta < 0 else _SLOWER) if is_certain else _NEUTRAL
    axes.barh([place], [delta / scale.divisor], left=level / scale.divisor, color=color)
    if interval is not None:
        ends = [(level + end) / scale.divisor for end in (interval.low, interval.high)]
        axes.plot(ends, [place, place], color=_INK, linewidth=1)


def _zoom(axes: Axes, totals: Sequence[float], deltas: Iterable[float], scale: Scale) -> None:
    """The bars of totals are cut on the left where the changes would be too small to see; the axis says where it starts."""
    largest = sum(abs(delta) for delta in deltas)
    start = min(totals) - 2 * largest
    if largest and start > 0:
        axes.set_xlim(left=start / scale.divisor)


def _ladder_figure(record: ExperimentRecord, ladder: Ladder) -> Figure:
    """The mean of every step, and what it changed with its interval."""
    means = [ladder.steps[0].to_baseline.baseline.mean, *(step.to_baseline.candidate.mean for step in ladder.steps)]
    scale = scale_for(means, ladder.unit)
    figure, axes = _new_figure(1.6 + 1.1 * len(means), 3.6)
    axes.plot(range(len(means)), [mean / scale.divisor for mean in means], "-", color=_NEUTRAL, zorder=1)
    for place, mean in enumerate(means):
        row = ladder.steps[place - 1].to_previous if place else None
        color = _INK
        if row is not None and row.verdict in (Verdict.FASTER, Verdict.SLOWER):
            falls_well = ladder.quantity not in record.better_higher
            color = _FASTER if (row.delta < 0) is falls_well else _SLOWER
        half = _half_width(row.delta_interval) / scale.divisor if row is not None else 0.0
        axes.errorbar([place], [mean / scale.divisor], yerr=[half], fmt="o", color=color, capsize=4, zorder=2)
    axes.set_xticks(range(len(means)), [_label(name) for name in (ladder.baseline, *(s.name for s in ladder.steps))])
    axes.tick_params(axis="x", rotation=20)
    what = f"{ladder.quantity}{per_text(record, ladder.quantity)} {scale.unit}".rstrip()
    axes.set_ylabel(f"{what}; lines: 95 % interval of the step")
    return figure


def _half_width(interval: Interval | None) -> float:
    return (interval.high - interval.low) / 2 if interval is not None else 0.0


def _label(name: str) -> str:
    """Without the dollar signs that would start a formula."""
    return shorten_middle(printable(name), _LABEL_WIDTH).replace("$", r"\$")
