"""The metrics that an order asks for."""

from __future__ import annotations

from collectors.prometheus import PageMetric, parse_series
from profiler.protocol.job import JobOrder


def ordered_metrics(order: JobOrder) -> tuple[PageMetric, ...]:
    """``UsageError`` for one that is written wrong."""
    return tuple(parse_series(metric.name, metric.spec) for metric in order.metrics)
