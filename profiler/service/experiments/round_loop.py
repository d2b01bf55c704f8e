"""Carries experiments on while the aggregator runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from profiler.errors import StoreError
from profiler.service.aggregator import Aggregator
from profiler.service.clock_steps import ClockSteps
from profiler.service.experiments.capture_shelf import StoreShelf
from profiler.service.experiments.coordinator import Coordinator
from profiler.service.experiments.settings import RoundSettings
from profiler.service.service_log import LOG

TICK_S = 0.5
_LATE_EVERY = 120


class RoundLoop:
    """Looks twice a second at the experiments that are open, and once a minute at those that have ended."""

    def __init__(
        self, aggregator: Aggregator, settings: RoundSettings, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """``monotonic_ns``: held against the aggregator's clock, to notice that this was set."""
        self._steps = ClockSteps(aggregator.clock_ns, monotonic_ns)
        self._coordinator = Coordinator(
            experiments=aggregator.experiments,
            jobs=aggregator.jobs,
            agents=aggregator.agents,
            shelf=StoreShelf(aggregator.store, aggregator.ingest.records.refusal_of),
            clock_ns=aggregator.clock_ns,
            settings=settings,
            started_ns=aggregator.clock_ns(),
        )

    async def run(self) -> None:
        """Until cancelled.  A store that cannot be used for a while is tried again."""
        number = 0
        while True:
            try:
                await asyncio.to_thread(self._look, number % _LATE_EVERY == 0)
            except StoreError as error:
                LOG.error("experiments wait: %s", error)
            number += 1
            await asyncio.sleep(TICK_S)

    def _look(self, is_thorough: bool) -> None:
        step_ns = self._steps.step_ns()
        if step_ns:
            LOG.warning("the clock of this host was set by %+.0f s", step_ns / 1e9)
            self._coordinator.clock_was_set(step_ns)
        self._coordinator.tick()
        if is_thorough:
            self._coordinator.leave_out_late()
