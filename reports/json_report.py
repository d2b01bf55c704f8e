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
    InstanceNames,
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
    quality |= {name: value_json(value) for name, value in asdict(costs.quality).items()}
    quality["missing"] = [{name: value_json(value) for name, value in asdict(missing).items()} for missing in costs.missing]
    document: dict[str, Json] = {
        "schema": REPORT_SCHEMA,
        "event": valid_utf8(costs.event),
        "unit": valid_utf8(costs.unit),
        "total": report.total,
        "view": costs.view,
        "rows": [_report_row(row) for row in report_rows(report, with_empty_other=False)],
        "quality": quality,
        "warnings": warnings_json(costs.warnings),
    }
    return document_text(document)


def render_comparison_json(comparison: Comparison, per: float = 1.0) -> str:
    """Candidates and rows in their order; ``delta`` = candidate - baseline, means per run in ``unit``; of weights and times per
    unit of work, ``per`` of which are in a run."""
    document: dict[str, Json] = {
        "schema": COMPARE_SCHEMA,
        "unit": valid_utf8(comparison.unit),
        "per": number_json(per),
        "baseline": {"name": valid_utf8(comparison.baseline_name), "runs": comparison.baseline_runs},
        "candidates": [candidate_json(candidate) for candidate in comparison.candidates],
        "warnings": warnings_json(comparison.warnings),
    }
    return document_text(document)


def _report_row(row: ReportRow) -> Json:
    return {
        "name": valid_utf8(row.name),
        "self": row.self_weight,
        "total": row.self_weight if row.total_weight is None else row.total_weight,
        "share": number_json(row.share),
        "share_interval": interval_json(row.interval),
        "samples": row.samples,
    }


def candidate_json(candidate: CandidateComparison) -> Json:
    """A candidate of ``slotscope.compare/1``."""
    return {
        "name": valid_utf8(candidate.name),
        "runs": candidate.runs,
        "test": candidate.test.value,
        "family": candidate.family,
        "rows": [row_json(row) for row in candidate.rows],
        "total": row_json(candidate.total),
        "metrics": [_metric(metric) for metric in candidate.metrics],
        **_instances(candidate.instances),
    }


def row_json(row: ComparisonRow) -> dict[str, Json]:
    """A row of ``slotscope.compare/1``."""
    return {
        "name": valid_utf8(row.name),
        "baseline": number_json(row.baseline.mean),
        "candidate": number_json(row.candidate.mean),
        "delta": number_json(row.delta),
        "delta_interval": interval_json(row.delta_interval),
        "relative": number_json(row.relative),
        "relative_interval": interval_json(row.relative_interval),
        "p": number_json(row.p),
        "p_adjusted": number_json(row.p_adjusted),
        "verdict": row.verdict.value,
        "sigma": number_json(row.sigma),
        "no_overlap": row.no_overlap,
        "permutation_p": number_json(row.permutation_p),
        "values": {"baseline": _numbers(row.baseline.values), "candidate": _numbers(row.candidate.values)},
    }


def _metric(metric: MetricComparison) -> Json:
    return {**row_json(metric.row), "unit": valid_utf8(metric.unit), **_instances(metric.instances)}


def _instances(names: InstanceNames) -> dict[str, Json]:
    """The processes that values are of, in their order; nothing where values are runs."""
    if not any(names):
        return {}
    return {
        "instances": {"baseline": [valid_utf8(name) for name in names[0]], "candidate": [valid_utf8(name) for name in names[1]]}
    }


def warnings_json(warnings: Iterable[ReportWarning]) -> Json:
    return [
        {"code": valid_utf8(warning.code), "message": valid_utf8(warning.message), "advice": valid_utf8(warning.advice)}
        for warning in warnings
    ]


def interval_json(interval: Interval | None) -> Json:
    return None if interval is None else [number_json(interval.low), number_json(interval.high)]


def _numbers(values: Iterable[float]) -> Json:
    return [number_json(value) for value in values]


def number_json(value: float | None) -> int | float | None:
    """Whole numbers as integers (exact to 2^53 for values that came as floats)."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if isinstance(value, int) or value.is_integer() else value


def value_json(value: object) -> Json:
    """Text, numbers, truth values, None, and dictionaries and sequences of them; ``TypeError`` for anything else."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return valid_utf8(value)
    if isinstance(value, int | float):
        return number_json(value)
    if isinstance(value, dict):
        return {valid_utf8(str(key)): value_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [value_json(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def document_text(document: Mapping[str, Json]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
