"""JSON for other programs: ``slotscope.report/1`` and ``slotscope.compare/1``.

Weights that are whole numbers are written as integers; what is not known, or not a finite number, is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from profiler.model.comparison import (
    CandidateComparison,
    Comparison,
    ComparisonRow,
    MetricComparison,
)
from profiler.model.interval import Interval
from profiler.model.quality import ReportWarning
from reports.arm_report import ArmReport, ReportRow, report_rows
from reports.plain_text import valid_utf8

REPORT_SCHEMA = "slotscope.report/1"
COMPARE_SCHEMA = "slotscope.compare/1"

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def render_report_json(report: ArmReport) -> str:
    """Rows heaviest first; weights and samples are sums over the runs, whose number is ``quality.runs``."""
    costs = report.costs
    quality: dict[str, Json] = {"runs": report.runs, "share_interval": report.shares.method}
    quality |= {name: _value(value) for name, value in asdict(costs.quality).items()}
    quality["missing"] = [{name: _value(value) for name, value in asdict(missing).items()} for missing in costs.missing]
    document: dict[str, Json] = {
        "schema": REPORT_SCHEMA,
        "event": valid_utf8(costs.event),
        "unit": valid_utf8(costs.unit),
        "total": report.total,
        "view": costs.view,
        "rows": [_report_row(row) for row in report_rows(report, with_empty_other=False)],
        "quality": quality,
        "warnings": _warnings(costs.warnings),
    }
    return _text(document)


def render_comparison_json(comparison: Comparison) -> str:
    """Candidates and rows in their order; ``delta`` = candidate - baseline, means per run in ``unit``."""
    document: dict[str, Json] = {
        "schema": COMPARE_SCHEMA,
        "unit": valid_utf8(comparison.unit),
        "baseline": {"name": valid_utf8(comparison.baseline_name), "runs": comparison.baseline_runs},
        "candidates": [_candidate(candidate) for candidate in comparison.candidates],
        "warnings": _warnings(comparison.warnings),
    }
    return _text(document)


def _report_row(row: ReportRow) -> Json:
    return {
        "name": valid_utf8(row.name),
        "self": row.self_weight,
        "total": row.self_weight if row.total_weight is None else row.total_weight,
        "share": _number(row.share),
        "share_interval": _interval(row.interval),
        "samples": row.samples,
    }


def _candidate(candidate: CandidateComparison) -> Json:
    return {
        "name": valid_utf8(candidate.name),
        "runs": candidate.runs,
        "test": candidate.test.value,
        "family": candidate.family,
        "rows": [_comparison_row(row) for row in candidate.rows],
        "total": _comparison_row(candidate.total),
        "metrics": [_metric(metric) for metric in candidate.metrics],
    }


def _comparison_row(row: ComparisonRow) -> dict[str, Json]:
    return {
        "name": valid_utf8(row.name),
        "baseline": _number(row.baseline.mean),
        "candidate": _number(row.candidate.mean),
        "delta": _number(row.delta),
        "delta_interval": _interval(row.delta_interval),
        "relative": _number(row.relative),
        "relative_interval": _interval(row.relative_interval),
        "p": _number(row.p),
        "p_adjusted": _number(row.p_adjusted),
        "verdict": row.verdict.value,
        "values": {"baseline": _numbers(row.baseline.values), "candidate": _numbers(row.candidate.values)},
    }


def _metric(metric: MetricComparison) -> Json:
    return {**_comparison_row(metric.row), "unit": valid_utf8(metric.unit)}


def _warnings(warnings: Iterable[ReportWarning]) -> Json:
    return [
        {"code": valid_utf8(warning.code), "message": valid_utf8(warning.message), "advice": valid_utf8(warning.advice)}
        for warning in warnings
    ]


def _interval(interval: Interval | None) -> Json:
    return None if interval is None else [_number(interval.low), _number(interval.high)]


def _numbers(values: Iterable[float]) -> Json:
    return [_number(value) for value in values]


def _number(value: float | None) -> int | float | None:
    """Whole numbers as integers (exact to 2^53 for values that came as floats)."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if isinstance(value, int) or value.is_integer() else value


def _value(value: str | int | float) -> Json:
    return valid_utf8(value) if isinstance(value, str) else _number(value)


def _text(document: Mapping[str, Json]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
