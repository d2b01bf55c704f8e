"""The experiments in the aggregator's SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from profiler.codec.json_values import from_json, to_json
from profiler.service.experiments.course import Course
from profiler.service.experiments.experiment_board import Check, SubmittedExperiment
from profiler.store.sqlite_file import SqliteFile

TABLES = (
    """CREATE TABLE experiments (
        number INTEGER PRIMARY KEY, session TEXT NOT NULL UNIQUE, name TEXT NOT NULL, plan_name TEXT NOT NULL,
        plan_text TEXT NOT NULL, submitted_ns INTEGER NOT NULL, course TEXT NOT NULL, is_open INTEGER NOT NULL,
        is_cancelled INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE counted_captures (
        session TEXT NOT NULL REFERENCES experiments (session), sha256 TEXT NOT NULL, PRIMARY KEY (session, sha256)
    ) STRICT""",
)
_COLUMNS = "session, name, plan_name, plan_text, submitted_ns, course, is_cancelled"


class SqliteExperimentBoard:
    """See ``ExperimentBoard`` for the operations."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def add(self, experiment: SubmittedExperiment, check: Check) -> None:
        given = experiment
        row = (given.session, given.name, given.plan_name, given.plan_text, given.submitted_ns, _text(given.course))
        with self._file.transaction() as connection:
            check(_experiments(connection, only_open=True))
            connection.execute(
                "INSERT INTO experiments VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, not given.course.state.is_final, given.is_cancelled),
            )

    def experiment(self, session: str) -> SubmittedExperiment | None:
        with self._file.reading() as connection:
            row = connection.execute(f"SELECT {_COLUMNS} FROM experiments WHERE session = ?", (session,)).fetchone()
            return None if row is None else _stored(row)

    def experiments(self, only_open: bool = False) -> tuple[SubmittedExperiment, ...]:
        with self._file.reading() as connection:
            return _experiments(connection, only_open)

    def keep(self, session: str, course: Course) -> None:
        with self._file.transaction() as connection:
            connection.execute(
                "UPDATE experiments SET course = ?, is_open = ? WHERE session = ?",
                (_text(course), not course.state.is_final, session),
            )

    def ask_cancel(self, session: str) -> None:
        with self._file.transaction() as connection:
            connection.execute("UPDATE experiments SET is_cancelled = 1 WHERE session = ? AND is_open", (session,))

    def count(self, session: str, captures: Sequence[str]) -> None:
        with self._file.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO counted_captures VALUES (?, ?)", [(session, capture) for capture in captures]
            )

    def counted(self, session: str) -> frozenset[str]:
        with self._file.reading() as connection:
            rows = connection.execute("SELECT sha256 FROM counted_captures WHERE session = ?", (session,))
            return frozenset(capture for (capture,) in rows)


def _experiments(connection: sqlite3.Connection, only_open: bool) -> tuple[SubmittedExperiment, ...]:
    query = f"SELECT {_COLUMNS} FROM experiments WHERE is_open >= ? ORDER BY number"
    return tuple(_stored(row) for row in connection.execute(query, (int(only_open),)))


def _text(course: Course) -> str:
    return json.dumps(to_json(course))


def _stored(row: tuple[str, str, str, str, int, str, int]) -> SubmittedExperiment:
    session, name, plan_name, plan_text, submitted_ns, course, is_cancelled = row
    read = from_json(Course, json.loads(course))
    return SubmittedExperiment(session, name, plan_name, plan_text, submitted_ns, read, bool(is_cancelled))
