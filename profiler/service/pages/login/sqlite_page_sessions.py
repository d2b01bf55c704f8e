"""The sessions of the pages in the aggregator's SQLite file."""

from __future__ import annotations

from profiler.service.pages.login.page_sessions import PageSession
from profiler.store.sqlite_file import SqliteFile

TABLES = (
    """CREATE TABLE page_sessions (
        digest BLOB NOT NULL PRIMARY KEY, token_digest BLOB NOT NULL, expires_ns INTEGER NOT NULL
    ) STRICT""",
)


class SqlitePageSessionRegistry:
    """See ``PageSessionRegistry`` for the operations."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def add(self, digest: bytes, session: PageSession, now_ns: int) -> None:
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM page_sessions WHERE expires_ns <= ?", (now_ns,))
            row = (digest, session.token_digest, session.expires_ns)
            connection.execute("INSERT INTO page_sessions VALUES (?, ?, ?)", row)

    def find(self, digest: bytes) -> PageSession | None:
        query = "SELECT token_digest, expires_ns FROM page_sessions WHERE digest = ?"
        with self._file.reading() as connection:
            row = connection.execute(query, (digest,)).fetchone()
        return None if row is None else PageSession(*row)

    def remove(self, digest: bytes) -> None:
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM page_sessions WHERE digest = ?", (digest,))
