"""The tables of an experiment as cells of text, the same for the terminal and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TypeVar

from profiler.model.comparison import ComparisonRow, Verdict
from profiler.model.experiment import ExperimentRecord, VariantFacts
from profiler.model.experiment_result import (
    Agreement,
    ControlResult,
    ControlRow,
    ExperimentPower,
    GainAttribution,
    Ladder,
    MetricAgreement,
    PowerRow,
    PowerTable,
)
from profiler.model.interval import Interval
from profiler.model.quick_dataclass import dataclass
from reports.quantities import Scale, count, probability, scale_for, significant_decimals
from reports.wording import Terms, interval_text, margin_text, relative_change, relative_interval, verdict_word

_MOST_SECTIONS = 4
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class TextTable:
    """``rows``: as many cells each as there are ``headers``; columns not in ``text_columns`` hold numbers."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: frozenset[int] = frozenset({0})


def variant_table(record: ExperimentRecord) -> TextTable:
    """Every build: what it is, how large, and what it cost to make; columns that are empty throughout are left out."""
    headers = ("variant", "note", "revision", "size", "build", "build CPU", "build memory", "rebuild")
    rows = tuple(_variant_row(variant, record.baseline) for variant in record.variants)
    return _without_empty(TextTable(headers, rows, frozenset({0, 1, 2})))


def _variant_row(variant: VariantFacts, baseline: str) -> tuple[str, ...]:
    name = f"{variant.name} (baseline)" if variant.name == baseline else variant.name
    note = f"{variant.control_of} once more, as a control" if variant.control_of else variant.note
    build = variant.build if not variant.control_of else None
    rebuild = variant.rebuild if not variant.control_of else None
    return (
        name,
        note,
        variant.revision,
        bytes_text(variant.size_bytes),
        f"{_duration(build.wall_ns)}{' (incremental)' if build.edit else ''}" if build else "",
        _duration(build.cpu_ns) if build else "",
        bytes_text(build.peak_bytes) if build else "",
        _duration(rebuild.wall_ns) if rebuild else "",
    )


def bytes_text(size: float) -> str:
    """ "1.9 GB"; "" for 0."""
    for divisor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= divisor:
            return f"{size / divisor:.1f} {unit}"
    return f"{size:.0f} B" if size else ""


def _duration(value_ns: int) -> str:
    return scale_for([value_ns], "ns").quantity(value_ns)


def build_lines(record: ExperimentRecord) -> list[str]:
    """What the incremental builds changed, and which sections of the binaries differ from the baseline's."""
    baseline = next((variant for variant in record.variants if variant.name == record.baseline), None)
    lines = []
    for variant in record.variants:
        if variant.rebuild is not None and not variant.control_of:
            lines.append(f"{variant.name}: built again after this edit: {variant.rebuild.edit}")
        if baseline is not None and variant.sections and baseline.sections and not variant.control_of:
            lines += _section_line(variant, baseline)
    return lines


def _section_line(variant: VariantFacts, baseline: VariantFacts) -> list[str]:
    """ "thin: .text 1.4 MB (+2.1 kB), .rodata 80.0 kB (new)"; the largest differences, none where the sections are alike."""
    of_baseline = {section.name: section.size_bytes for section in baseline.sections}
    changes = [(section, section.size_bytes - of_baseline.get(section.name, 0)) for section in variant.sections]
    largest = sorted((change for change in changes if change[1]), key=lambda change: -abs(change[1]))[:_MOST_SECTIONS]
    if not largest:
        return []
    parts = [
        f"{section.name} {bytes_text(section.size_bytes) or '0 B'} ({_section_change(change, section.name in of_baseline)})"
        for section, change in largest
    ]
    return [f"{variant.name}: sections unlike {baseline.name}'s: {', '.join(parts)}"]


def _section_change(change: int, is_known: bool) -> str:
    return f"{'+' if change > 0 else '-'}{bytes_text(abs(change))}" if is_known else "not among the largest there"


def gain_table(gain: GainAttribution, scale: Scale, limit: int) -> TextTable:
    """Who accounts for the change of the total, by size; beyond ``limit`` rows the rest is added up."""
    rows = [
        (row.label, scale.signed(row.delta), _share(row.share, row.share_interval), _share_interval(row.share_interval))
        for row in gain.rows
    ]
    _, left = _within(gain.rows, limit)
    if left:
        shares = [row.share for row in left]
        share = sum(part for part in shares if part is not None) if None not in shares else None
        rest = (_others(left), scale.signed(sum(row.delta for row in left)), _share(share, None), "")
        rows = [*rows[:limit], rest]
    return TextTable(("", f"delta {scale.unit}".rstrip(), "share of the change", "95 % interval"), tuple(rows))


def _share(share: float | None, interval: Interval | None) -> str:
    return "" if share is None else f"{100 * share:.{_percent_decimals(interval)}f} %"


def _share_interval(interval: Interval | None) -> str:
    if interval is None:
        return ""
    decimals = _percent_decimals(interval)
    return f"{100 * interval.low:.{decimals}f} to {100 * interval.high:.{decimals}f} %"


def _percent_decimals(interval: Interval | None) -> int:
    return 0 if interval is None else min(1, significant_decimals(100 * (interval.high - interval.low) / 2, 0))


def agreement_line(agreement: MetricAgreement) -> str:
    """ "epoch: the profile changed by -12.1 %, the metric by -12.3 % (geometric means): they agree"."""
    changes = [
        f"{100 * change:+.1f} %" if change is not None else "an unknown part"
        for change in (agreement.profile_change, agreement.metric_change)
    ]
    line = f"{agreement.metric}: the profile changed by {changes[0]}, the metric by {changes[1]} (geometric means)"
    if agreement.agreement is Agreement.AGREE:
        return f"{line}: they agree within what these runs can tell"
    if agreement.agreement is Agreement.DIFFER:
        return f"{line}{_apart(agreement.difference_interval)}: {agreement.meaning}"
    return f"{line}: not compared, {agreement.meaning}"


def _apart(of_logarithms: Interval | None) -> str:
    """The profile's factor as it is to the metric's: ", -52.4 to -40.8 % apart"."""
    if of_logarithms is None:
        return ""
    low, high = (100 * math.expm1(bound) for bound in (of_logarithms.low, of_logarithms.high))
    return f", {low:+.1f} to {high:+.1f} % apart"


def ladder_table(ladder: Ladder, margin: float) -> TextTable:
    """Every step against the one before and against the baseline."""
    rows = [row for step in ladder.steps for row in (step.to_previous, step.to_baseline)]
    scale = scale_for([mean for row in rows for mean in (row.baseline.mean, row.candidate.mean)], ladder.unit)
    terms = Terms(scale, ladder.unit, margin)
    headers = (
        "step",
        "note",
        f"{ladder.quantity} {scale.unit}".rstrip(),
        "to the step before",
        "verdict",
        "to the baseline",
        "verdict ",
    )
    first = ladder.steps[0].to_baseline.baseline.mean
    lines = [(ladder.baseline, "", scale.number(first), "", "", "", "")]
    for step in ladder.steps:
        name = f"{step.name} (largest step)" if step.name == ladder.largest else step.name
        lines.append(
            (
                name,
                step.note,
                scale.number(step.to_baseline.candidate.mean),
                _change_text(step.to_previous),
                verdict_word(step.to_previous, terms),
                _change_text(step.to_baseline),
                verdict_word(step.to_baseline, terms),
            )
        )
    return _without_empty(TextTable(headers, tuple(lines), frozenset({0, 1, 4, 6})))


def _change_text(row: ComparisonRow) -> str:
    return f"{relative_change(row)} {relative_interval(row)}".strip()


def control_table(control: ControlResult, limit: int, better_higher: Set[str] = frozenset()) -> TextTable:
    """The change under the condition, under the control, and their difference, which is the gain that the control does not
    explain; beyond ``limit`` rows the rest is added up; then the total and the metrics.  ``better_higher``: metrics that gain
    by rising."""
    totals = () if control.total is None else (control.total,)
    scale = scale_for([row.change for row in (*control.rows, *totals)], control.unit if totals else "")
    shown, left = _within(control.rows, limit)
    lines = [_control_row(row, scale) for row in shown]
    if left:
        changes = [(row.change, row.control_change, row.difference) for row in left]
        lines.append((_others(left), *(scale.signed(sum(column)) for column in zip(*changes, strict=True)), "", "", ""))
    lines += [_control_row(row, scale) for row in totals]
    for metric in control.metrics:
        metric_scale = scale_for([metric.change, metric.control_change], metric.unit)
        verdict = _REVERSED.get(metric.verdict, metric.verdict) if metric.name in better_higher else metric.verdict
        cells = _control_row(replace(metric, verdict=verdict), metric_scale)
        lines.append((_with_unit(metric.label, metric_scale), *cells[1:]))
    headers = (
        "",
        f"{control.condition} {scale.unit}".rstrip(),
        f"{control.control} {scale.unit}".rstrip(),
        "difference",
        "95 % interval",
        "p adjusted",
        "verdict",
    )
    return TextTable(headers, tuple(lines), frozenset({0, 6}))


def _control_row(row: ControlRow, scale: Scale) -> tuple[str, ...]:
    decimals = scale.decimals_within(row.difference_interval)
    return (
        row.label,
        scale.signed(row.change, decimals),
        scale.signed(row.control_change, decimals),
        scale.signed(row.difference, decimals),
        interval_text(row.difference_interval, scale),
        probability(row.p_adjusted),
        _CONTROL_VERDICTS[row.verdict],
    )


_REVERSED = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
_CONTROL_VERDICTS = {
    Verdict.FASTER: "gains more than the control",
    Verdict.SLOWER: "gains less than the control",
    Verdict.EQUIVALENT: "as in the control",
    Verdict.UNDECIDED: "inside noise",
    Verdict.TOO_FEW_RUNS: "too few runs",
    Verdict.UNTESTABLE: "not comparable",
}


def power_overview_table(power: ExperimentPower) -> TextTable:
    """What so many runs per arm would show of the primary metric (or the total, or the first metric), one row a comparison."""
    first = power.tables[0]
    rows = []
    for table in power.tables:
        row = table.headline(power.primary)
        scale = scale_for([row.mean], row.unit)
        mean, *cells = _power_row(row, scale)[1:-1]
        name = f"{table.candidate} less {table.control}" if table.control else table.candidate
        rows.append((name, _with_unit(row.label, scale), mean, *cells))
    headers = ("comparison", "of", "mean", *_power_headers(first))
    return TextTable(headers, tuple(rows), frozenset({0, 1}))


def _power_headers(power: PowerTable) -> tuple[str, ...]:
    return (
        *(f"{runs} {power.replicates}" for runs in power.runs),
        f"{power.replicates} for {margin_text(power.margin)}",
    )


def power_text_table(power: PowerTable, limit: int) -> TextTable:
    """What so many runs per arm would show, in the rows' unit and as a part of the row."""
    scale = scale_for([row.mean for row in power.profile], power.unit if power.profile else "")
    shown, left = _within(power.rows, limit)
    lines = [_power_row(row, scale) for row in shown]
    if left:
        # Effects do not add up: what all of them together would show is not known.
        lines.append((_others(left), scale.number(sum(row.mean for row in left)), *[""] * (len(power.runs) + 2)))
    lines += [_power_row(power.total, scale)] if power.total is not None else []
    for metric in power.metrics:
        metric_scale = scale_for([metric.mean], metric.unit)
        lines.append((_with_unit(metric.label, metric_scale), *_power_row(metric, metric_scale)[1:]))
    headers = (
        "",
        f"mean {scale.unit}".rstrip(),
        *_power_headers(power),
        "sampling",
    )
    return _without_empty(TextTable(headers, tuple(lines)))


def _power_row(row: PowerRow, scale: Scale) -> tuple[str, ...]:
    return (
        row.label,
        scale.number(row.mean),
        *(_visible(visible, row.mean, scale) if row.has_spread else "no spread" for visible in row.visible),
        _runs_for_margin(row),
        f"{100 * row.sampling_share:.0f} %" if row.sampling_share is not None else "",
    )


def _runs_for_margin(row: PowerRow) -> str:
    if not row.has_spread:
        return "not known"
    return count(row.runs_for_margin) if row.runs_for_margin is not None else "more than can be run"


def _visible(visible: float, mean: float, scale: Scale) -> str:
    part = f" ({100 * visible / abs(mean):.1f} %)" if mean else ""
    return f"{scale.number(visible, scale.decimals_of(visible))}{part}"


def _with_unit(label: str, scale: Scale) -> str:
    """Of a row whose unit is not that of its column."""
    return f"{label}, {scale.unit}" if scale.unit else label


def _within(rows: Sequence[_Row], limit: int) -> tuple[Sequence[_Row], Sequence[_Row]]:
    """Rows to show and rows to add up; one row more than the limit is shown, for its sum would take the same line."""
    return (rows, ()) if not limit or len(rows) <= limit + 1 else (rows[:limit], rows[limit:])


def _others(left: Sequence[object]) -> str:
    return f"other ({count(len(left))})"


def _without_empty(table: TextTable) -> TextTable:
    kept = [column for column in range(len(table.headers)) if column == 0 or any(row[column] for row in table.rows)]
    return TextTable(
        tuple(table.headers[column] for column in kept),
        tuple(tuple(row[column] for column in kept) for row in table.rows),
        frozenset(place for place, column in enumerate(kept) if column in table.text_columns),
    )
