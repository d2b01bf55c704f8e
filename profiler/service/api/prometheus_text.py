"""Metrics in Prometheus' text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from profiler.model.quick_dataclass import dataclass

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class MetricSample:
    """``labels``: pairs of name and value; the value may be any text."""

    value: float
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: MetricKind
    help: str
    samples: tuple[MetricSample, ...]


def render(metrics: Iterable[Metric]) -> str:
    return "".join(_metric_text(metric) for metric in metrics)


def _metric_text(metric: Metric) -> str:
    lines = [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
    lines += [f"{metric.name}{_labels(sample.labels)} {_number(sample.value)}" for sample in metric.samples]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
