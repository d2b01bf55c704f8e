"""The exposition, and what the aggregator tells of itself in it."""

from __future__ import annotations

from pathlib import Path

from profiler.protocol.hello import SpoolState
from profiler.service.access.token_registry import Scope
from profiler.service.api.prometheus_text import Metric, MetricKind, MetricSample, render
from support.aggregators import START_NS, add_token, aggregator_in, asked, attach_order, hello


def test_the_text_by_the_format() -> None:
    samples = (MetricSample(3), MetricSample(0.5, (("a", 'x"y\\z\n'), ("b", ""))))
    assert render((Metric("n_total", MetricKind.COUNTER, "What.", samples), Metric("m", MetricKind.GAUGE, "None.", ()))) == (
        '# HELP n_total What.\n# TYPE n_total counter\nn_total 3\nn_total{a="x\\"y\\\\z\\n",b=""} 0.5\n'
        "# HELP m None.\n# TYPE m gauge\n"
    )


def test_agents_jobs_and_spools_as_gauges(tmp_path: Path) -> None:
    aggregator = aggregator_in(tmp_path)
    aggregator.agents.greet("host1", hello(spool=SpoolState(2, 4096)), START_NS)
    aggregator.agents.greet("host2", hello(), START_NS - 10**12)
    for number in range(3):
        aggregator.jobs.add("host1", attach_order(f"j{number}"), START_NS)
    aggregator.jobs.cancel("j0", "", START_NS)
    app = asked(aggregator).with_token(add_token(aggregator, "r", Scope.READER))
    app.get("/api/v1/jobs/j0")
    app.get("/api/v1/jobs/j1")
    page = app.get("/metrics")
    assert page.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    figures = {
        'slotscope_agents{state="heard"}': 1,
        'slotscope_agents{state="silent"}': 1,
        'slotscope_open_jobs{state="waiting"}': 2,
        'slotscope_waiting_upload_bytes{agent="host1"}': 4096,
        'slotscope_requests_total{method="GET",route="/api/v1/jobs/{job}",status="200"}': 2,
        "slotscope_requests_in_progress": 1,
    }
    lines = dict(line.rsplit(" ", 1) for line in page.text.splitlines() if not line.startswith("#"))
    assert {name: float(lines[name]) for name in figures} == figures
