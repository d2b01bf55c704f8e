"""What a build changed, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.model.comparison import CandidateComparison, ComparisonRow, Verdict
from profiler.model.quick_dataclass import dataclass
from reports.arm_lines import quality_line, warning_line
from reports.comparison_report import (
    ComparisonReport,
    RowsSum,
    comparison_scale,
    is_profiled,
    metric_scale,
    per_lines,
    shown_rows,
)
from reports.plain_text import printable, shorten_middle
from reports.quantities import Scale, probability
from reports.terminal_table import PATH_DIMENSIONS, Column, TerminalStyle, render_table, wrap
from reports.wording import (
    Terms,
    delta_text,
    interval_text,
    method_line,
    metrics_method_line,
    note_text,
    profiling_cost_text,
    relative_change,
    result_sentence,
    values_text,
    verdict_word,
    visible_effect_text,
)

_VERDICT_STYLES = {Verdict.FASTER: "green", Verdict.SLOWER: "red", Verdict.UNTESTABLE: "yellow"}
_REVERSED = {"green": "red", "red": "green"}
_FOOTNOTES = {
    "visible": "the smallest difference that these runs could show",
    "runs": "per arm, to decide the difference seen",
    "sigma": "|difference| / its standard error",
    "apart": "no value of one arm reaches into the other's",
}
_EXTRA = ("sigma", "runs", "apart")
_HEADER_WIDTH = 14


@dataclass(frozen=True, slots=True)
class _Tested:
    """``is_better_high``: more of it is better."""

    row: ComparisonRow
    terms: Terms
    is_better_high: bool = False

    @property
    def scale(self) -> Scale:
        return self.terms.scale

    @property
    def style(self) -> str:
        style = _VERDICT_STYLES.get(self.row.verdict, "")
        return _REVERSED.get(style, style) if self.is_better_high else style


def render_comparison(report: ComparisonReport, style: TerminalStyle) -> str:
    """Every candidate against the baseline, then quality and warnings; ends with a newline."""
    sections = [
        section for candidate in report.comparison.candidates for section in candidate_sections(report, candidate, style)
    ]
    sections.append(_wrapped(per_lines(report.per), style))
    sections.append(_wrapped([f"{printable(arm.name)}: {quality_line(arm)}" for arm in report.arms if arm.infos], style))
    sections.append(_wrapped([profiling_cost_text(cost) for cost in report.comparison.profiling_costs], style))
    sections.append(_wrapped([f"warning {warning_line(warning)}" for warning in report.comparison.warnings], style))
    return "\n\n".join(section for section in sections if section) + "\n"


def candidate_sections(report: ComparisonReport, candidate: CandidateComparison, style: TerminalStyle) -> list[str]:
    """Result, method, tables and notes of one candidate; some may be empty."""
    comparison = report.comparison
    if not is_profiled(candidate):
        names = f"{printable(candidate.name)} against {printable(comparison.baseline_name)}"
        header = wrap(f"{names}: {metrics_method_line(candidate, comparison.baseline_runs)}", style)
        tables = [_metrics_table(report, candidate, style)]
        return [header, *tables, _process_values(report, candidate, style), _notes(candidate, style), _footnote(tables, style)]
    scale = comparison_scale(comparison, candidate)
    header = _wrapped(
        [
            result_sentence(candidate, comparison.baseline_name, Terms(scale, comparison.unit, comparison.margin)),
            f"{comparison.event} by {comparison.dimension}, {method_line(candidate, comparison.baseline_runs)}",
        ],
        style,
    )
    tables = [_rows_table(report, candidate, style), _metrics_table(report, candidate, style)]
    return [header, *tables, _process_values(report, candidate, style), _notes(candidate, style), _footnote(tables, style)]


def _process_values(report: ComparisonReport, candidate: CandidateComparison, style: TerminalStyle) -> str:
    """Of each watched process its mean over its windows; "" where the values are runs."""
    arms = (report.comparison.baseline_name, candidate.name)
    of_total = comparison_scale(report.comparison, candidate)
    rows = [(metric.row, metric_scale(metric), metric.instances) for metric in candidate.metrics]
    lines = []
    for row, scale, instances in [(candidate.total, of_total, candidate.instances), *rows]:
        for arm, spread, names in zip(arms, (row.baseline, row.candidate), instances, strict=True):
            if names:
                what = f"{printable(row.label)} {scale.unit}".rstrip()
                lines.append(f"{what} of {printable(arm)}: {values_text(spread.values, names, scale)}")
    return _wrapped(lines, style)


def _footnote(tables: Sequence[str], style: TerminalStyle) -> str:
    """Explains the columns that had room, and what the margin is a part of."""
    headers = {word for rendered in tables for word in rendered.partition("\n")[0].split()}
    notes = [f"{header}: {meaning}" for header, meaning in _FOOTNOTES.items() if header in headers]
    if any("no difference beyond" in rendered for rendered in tables):
        notes.append("no difference beyond: in rows, a part of the baseline's total")
    return wrap("; ".join(notes), style)


def _wrapped(lines: Sequence[str], style: TerminalStyle) -> str:
    return "\n".join(wrap(line, style) for line in lines)


def _rows_table(report: ComparisonReport, candidate: CandidateComparison, style: TerminalStyle) -> str:
    comparison = report.comparison
    rows, rest = shown_rows(candidate, report.limit)
    scale = comparison_scale(comparison, candidate)
    terms = Terms(scale, comparison.unit, comparison.margin)
    tested = [_Tested(row, terms) for row in (*rows, candidate.total)]
    labels = _cells([*(row.label for row in rows), "total"], rest, rest.label if rest else "")
    deltas = [delta_text(row.row, scale) for row in tested]
    columns = [
        Column(
            comparison.dimension,
            labels,
            is_text=True,
            is_path=comparison.dimension in PATH_DIMENSIONS,
            styles=(*("" for _ in labels[1:]), "bold"),
            short_cells=_cells([*(row.name for row in rows), "total"], rest, rest.label if rest else ""),
        ),
        *_mean_columns(report, candidate, tested, rest),
        Column(f"delta {scale.unit}".rstrip(), _cells(deltas, rest, scale.signed(rest.delta) if rest else "")),
        *_effect_columns(tested, rest),
    ]
    return render_table(columns, style).rstrip("\n")


def _metrics_table(report: ComparisonReport, candidate: CandidateComparison, style: TerminalStyle) -> str:
    if not candidate.metrics:
        return ""
    margin = report.comparison.margin
    tested = [
        _Tested(metric.row, Terms(metric_scale(metric), metric.unit, margin), metric.row.name in report.better_higher)
        for metric in candidate.metrics
    ]
    columns = [
        Column("metric", tuple(row.row.label for row in tested), is_text=True),
        Column("unit", tuple(row.scale.unit for row in tested), keep=90, is_word=True),
        *_mean_columns(report, candidate, tested, None),
        Column("delta", tuple(delta_text(row.row, row.scale) for row in tested)),
        *_effect_columns(tested, None, "p"),  # each is a family of its own: there is nothing to adjust
    ]
    return render_table(columns, style).rstrip("\n")


def _mean_columns(
    report: ComparisonReport, candidate: CandidateComparison, tested: Sequence[_Tested], rest: RowsSum | None
) -> list[Column]:
    scale = tested[0].scale
    baseline = [row.scale.number(row.row.baseline.mean) for row in tested]
    changed = [row.scale.number(row.row.candidate.mean) for row in tested]
    return [
        Column(
            _arm_header(report.comparison.baseline_name),
            _cells(baseline, rest, scale.number(rest.baseline) if rest else ""),
            keep=60,
        ),
        Column(_arm_header(candidate.name), _cells(changed, rest, scale.number(rest.candidate) if rest else ""), keep=60),
    ]


def _arm_header(name: str) -> str:
    """An arm's name must not make its column wider than its numbers."""
    return shorten_middle(printable(name), _HEADER_WIDTH)


def _effect_columns(tested: Sequence[_Tested], rest: RowsSum | None, p_header: str = "p adj") -> list[Column]:
    """Interval, change and verdict, then what supports the verdict; empty for the remainder, which is not tested."""
    rows = [row.row for row in tested]
    verdicts = [verdict_word(row.row, row.terms) for row in tested]
    styles = [row.style for row in tested]
    numbers = (
        (p_header, 40, [probability(row.p_adjusted) for row in rows]),
        ("sigma", 20, ["" if row.sigma is None else f"{row.sigma:.1f}" for row in rows]),
        ("visible", 35, [visible_effect_text(row.row, row.scale) for row in tested]),
        ("runs", 30, ["" if row.runs_needed is None else str(row.runs_needed) for row in rows]),
        ("apart", 10, ["yes" if row.no_overlap and row.p is not None else "" for row in rows]),
    )
    return [
        Column("95 % interval", _cells([interval_text(row.row.delta_interval, row.scale) for row in tested], rest), keep=50),
        Column("change", _cells([relative_change(row) for row in rows], rest), keep=80),
        Column("verdict", _cells(verdicts, rest), is_word=True, styles=_cells(styles, rest)),
        *(Column(header, _cells(cells, rest), keep, is_extra=header in _EXTRA) for header, keep, cells in numbers),
    ]


def _cells(cells: Sequence[str], rest: RowsSum | None, rest_cell: str = "") -> tuple[str, ...]:
    """The remainder, where there is one, stands before the total, which is the last of ``cells``."""
    return (*cells[:-1], rest_cell, cells[-1]) if rest else tuple(cells)


def _notes(candidate: CandidateComparison, style: TerminalStyle) -> str:
    """Equal notes are told once, with all rows that have them."""
    labels: dict[str, list[str]] = {}
    of_profile = (*candidate.rows, candidate.total) if is_profiled(candidate) else ()
    for row in (*of_profile, *(metric.row for metric in candidate.metrics)):
        if note := note_text(row):
            labels.setdefault(note, []).append(printable(row.label))
    return _wrapped([f"{', '.join(rows)}: {note}" for note, rows in labels.items()], style)
