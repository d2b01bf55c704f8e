"""Reports about jobs on their way to the aggregator: of each job the latest, a final one until it has arrived."""

from __future__ import annotations

import threading
from collections.abc import Callable

from collectors.agent.agent_log import AgentLog
from collectors.agent.connection.server_connection import ServerConnection
from collectors.agent.connection.server_errors import RequestRefused
from collectors.agent.spool.spool_tables import SpoolTables
from profiler.protocol.job import JobReport

IDLE_S = 3600.0


class ReportDelivery:
    """``deliver`` is for one thread, ``put`` for any."""

    def __init__(self, connection: ServerConnection, tables: SpoolTables, log: AgentLog) -> None:
        self._connection = connection
        self._tables = tables
        self._log = log
        self._lock = threading.Lock()
        self._waiting: dict[str, JobReport] = {}
        self.arrived: Callable[[], None] = lambda: None

    @property
    def waiting(self) -> tuple[str, ...]:
        """Jobs of which something is to be told."""
        with self._lock:
            return tuple(self._waiting)

    def put(self, job: str, report: JobReport) -> None:
        """Takes the place of an earlier report that has not left; not of a final one."""
        with self._lock:
            earlier = self._waiting.get(job)
            if earlier is None or not earlier.state.is_final:
                self._waiting[job] = report

    def deliver(self) -> float:
        """All that waits, in order.  ``ServerTrouble`` at the first that does not get through."""
        while True:
            with self._lock:
                job, report = next(iter(self._waiting.items()), ("", None))
            if report is None:
                return IDLE_S
            try:
                self._connection.report(job, report)
            except RequestRefused as error:
                if not error.is_final:
                    raise
                self._log(f"job {job}: the server does not want to know of it: {error}")
            if report.state.is_final:
                self._tables.delivered(job)
            with self._lock:
                if self._waiting.get(job) == report:
                    del self._waiting[job]
            self.arrived()
