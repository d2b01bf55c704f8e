"""Whether the aggregator lives, whether it can work, and its figures for Prometheus."""

from __future__ import annotations

from collections import Counter

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from profiler.protocol.loopback import is_loopback_address
from profiler.service.access.authorization import OpenReader, check_reader
from profiler.service.agents.known_hosts import known_hosts
from profiler.service.aggregator import Aggregator
from profiler.service.api.answers import Health
from profiler.service.api.json_bodies import answer
from profiler.service.api.prometheus_text import MEDIA_TYPE, Metric, MetricKind, MetricSample, render
from profiler.service.api.request_counts import RequestCounts
from profiler.service.api.settings import ServiceSettings
from profiler.service.store_check import check_writable


class _PrometheusText(PlainTextResponse):
    media_type = MEDIA_TYPE


def health_routes(aggregator: Aggregator, settings: ServiceSettings, counts: RequestCounts) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/healthz", response_model=Health)
    async def healthz() -> Response:
        """The process answers."""
        return answer(Health())

    @router.get("/readyz", response_model=Health)
    def readyz() -> Response:
        """The store and the database can be read and written; else 503."""
        check_writable(aggregator)
        return answer(Health())

    @router.get("/metrics", response_class=_PrometheusText, openapi_extra={"security": [{}]})
    def metrics(request: Request, caller: OpenReader) -> Response:
        """Figures for Prometheus.  From loopback without a token, unless the aggregator is behind a proxy."""
        if settings.is_behind_proxy or not (request.client is not None and is_loopback_address(request.client.host)):
            check_reader(caller)
        return _PrometheusText(render((*counts.metrics(), *_state_metrics(aggregator, settings.hello_s))))

    return router


def _state_metrics(aggregator: Aggregator, hello_s: float) -> tuple[Metric, ...]:
    hosts = known_hosts(aggregator, hello_s).hosts
    silent = sum(host.is_silent for host in hosts)
    states = Counter(str(job.report.state) for job in aggregator.jobs.jobs(only_open=True))
    return (
        Metric(
            "slotscope_agents",
            MetricKind.GAUGE,
            "Agents that ever said hello.",
            (
                MetricSample(len(hosts) - silent, (("state", "heard"),)),
                MetricSample(silent, (("state", "silent"),)),
            ),
        ),
        Metric(
            "slotscope_open_jobs",
            MetricKind.GAUGE,
            "Jobs that are not final, by state.",
            tuple(MetricSample(count, (("state", state),)) for state, count in sorted(states.items())),
        ),
        Metric(
            "slotscope_waiting_upload_bytes",
            MetricKind.GAUGE,
            "What agents hold that was not taken yet, by agent.",
            tuple(MetricSample(host.hello.spool.waiting_bytes, (("agent", host.name),)) for host in hosts),
        ),
    )
