"""The jobs in the aggregator's SQLite file."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

from profiler.codec.json_values import from_json, to_json
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.job import JobOrder, JobReport, JobState
from profiler.service.jobs.job_board import StoredJob
from profiler.store.sqlite_file import SqliteFile

# ``is_agent_done``: the agent holds nothing of the job any more: it never took it, or it reported a final state itself.
TABLES = (
    """CREATE TABLE jobs (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, session TEXT NOT NULL, "order" TEXT NOT NULL,
        report TEXT NOT NULL, is_open INTEGER NOT NULL, is_agent_done INTEGER NOT NULL, ordered_ns INTEGER NOT NULL,
        reported_ns INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX jobs_by_session ON jobs (session)",
    "CREATE INDEX jobs_by_agent ON jobs (agent, is_open, is_agent_done)",
)
_COLUMNS = 'agent, "order", report, ordered_ns, reported_ns'


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Arguments as of ``JobBoard.jobs``."""

    session: str = ""
    agent: str = ""
    only_open: bool = False
    newest: int = 0

    def statement(self) -> tuple[str, tuple[str | int, ...]]:
        """SQL, the newest job first, and its values.  Only what is asked for stands in it, so that SQLite uses the indexes."""
        wanted: list[tuple[str, str | int]] = [
            ("session", self.session),
            ("agent", self.agent),
            ("is_open", int(self.only_open)),
        ]
        given = [(column, value) for column, value in wanted if value]
        where = f"WHERE {' AND '.join(f'{column} = ?' for column, _ in given)}" if given else ""
        query = f"SELECT {_COLUMNS} FROM jobs {where} ORDER BY number DESC LIMIT ?"
        return query, (*(value for _, value in given), self.newest or -1)


class SqliteJobBoard:
    """See ``JobBoard`` for the operations."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def add(self, agent: str, order: JobOrder, ordered_ns: int) -> None:
        report = json.dumps(to_json(JobReport(JobState.WAITING)))
        row = (order.id, agent, order.session, json.dumps(to_json(order)), report, ordered_ns)
        with self._file.transaction() as connection:
            connection.execute("INSERT INTO jobs VALUES (NULL, ?, ?, ?, ?, ?, 1, 1, ?, 0)", row)

    def report(self, agent: str, job: str, report: JobReport, reported_ns: int) -> bool:
        with self._file.transaction() as connection:
            stored = _job(connection, job)
            if stored is None or stored.agent != agent:
                return False
            if not stored.report.state.is_final:
                _write(connection, job, report, reported_ns)
            connection.execute("UPDATE jobs SET is_agent_done = ? WHERE id = ?", (report.state.is_final, job))
        return True

    def cancel(self, job: str, detail: str, now_ns: int) -> None:
        with self._file.transaction() as connection:
            stored = _job(connection, job)
            if stored is not None and not stored.report.state.is_final:
                _write(connection, job, replace(stored.report, state=JobState.CANCELLED, detail=detail), now_ns)

    def lose(self, agent: str, detail: str, now_ns: int) -> tuple[str, ...]:
        with self._file.transaction() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM jobs WHERE agent = ? AND is_open ORDER BY number", (agent,))
            lost = [job for job in map(_stored, rows.fetchall()) if job.report.state is not JobState.WAITING]
            for job in lost:
                _write(connection, job.order.id, replace(job.report, state=JobState.LOST, detail=detail), now_ns)
        return tuple(job.order.id for job in lost)

    def to_end(self, agent: str) -> tuple[str, ...]:
        with self._file.reading() as connection:
            query = "SELECT id FROM jobs WHERE agent = ? AND is_open = 0 AND is_agent_done = 0 ORDER BY number"
            return tuple(job for (job,) in connection.execute(query, (agent,)))

    def job(self, job: str) -> StoredJob | None:
        with self._file.reading() as connection:
            return _job(connection, job)

    def jobs(self, session: str = "", agent: str = "", only_open: bool = False, newest: int = 0) -> tuple[StoredJob, ...]:
        statement, values = JobQuery(session, agent, only_open, newest).statement()
        with self._file.reading() as connection:
            return tuple(_stored(row) for row in reversed(connection.execute(statement, values).fetchall()))


def _job(connection: sqlite3.Connection, job: str) -> StoredJob | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (job,)).fetchone()
    return None if row is None else _stored(row)


def _write(connection: sqlite3.Connection, job: str, report: JobReport, now_ns: int) -> None:
    values = (json.dumps(to_json(report)), not report.state.is_final, now_ns, job)
    connection.execute("UPDATE jobs SET report = ?, is_open = ?, reported_ns = ? WHERE id = ?", values)


def _stored(row: tuple[str, str, str, int, int]) -> StoredJob:
    agent, order, report, ordered_ns, reported_ns = row
    return StoredJob(
        agent, from_json(JobOrder, json.loads(order)), from_json(JobReport, json.loads(report)), ordered_ns, reported_ns
    )
