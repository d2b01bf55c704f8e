"""The tokens in the aggregator's SQLite file."""

from __future__ import annotations

import hmac
import sqlite3

from profiler.service.access.token_registry import Scope, Token
from profiler.store.sqlite_file import SqliteFile

TABLES = (
    """CREATE TABLE tokens (
        name TEXT NOT NULL PRIMARY KEY, scope TEXT NOT NULL, digest BLOB NOT NULL UNIQUE, created_ns INTEGER NOT NULL,
        used_ns INTEGER NOT NULL, revoked_ns INTEGER NOT NULL
    ) STRICT""",
)
_COLUMNS = "name, scope, created_ns, used_ns, revoked_ns"


class SqliteTokenRegistry:
    """See ``TokenRegistry`` for the operations."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def add(self, token: Token, digest: bytes) -> bool:
        row = (token.name, token.scope, digest, token.created_ns, token.used_ns, token.revoked_ns)
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM tokens WHERE name = ? AND revoked_ns > 0", (token.name,))
            return connection.execute("INSERT OR IGNORE INTO tokens VALUES (?, ?, ?, ?, ?, ?)", row).rowcount == 1

    def find(self, digest: bytes) -> Token | None:
        with self._file.reading() as connection:
            row = connection.execute(f"SELECT digest, {_COLUMNS} FROM tokens WHERE digest = ?", (digest,)).fetchone()
        if row is None or not hmac.compare_digest(row[0], digest):
            return None
        return _token(row[1:])

    def used(self, digest: bytes, now_ns: int) -> None:
        with self._file.transaction() as connection:
            connection.execute("UPDATE tokens SET used_ns = ? WHERE digest = ?", (now_ns, digest))

    def revoke(self, name: str, now_ns: int) -> bool:
        with self._file.transaction() as connection:
            update = "UPDATE tokens SET revoked_ns = ? WHERE name = ? AND revoked_ns = 0"
            return connection.execute(update, (now_ns, name)).rowcount == 1

    def tokens(self) -> tuple[Token, ...]:
        with self._file.reading() as connection:
            return tuple(_token(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY name"))

    def check_writable(self) -> None:
        with self._file.transaction() as connection:
            connection.execute("UPDATE tokens SET used_ns = used_ns WHERE FALSE")


def _token(row: sqlite3.Row | tuple[str, str, int, int, int]) -> Token:
    name, scope, created_ns, used_ns, revoked_ns = row
    return Token(name, Scope(scope), created_ns, used_ns, revoked_ns)
