"""The catalog in one SQLite file.

Rollback journal instead of write-ahead log: it leaves no side files behind, works on read-only and on network directories,
and writers are rare and short.  Every operation opens its own connection, so a store needs no closing and survives forks.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import astuple, fields
from pathlib import Path

from profiler.errors import StoreError
from profiler.model.run import RunMode
from profiler.store.records import RunKey, RunSummary, SessionStart, SessionState, StoredRun, StoredSession

APPLICATION_ID = 0x534C4F54  # "SLOT"
SCHEMA_VERSION = 1
BUSY_TIMEOUT_S = 30.0

_SCHEMA = (
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
        PRIMARY KEY (session, number)
    ) STRICT""",
    "CREATE INDEX runs_by_variant ON runs (variant, session)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_SUMMARY_COLUMNS = tuple(field.name for field in fields(RunSummary))
_RUNS = f"""
    SELECT session, number, {", ".join(_SUMMARY_COLUMNS)}, blob, size_bytes,
           NOT has_rounds OR round < finished_rounds
    FROM runs JOIN (SELECT name, has_rounds, finished_rounds FROM sessions) ON name = session
    WHERE CAST(?1 AS TEXT) IN ('', session) AND CAST(?2 AS TEXT) IN ('', variant) ORDER BY session, number
"""


class SqliteCatalog:
    """The catalog at ``path``; see ``profiler.store.catalog.Catalog`` for the operations."""

    def __init__(self, path: Path, create: bool) -> None:
        """Creates the file when ``create`` is set; checks that it is a catalog of this version or makes it one when empty.

        ``StoreError``: no such file, another program's or a damaged database, a newer schema version.
        """
        self._path = path
        with self._connected(create) as connection:
            if self._is_empty(connection):
                self._write_schema(connection)

    def add_session(self, session: StoredSession) -> bool:
        start = session.start
        row = (session.name, start.started_at, start.hostname, json.dumps(start.command), start.seed, start.has_rounds)
        with self._transaction() as connection:
            added = connection.execute(
                "INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, session.state, session.finished_at, session.finished_rounds),
            )
            return added.rowcount == 1

    def finish_round(self, session: str, round_number: int) -> None:
        with self._transaction() as connection:
            connection.execute("UPDATE sessions SET finished_rounds = ? WHERE name = ?", (round_number + 1, session))

    def finish_session(self, name: str, state: SessionState, finished_at: str) -> None:
        with self._transaction() as connection:
            connection.execute("UPDATE sessions SET state = ?, finished_at = ? WHERE name = ?", (state, finished_at, name))

    def add_run(self, session: str, summary: RunSummary, blob: str, size_bytes: int) -> RunKey:
        values = [json.dumps(value) if isinstance(value, tuple) else value for value in astuple(summary)]
        marks = ", ".join(("?", "?", *("CAST(? AS TEXT)" if isinstance(value, str) else "?" for value in values), "?", "?"))
        bound = [_bytes(value) if isinstance(value, str) else value for value in values]
        with self._transaction() as connection:
            (number,) = connection.execute(
                "SELECT COALESCE(MAX(number) + 1, 0) FROM runs WHERE session = ?", (session,)
            ).fetchone()
            connection.execute(f"INSERT INTO runs VALUES ({marks})", (session, number, *bound, blob, size_bytes))
        return RunKey(session, number)

    def sessions(self) -> tuple[StoredSession, ...]:
        columns = "name, started_at, hostname, command, seed, has_rounds, state, finished_at, finished_rounds"
        with self._connected() as connection:
            rows = connection.execute(f"SELECT {columns} FROM sessions ORDER BY started_at, name").fetchall()
            return tuple(_session(row) for row in rows)

    def runs(self, session: str = "", variant: str = "") -> tuple[StoredRun, ...]:
        with self._connected() as connection:
            return tuple(_run(row) for row in connection.execute(_RUNS, (_bytes(session), _bytes(variant))).fetchall())

    def remove_runs(self, keys: tuple[RunKey, ...]) -> None:
        with self._transaction() as connection:
            for key in keys:
                connection.execute("DELETE FROM runs WHERE session = ? AND number = ?", (key.session, key.number))

    def remove_session(self, name: str) -> None:
        with self._transaction() as connection:
            connection.execute("DELETE FROM runs WHERE session = ?", (name,))
            connection.execute("DELETE FROM sessions WHERE name = ?", (name,))

    @contextlib.contextmanager
    def _connected(self, create: bool = False) -> Iterator[sqlite3.Connection]:
        mode = "rwc" if create else "rw"
        address = f"{self._path.absolute().as_uri()}?mode={mode}"
        with self._errors_named():
            connection = sqlite3.connect(address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
            connection.text_factory = _text
            try:
                connection.execute("PRAGMA foreign_keys = ON")
                self._check_identity(connection)
                yield connection
            finally:
                connection.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as connection, _immediate(connection):
            yield connection

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self._path}: {_explained(error)}") from None
        except (ValueError, TypeError) as error:
            raise StoreError(f"{self._path}: a row cannot be read ({error}): the catalog is damaged") from None

    def _check_identity(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID and not self._is_empty(connection):
            raise StoreError(f"{self._path}: a database of another program; choose another directory with --store")
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self._path}: catalog version {version}, but this slotscope knows up to {SCHEMA_VERSION}: "
                "use the slotscope that wrote it"
            )

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        return bool(tables == 0)

    def _write_schema(self, connection: sqlite3.Connection) -> None:
        with _immediate(connection):
            if self._is_empty(connection):  # another process may have been first
                for statement in _SCHEMA:
                    connection.execute(statement)


@contextlib.contextmanager
def _immediate(connection: sqlite3.Connection) -> Iterator[None]:
    """Takes the write lock first: a transaction that reads before it writes could otherwise fail to get it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def _bytes(text: str) -> bytes:
    """File names need not be UTF-8, which SQLite takes as bytes only."""
    return text.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _explained(error: sqlite3.Error) -> str:
    text = str(error)
    if "unable to open" in text:
        return "no catalog there, or it cannot be opened; `slotscope record` makes a store"
    if "locked" in text:
        return f"catalog is locked by another process for more than {BUSY_TIMEOUT_S:.0f} s"
    if "not a database" in text or "malformed" in text:
        return f"not a slotscope catalog, or damaged ({text})"
    return f"catalog cannot be used ({text})"


def _command(text: str) -> tuple[str, ...]:
    return tuple(str(argument) for argument in json.loads(text))


def _session(row: tuple[str, str, str, str, int, int, str, str, int]) -> StoredSession:
    name, started_at, hostname, command, seed, has_rounds, state, finished_at, finished_rounds = row
    start = SessionStart(started_at, hostname, _command(command), seed, bool(has_rounds))
    return StoredSession(name, start, SessionState(state), finished_at, finished_rounds)


def _run(row: tuple[str | int, ...]) -> StoredRun:
    session, number, *values, blob, size_bytes, round_complete = row
    named = dict(zip(_SUMMARY_COLUMNS, values, strict=True))
    named |= {"mode": RunMode(str(named["mode"]))}
    summary = RunSummary(**(named | {"command": _command(str(named["command"]))}))  # type: ignore[arg-type]
    return StoredRun(RunKey(str(session), int(number)), summary, str(blob), int(size_bytes), bool(round_complete))
