"""Agents that fell silent: their jobs are LOST.

Silence is counted from when the aggregator began to listen at the earliest, so that a restart loses nobody; and anew after its
own clock was set.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from profiler.errors import StoreError
from profiler.service.agents.agent_registry import KnownAgent
from profiler.service.agents.known_hosts import SILENT_HELLOS, patience_ns_of
from profiler.service.aggregator import Aggregator
from profiler.service.clock_steps import ClockSteps
from profiler.service.jobs.single_jobs import end_single_job
from profiler.service.service_log import LOG


class AgentWatch:
    """``monotonic_ns`` and the aggregator's clock are compared, to notice that the latter was set."""

    def __init__(self, aggregator: Aggregator, hello_s: float, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._aggregator = aggregator
        self._interval_s = hello_s
        self._listening_since_ns = aggregator.clock_ns()
        self._steps = ClockSteps(aggregator.clock_ns, monotonic_ns)

    async def run(self) -> None:
        """Looks once per hello interval, until cancelled.  A store that cannot be used for a while is looked at again."""
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await asyncio.to_thread(self.look)
            except StoreError as error:
                LOG.error("%s", error)

    def look(self) -> tuple[str, ...]:
        """Marks the jobs of silent agents; their IDs.  ``StoreError``."""
        now_ns = self._now_ns()
        agents = self._aggregator.agents.agents()
        patience_ns = patience_ns_of(self._interval_s)
        lost: list[str] = []
        for name in silent_agents(agents, now_ns, self._listening_since_ns, patience_ns):
            lost += self._lose_jobs(name, now_ns)
        return tuple(lost)

    def _now_ns(self) -> int:
        was_set = self._steps.step_ns() != 0
        now_ns = self._aggregator.clock_ns()
        if was_set:
            self._listening_since_ns = now_ns
        return now_ns

    def _lose_jobs(self, agent: str, now_ns: int) -> tuple[str, ...]:
        if not self._aggregator.jobs.jobs(agent=agent, only_open=True):
            return ()
        detail = f"{agent} has not been heard for {SILENT_HELLOS} x {self._interval_s:g} s"
        lost = self._aggregator.jobs.lose(agent, detail, now_ns)
        for identifier in lost:
            LOG.warning("job %s is lost: %s", identifier, detail)
            job = self._aggregator.jobs.job(identifier)
            if job is not None:
                end_single_job(self._aggregator, job)
        return lost


def silent_agents(agents: Iterable[KnownAgent], now_ns: int, since_ns: int, patience_ns: int) -> tuple[str, ...]:
    """Names of those not heard for ``patience_ns``, counted from ``since_ns`` at the earliest.  Of one that was heard in the
    future, by a clock that has been set back since, nothing is known before that."""
    heard = {agent.name: agent.heard_ns if agent.heard_ns <= now_ns else 0 for agent in agents}
    return tuple(name for name, heard_ns in heard.items() if now_ns - max(heard_ns, since_ns) > patience_ns)
