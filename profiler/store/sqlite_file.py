"""One SQLite file of slotscope's own: its identity, its schema, and transactions on it.

Rollback journal instead of write-ahead log: it leaves no side files behind, works on read-only and on network directories,
and writers are rare and short.  Every operation opens its own connection, so nothing needs closing and forks do no harm.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import StoreError, StoreFullError
from profiler.model.quick_dataclass import dataclass

BUSY_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class SqliteSchema:
    """``what``: what the file is called in messages.  ``application_id``, ``version``: written into its head.  ``statements``
    make it from nothing.  ``maker``: the command that makes one, for messages.  ``upgrades``: ``upgrades[n - 1]`` brings
    version n to n + 1."""

    what: str
    application_id: int
    version: int
    statements: tuple[str, ...]
    maker: str
    upgrades: tuple[tuple[str, ...], ...] = ()


class SqliteFile:
    """The file at ``path``; texts come back with bytes that are not UTF-8 as lone surrogates (``bytes_of`` is the way in)."""

    def __init__(self, path: Path, schema: SqliteSchema, create: bool) -> None:
        """Creates the file when ``create`` is set; writes the schema into an empty one, and brings an older one up to date.

        ``StoreError``: no such file, another program's or a damaged database, a newer version.
        """
        self.path = path
        self._schema = schema
        with self.reading(create) as connection:
            if self._is_empty(connection):
                self._write_schema(connection)
            elif _version(connection) < schema.version:
                self._upgrade(connection)

    @contextlib.contextmanager
    def reading(self, create: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection; every statement on it is a transaction of its own."""
        mode = "rwc" if create else "rw"
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
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
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything done on the connection happens, or nothing; what has happened survives a power cut."""
        with self.reading() as connection:
            # FULL, the default, does not sync the directory once the journal is gone: found again, it would undo all.
            connection.execute("PRAGMA synchronous = EXTRA")
            with _immediate(connection):
                yield connection

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            kind = StoreFullError if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL else StoreError
            raise kind(f"{self.path}: {self._explained(error)}") from None
        except (ValueError, TypeError) as error:
            raise StoreError(f"{self.path}: a row cannot be read ({error}): the {self._schema.what} is damaged") from None

    def _check_identity(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != self._schema.application_id and not self._is_empty(connection):
            raise StoreError(f"{self.path}: a database of another program; choose another directory with --store")
        version = _version(connection)
        if version > self._schema.version:
            raise StoreError(
                f"{self.path}: {self._schema.what} version {version}, but this slotscope knows up to {self._schema.version}: "
                "use the slotscope that wrote it"
            )

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        return bool(tables == 0)

    def _write_schema(self, connection: sqlite3.Connection) -> None:
        with _immediate(connection):
            if self._is_empty(connection):  # another process may have been first
                for statement in self._schema.statements:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self._schema.application_id}")
                connection.execute(f"PRAGMA user_version = {self._schema.version}")

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        with _immediate(connection):
            for statements in self._schema.upgrades[_version(connection) - 1 :]:
                for statement in statements:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {self._schema.version}")

    def _explained(self, error: sqlite3.Error) -> str:
        text, what = str(error), self._schema.what
        if "unable to open" in text:
            return f"no {what} there, or it cannot be opened; {self._schema.maker}"
        if "readonly" in text:
            return f"{what} cannot be written; one of an older version is brought up to date when it is opened where it can be"
        if "locked" in text:
            return f"{what} is locked by another process for more than {BUSY_TIMEOUT_S:.0f} s"
        if "not a database" in text or "malformed" in text:
            return f"not a slotscope {what}, or damaged ({text})"
        return f"{what} cannot be used ({text})"


def bytes_of(text: str) -> bytes:
    """File names need not be UTF-8, which SQLite takes as bytes only; to be bound with ``CAST(? AS TEXT)``."""
    return text.encode("utf-8", "surrogateescape")


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


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


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
