"""Removes what may be lost, again and again while the aggregator runs."""

from __future__ import annotations

import asyncio

from profiler.errors import StoreError
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.retention import remove_all
from profiler.service.service_log import LOG
from profiler.store.prune import RetentionRule

EVERY_S = 3600.0


class RetentionLoop:
    """Once an hour, and first at once."""

    def __init__(self, ingest: Ingest, rule: RetentionRule) -> None:
        self._ingest = ingest
        self._rule = rule

    async def run(self) -> None:
        """Until cancelled.  A store that cannot be used for a while is tried again."""
        while True:
            try:
                await asyncio.to_thread(self._remove)
            except StoreError as error:
                LOG.error("nothing old is removed: %s", error)
            await asyncio.sleep(EVERY_S)

    def _remove(self) -> None:
        for session in remove_all(self._ingest, self._rule).store.sessions:
            LOG.info("session %s removed, as old as may be", session)
