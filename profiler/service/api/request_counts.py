"""How many requests there were, by route and outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from profiler.service.api.prometheus_text import Metric, MetricKind, MetricSample

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_NO_ROUTE = "(none)"


@dataclass(slots=True)
class RequestCounts:
    """Keys: method, path of the route (with its placeholders, so that there are not more than routes), status."""

    answered: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    in_progress: int = 0

    def metrics(self) -> tuple[Metric, ...]:
        samples = tuple(
            MetricSample(count, (("method", method), ("route", route), ("status", str(status))))
            for (method, route, status), count in sorted(self.answered.items())
        )
        return (
            Metric("slotscope_requests_total", MetricKind.COUNTER, "Requests that were answered.", samples),
            Metric(
                "slotscope_requests_in_progress",
                MetricKind.GAUGE,
                "Requests being answered, waiting agents included.",
                (MetricSample(self.in_progress),),
            ),
        )


class RequestCounting:
    """The outermost layer: counts what any other answered."""

    def __init__(self, app: ASGIApp, counts: RequestCounts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counting_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counts.answered[(_method(scope), _route(scope), message["status"])] += 1
            await send(message)

        self._counts.in_progress += 1
        try:
            await self._app(scope, receive, counting_send)
        finally:
            self._counts.in_progress -= 1


def _method(scope: MutableMapping[str, Any]) -> str:
    return scope["method"] if scope["method"] in _METHODS else "other"


def _route(scope: MutableMapping[str, Any]) -> str:
    return str(getattr(scope.get("route"), "path", _NO_ROUTE))
