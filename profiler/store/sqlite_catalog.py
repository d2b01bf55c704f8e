"""The catalog in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import astuple, fields
from pathlib import Path

from profiler.model.run import RunKey, RunMode
from profiler.store.records import RunSummary, SessionStart, SessionState, StoredRun, StoredSession
from profiler.store.sqlite_file import SqliteFile, SqliteSchema, bytes_of

APPLICATION_ID = 0x534C4F54  # "SLOT"
SCHEMA_VERSION = 2

_STATEMENTS = (
    """CREATE TABLE sessions (
        name TEXT NOT NULL PRIMARY KEY, started_at TEXT NOT NULL, hostname TEXT NOT NULL, command TEXT NOT NULL,
        seed INTEGER NOT NULL, has_rounds INTEGER NOT NULL, state TEXT NOT NULL, finished_at TEXT NOT NULL,
        finished_rounds INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE runs (
        session TEXT NOT NULL REFERENCES sessions (name), number INTEGER NOT NULL,
        variant TEXT NOT NULL, mode TEXT NOT NULL, round INTEGER NOT NULL, position INTEGER NOT NULL, started_at TEXT NOT NULL,
        hostname TEXT NOT NULL, command TEXT NOT NULL, program TEXT NOT NULL, build_id TEXT NOT NULL, event TEXT NOT NULL,
        frequency_hz INTEGER NOT NULL, period INTEGER NOT NULL, call_graph TEXT NOT NULL, wall_ns INTEGER NOT NULL,
        user_ns INTEGER NOT NULL, system_ns INTEGER NOT NULL, failure TEXT NOT NULL, samples INTEGER NOT NULL,
        lost_samples INTEGER NOT NULL, blob TEXT NOT NULL UNIQUE, size_bytes INTEGER NOT NULL,
        origin TEXT NOT NULL DEFAULT '', PRIMARY KEY (session, number)
    ) STRICT""",
    "CREATE INDEX runs_by_variant ON runs (variant, session)",
    "CREATE UNIQUE INDEX runs_by_origin ON runs (origin) WHERE origin != ''",
)
_UPGRADES = (
    (
        "ALTER TABLE runs ADD COLUMN origin TEXT NOT NULL DEFAULT ''",
        "CREATE UNIQUE INDEX runs_by_origin ON runs (origin) WHERE origin != ''",
    ),
)
_SCHEMA = SqliteSchema("catalog", APPLICATION_ID, SCHEMA_VERSION, _STATEMENTS, "`slotscope record` makes a store", _UPGRADES)
_SUMMARY_COLUMNS = tuple(field.name for field in fields(RunSummary))
_RUN_COLUMNS = ", ".join(("session", "number", *_SUMMARY_COLUMNS, "blob", "size_bytes", "origin"))
_RUNS = f"""
    SELECT session, number, {", ".join(_SUMMARY_COLUMNS)}, blob, size_bytes,
           NOT has_rounds OR round < finished_rounds, origin
    FROM runs JOIN (SELECT name, has_rounds, finished_rounds FROM sessions) ON name = session
"""
_RUN_OF_ORIGIN = f"{_RUNS} WHERE origin = ? AND origin != ''"
_SELECTED_RUNS = f"""{_RUNS}
    WHERE CAST(?1 AS TEXT) IN ('', session) AND CAST(?2 AS TEXT) IN ('', variant) ORDER BY session, number
"""


class SqliteCatalog:
    """The catalog at ``path``; see ``profiler.store.catalog.Catalog`` for the operations."""

    def __init__(self, path: Path, create: bool) -> None:
        """Creates the file when ``create`` is set.  ``StoreError``: see ``SqliteFile``."""
        self._file = SqliteFile(path, _SCHEMA, create)

    def add_session(self, session: StoredSession) -> bool:
        start = session.start
        row = (session.name, start.started_at, start.hostname, json.dumps(start.command), start.seed, start.has_rounds)
        with self._file.transaction() as connection:
            added = connection.execute(
                "INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, session.state, session.finished_at, session.finished_rounds),
            )
            return added.rowcount == 1

    def finish_round(self, session: str, round_number: int) -> None:
        with self._file.transaction() as connection:
            connection.execute("UPDATE sessions SET finished_rounds = ? WHERE name = ?", (round_number + 1, session))

    def finish_session(self, name: str, state: SessionState, finished_at: str) -> None:
        with self._file.transaction() as connection:
            connection.execute("UPDATE sessions SET state = ?, finished_at = ? WHERE name = ?", (state, finished_at, name))

    def add_run(self, session: str, summary: RunSummary, blob: str, size_bytes: int, origin: str = "") -> StoredRun:
        values = [json.dumps(value) if isinstance(value, tuple) else value for value in astuple(summary)]
        value_marks = ("CAST(? AS TEXT)" if isinstance(value, str) else "?" for value in values)
        marks = ", ".join(("?", "?", *value_marks, "?", "?", "?"))
        bound = [bytes_of(value) if isinstance(value, str) else value for value in values]
        with self._file.transaction() as connection:
            known = connection.execute(_RUN_OF_ORIGIN, (origin,)).fetchone()
            if known is not None:
                return _run(known)
            number = _next_number(connection, session)
            row = (session, number, *bound, blob, size_bytes, origin)
            connection.execute(f"INSERT INTO runs ({_RUN_COLUMNS}) VALUES ({marks})", row)
            return _run(connection.execute(f"{_RUNS} WHERE session = ? AND number = ?", (session, number)).fetchone())

    def replace_run(self, key: RunKey, summary: RunSummary, blob: str, size_bytes: int) -> None:
        values = [json.dumps(value) if isinstance(value, tuple) else value for value in astuple(summary)]
        marks = [
            f"{name} = {'CAST(? AS TEXT)' if isinstance(value, str) else '?'}"
            for name, value in zip(_SUMMARY_COLUMNS, values, strict=True)
        ]
        bound = [bytes_of(value) if isinstance(value, str) else value for value in values]
        with self._file.transaction() as connection:
            connection.execute(
                f"UPDATE runs SET {', '.join(marks)}, blob = ?, size_bytes = ? WHERE session = ? AND number = ?",
                (*bound, blob, size_bytes, key.session, key.number),
            )

    def run_of(self, origin: str) -> StoredRun | None:
        with self._file.reading() as connection:
            row = connection.execute(_RUN_OF_ORIGIN, (origin,)).fetchone()
            return _run(row) if row is not None else None

    def sessions(self) -> tuple[StoredSession, ...]:
        columns = "name, started_at, hostname, command, seed, has_rounds, state, finished_at, finished_rounds"
        with self._file.reading() as connection:
            rows = connection.execute(f"SELECT {columns} FROM sessions ORDER BY started_at, name").fetchall()
            return tuple(_session(row) for row in rows)

    def runs(self, session: str = "", variant: str = "") -> tuple[StoredRun, ...]:
        with self._file.reading() as connection:
            rows = connection.execute(_SELECTED_RUNS, (bytes_of(session), bytes_of(variant))).fetchall()
            return tuple(_run(row) for row in rows)

    def next_number(self, session: str) -> int:
        with self._file.reading() as connection:
            return _next_number(connection, session)

    def remove_runs(self, keys: tuple[RunKey, ...]) -> None:
        with self._file.transaction() as connection:
            for key in keys:
                connection.execute("DELETE FROM runs WHERE session = ? AND number = ?", (key.session, key.number))

    def remove_session(self, name: str) -> None:
        with self._file.transaction() as connection:
            _remove_session(connection, name)

    def remove_ended_session(self, name: str) -> bool:
        ended = "SELECT 1 FROM sessions WHERE name = ? AND state != ?"
        with self._file.transaction() as connection:
            if connection.execute(ended, (name, SessionState.RECORDING)).fetchone() is None:
                return False
            _remove_session(connection, name)
            return True


def _next_number(connection: sqlite3.Connection, session: str) -> int:
    query = "SELECT COALESCE(MAX(number) + 1, 0) FROM runs WHERE session = ?"
    return int(connection.execute(query, (session,)).fetchone()[0])


def _remove_session(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("DELETE FROM runs WHERE session = ?", (name,))
    connection.execute("DELETE FROM sessions WHERE name = ?", (name,))


def _command(text: str) -> tuple[str, ...]:
    return tuple(str(argument) for argument in json.loads(text))


def _session(row: tuple[str, str, str, str, int, int, str, str, int]) -> StoredSession:
    name, started_at, hostname, command, seed, has_rounds, state, finished_at, finished_rounds = row
    start = SessionStart(started_at, hostname, _command(command), seed, bool(has_rounds))
    return StoredSession(name, start, SessionState(state), finished_at, finished_rounds)


def _run(row: tuple[str | int, ...]) -> StoredRun:
    session, number, *values, blob, size_bytes, round_complete, origin = row
    named = dict(zip(_SUMMARY_COLUMNS, values, strict=True))
    named |= {"mode": RunMode(str(named["mode"]))}
    summary = RunSummary(**(named | {"command": _command(str(named["command"]))}))  # type: ignore[arg-type]
    return StoredRun(RunKey(str(session), int(number)), summary, str(blob), int(size_bytes), bool(round_complete), str(origin))
