"""Comparisons that were never run, put together from two that were, in every format; each cell of them is marked."""

from __future__ import annotations

import csv
import io

from profiler.model.comparison import Verdict
from profiler.model.experiment_result import ComposedComparison, ComposedRow
from profiler.model.interval import Interval
from reports.arm_lines import warning_line
from reports.experiment_tables import TextTable
from reports.json_report import Json, document_text, interval_json, number_json, warnings_json
from reports.markdown_text import MAX_CHARACTERS, fitting, name, table, text
from reports.plain_text import printable, valid_utf8
from reports.quantities import count, probability, significant_decimals
from reports.terminal_table import Column, TerminalStyle, render_table, wrap

COMPOSED_SCHEMA = "slotscope.composed/1"
MARK = "*"
_FOOTNOTE = (
    f"{MARK} composed: no run shows it.  Ratios multiply and their errors add on the log scale, which holds if the build in "
    "the middle behaves alike in both places"
)
_COLUMNS = (
    "candidate_name",
    "kind",
    "name",
    "label",
    "first_ratio",
    "second_ratio",
    "composed_ratio",
    "composed_low",
    "composed_high",
    "composed_p",
    "composed_p_adjusted",
    "composed_verdict",
)
# Of the columns, in order: which stay longest where the terminal is narrow.
_KEEP = (100, 60, 60, 90, 80, 70, 85)
_VERDICTS = {
    # Of ratios of whatever was counted: not all of it is time.
    Verdict.FASTER: "lower",
    Verdict.SLOWER: "higher",
    Verdict.UNDECIDED: "inside noise",
    Verdict.TOO_FEW_RUNS: "too few runs",
    Verdict.UNTESTABLE: "not comparable",
}


def composed_table(composed: ComposedComparison, limit: int, margin: float) -> TextTable:
    """Both measured ratios, then what they make together; total behind the rows, then the metrics."""
    is_cut = bool(limit) and len(composed.rows) > limit + 1
    lines = [_cells(row, margin) for row in (composed.rows[:limit] if is_cut else composed.rows)]
    if is_cut:
        # Ratios do not add up: what the others make together is in no cell.
        lines.append((f"other ({count(len(composed.rows) - limit)})", *[""] * 6))
    lines += [_cells(row, margin) for row in (*_total(composed), *composed.metrics)]
    headers = (
        "",
        f"{composed.baseline} to {composed.via}",
        f"{composed.via} to {composed.candidate}",
        f"{composed.baseline} to {composed.candidate} {MARK}",
        f"95 % interval {MARK}",
        f"p adjusted {MARK}",
        f"verdict {MARK}",
    )
    return TextTable(headers, tuple(lines), frozenset({0, 6}))


def _total(composed: ComposedComparison) -> tuple[ComposedRow, ...]:
    return (composed.total,) if composed.total is not None else ()


def _cells(row: ComposedRow, margin: float) -> tuple[str, ...]:
    decimals = _decimals(row.ratio_interval)
    interval = row.ratio_interval
    verdict = f"no difference beyond {100 * margin:g} %" if row.verdict is Verdict.EQUIVALENT else _VERDICTS[row.verdict]
    return (
        row.label,
        _ratio(row.first_ratio, decimals),
        _ratio(row.second_ratio, decimals),
        f"{_ratio(row.ratio, decimals)} {MARK}",
        f"x{interval.low:.{decimals}f} to x{interval.high:.{decimals}f} {MARK}" if interval is not None else "",
        f"{probability(row.p_adjusted)} {MARK}" if row.p_adjusted is not None else "",
        f"{verdict} {MARK}",
    )


def _ratio(ratio: float | None, decimals: int) -> str:
    return "not known" if ratio is None else f"x{ratio:.{decimals}f}"


def _decimals(interval: Interval | None) -> int:
    """As many as the interval supports, at least those that show 1 %."""
    if interval is None or interval.high <= interval.low:
        return 3
    return max(2, min(5, significant_decimals((interval.high - interval.low) / 2, 3)))


def _headline(composed: ComposedComparison) -> str:
    return (
        f"{composed.candidate} against {composed.baseline}, composed of {composed.via} against {composed.baseline} and "
        f"{composed.candidate} against {composed.via}: candidate / baseline by {composed.dimension}"
    )


def render_composed(composed: ComposedComparison, limit: int, margin: float, style: TerminalStyle) -> str:
    """For a terminal; ends with a newline."""
    cells = composed_table(composed, limit, margin)
    columns = [
        Column(header, tuple(row[place] for row in cells.rows), keep=_KEEP[place], is_text=place in cells.text_columns)
        for place, header in enumerate(cells.headers)
    ]
    warnings = [wrap(f"warning {warning_line(warning)}", style) for warning in composed.warnings]
    head = wrap(printable(_headline(composed)), style)
    return "\n\n".join([head, render_table(columns, style).rstrip("\n"), wrap(_FOOTNOTE, style), *warnings]) + "\n"


def render_composed_markdown(composed: ComposedComparison, limit: int, margin: float) -> str:
    """At most 60,000 characters."""
    cells = composed_table(composed, limit, margin)
    rows = [tuple(name(cell) if place == 0 else text(cell) for place, cell in enumerate(row)) for row in cells.rows]
    lines = table(tuple(text(header) for header in cells.headers), rows, cells.text_columns)
    warnings = [f"**warning** {text(warning_line(warning))}" for warning in composed.warnings]
    blocks = [text(_headline(composed)), lines, text(_FOOTNOTE), *warnings]
    return "\n\n".join(fitting(blocks, MAX_CHARACTERS)) + "\n"


def render_composed_json(composed: ComposedComparison, margin: float) -> str:
    """``slotscope.composed/1``: ratios are candidate / baseline; what is under "composed" was not measured."""
    document: dict[str, Json] = {
        "schema": COMPOSED_SCHEMA,
        "baseline": valid_utf8(composed.baseline),
        "via": valid_utf8(composed.via),
        "candidate": valid_utf8(composed.candidate),
        "by": composed.dimension,
        "margin": number_json(margin),
        "rows": [_row_json(row) for row in composed.rows],
        "total": _row_json(composed.total) if composed.total is not None else None,
        "metrics": [_row_json(row) for row in composed.metrics],
        "warnings": warnings_json(composed.warnings),
    }
    return document_text(document)


def _row_json(row: ComposedRow) -> Json:
    return {
        "name": valid_utf8(row.name),
        "first_ratio": number_json(row.first_ratio),
        "second_ratio": number_json(row.second_ratio),
        "composed": {
            "ratio": number_json(row.ratio),
            "ratio_interval": interval_json(row.ratio_interval),
            "p": number_json(row.p),
            "p_adjusted": number_json(row.p_adjusted),
            "verdict": row.verdict.value,
        },
    }


def render_composed_csv(composed: ComposedComparison) -> str:
    """``kind`` is "row", "total" or "metric"; columns of what was not measured begin with "composed"."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(_COLUMNS)
    kinds = [("row", row) for row in composed.rows]
    kinds += [("total", row) for row in _total(composed)]
    kinds += [("metric", row) for row in composed.metrics]
    for kind, row in kinds:
        ends = (row.ratio_interval.low, row.ratio_interval.high) if row.ratio_interval is not None else (None, None)
        names = (valid_utf8(composed.candidate), kind, valid_utf8(row.name), valid_utf8(row.label))
        ratios = (row.first_ratio, row.second_ratio, row.ratio)
        writer.writerow((*names, *ratios, *ends, row.p, row.p_adjusted, row.verdict.value))
    return target.getvalue()
