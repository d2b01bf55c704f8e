"""Aggregators in a directory of the test's, asked in this process, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from profiler.model.run import HostFacts
from profiler.protocol.hello import PROTOCOL_VERSION, AgentHello, AgentLimits, OfferedTarget, OfferedWorkload, SpoolState
from profiler.protocol.job import JobKind, JobOrder
from profiler.service.access.token_registry import Scope, Token, digest_of, new_secret
from profiler.service.aggregator import Aggregator, open_aggregator
from profiler.service.api.app import make_app
from profiler.service.api.settings import ServiceSettings

START_NS = 1_750_000_000_000_000_000


@dataclass
class SettableClock:
    """``now_ns`` is what it shows until it is set again."""

    now_ns: int = START_NS

    def __call__(self) -> int:
        return self.now_ns

    def pass_s(self, seconds: float) -> None:
        self.now_ns += int(seconds * 1e9)


def aggregator_in(directory: Path, clock_ns: Callable[[], int] | None = None) -> Aggregator:
    opened = open_aggregator(directory, create=True)
    return replace(opened, clock_ns=clock_ns or SettableClock())


def add_token(aggregator: Aggregator, name: str, scope: Scope) -> str:
    """The secret."""
    secret = new_secret()
    assert aggregator.tokens.add(Token(name, scope, aggregator.clock_ns()), digest_of(secret))
    return secret


def hello(**changed: Any) -> AgentHello:
    """Of an agent with one target, `node`, and one workload, `skip-slots`, in the variants base and fat."""
    offered = AgentHello(
        protocol=PROTOCOL_VERSION,
        version="0.1.0",
        host=HostFacts("host1", "6.1.0", "x86_64", "Some CPU", 8),
        fitness=(),
        targets=(OfferedTarget("node", ("base", "fat"), has_metrics=True),),
        workloads=(OfferedWorkload("skip-slots", ("base", "fat")),),
        limits=AgentLimits(longest_job_s=3600, highest_frequency_hz=4999, spool_bytes=1 << 30, cpu_percent=20),
        spool=SpoolState(0, 0),
    )
    return replace(offered, **changed)


def attach_order(job: str = "", **changed: Any) -> JobOrder:
    """Two windows of 5 s of `node`."""
    order = JobOrder(job, JobKind.ATTACH, "node", "base", "", "host1-node", 0, window_s=5.0, windows=2)
    return replace(order, **changed)


@dataclass
class AskedApp:
    """Sends requests to an application as a client at ``address``."""

    app: FastAPI
    address: str = "203.0.113.7"
    headers: dict[str, str] = field(default_factory=dict)

    def with_token(self, secret: str) -> AskedApp:
        return replace(self, headers={"Authorization": f"Bearer {secret}"})

    def at(self, address: str) -> AskedApp:
        return replace(self, address=address)

    def get(self, path: str) -> httpx.Response:
        return self.send("GET", path)

    def post(self, path: str, json: object = None) -> httpx.Response:
        return self.send("POST", path, json=json)

    def send(self, method: str, path: str, **content: Any) -> httpx.Response:
        return asyncio.run(self._send(method, path, content))

    async def _send(self, method: str, path: str, content: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(self.address, 1234))
        async with httpx.AsyncClient(transport=transport, base_url="https://aggregator", headers=self.headers) as client:
            return await client.request(method, path, **content)


def asked(aggregator: Aggregator, settings: ServiceSettings | None = None) -> AskedApp:
    return AskedApp(make_app(aggregator, settings or ServiceSettings()))
