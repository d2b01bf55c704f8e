"""Which build IDs occur in whose captures: what an agent may be asked for, and which debug files are still of use."""

from __future__ import annotations

from collections.abc import Iterable

from profiler.store.sqlite_file import SqliteFile

TABLES = (
    """CREATE TABLE captured_files (
        agent TEXT NOT NULL, session TEXT NOT NULL, build_id TEXT NOT NULL, PRIMARY KEY (agent, session, build_id)
    ) STRICT, WITHOUT ROWID""",
)


class CapturedFiles:
    """Build IDs are lower-case hex.  Every method is one transaction.  All raise ``StoreError``."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def add(self, agent: str, session: str, build_ids: Iterable[str]) -> None:
        rows = [(agent, session, build_id) for build_id in sorted(set(build_ids))]
        with self._file.transaction() as connection:
            connection.executemany("INSERT OR IGNORE INTO captured_files VALUES (?, ?, ?)", rows)

    def of_agent(self, agent: str) -> tuple[str, ...]:
        """In order."""
        query = "SELECT DISTINCT build_id FROM captured_files WHERE agent = ? ORDER BY build_id"
        with self._file.reading() as connection:
            return tuple(build_id for (build_id,) in connection.execute(query, (agent,)))

    def of_sessions(self, sessions: Iterable[str]) -> frozenset[str]:
        """What the captures of these sessions need."""
        wanted = frozenset(sessions)
        with self._file.reading() as connection:
            rows = connection.execute("SELECT DISTINCT session, build_id FROM captured_files").fetchall()
        return frozenset(build_id for session, build_id in rows if session in wanted)

    def forget_sessions(self, sessions: Iterable[str]) -> None:
        with self._file.transaction() as connection:
            connection.executemany("DELETE FROM captured_files WHERE session = ?", [(session,) for session in sessions])

    def sessions(self) -> frozenset[str]:
        with self._file.reading() as connection:
            return frozenset(row[0] for row in connection.execute("SELECT DISTINCT session FROM captured_files"))
