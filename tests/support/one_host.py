"""An aggregator and one agent on loopback, each a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profiler.protocol.job import JobOrder, JobReport
from profiler.service.access.token_registry import Scope
from profiler.service.aggregator import Aggregator, open_aggregator
from support.agent_process import AgentProcess, agent, write_config
from support.served_aggregator import served, token_of

NAME = "host1"


@contextmanager
def one_host(directory: Path, body: str, **environment: str) -> Iterator[AgentProcess]:
    """The agent, which is ready; ``body``: of its agent.toml.  The aggregator's store is ``directory`` / "store"."""
    store = directory / "store"
    open_aggregator(store, create=True)
    with served(store) as server:
        token = token_of(store, NAME, Scope.AGENT)
        config = write_config(directory / "agent", server.url, body, token=token, limits="cpu_percent = 0")
        it = agent(config, **environment).start()
        try:
            it.wait_for_log("slotscope agent")
            yield it
        finally:
            it.stop()


def carried_out(aggregator: Aggregator, order: JobOrder) -> JobReport:
    """The last report of the order."""
    aggregator.jobs.add(NAME, order, time.time_ns())
    deadline = time.monotonic() + 90
    while True:
        found = aggregator.jobs.job(order.id)
        assert found is not None
        if found.report.state.is_final:
            return found.report
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
