"""What is known of every upload: offered, received so far, accepted or refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from enum import StrEnum

from profiler.model.quick_dataclass import dataclass
from profiler.protocol.upload import UploadKind, UploadOffer
from profiler.store.sqlite_file import SqliteFile

# ``state``: of ``UploadPhase``.  ``received_bytes``: what is durable; a file may be longer after a crash.
TABLES = (
    """CREATE TABLE uploads (
        agent TEXT NOT NULL, sha256 TEXT NOT NULL, size_bytes INTEGER NOT NULL, kind TEXT NOT NULL, job TEXT NOT NULL,
        build_id TEXT NOT NULL, received_bytes INTEGER NOT NULL, phase TEXT NOT NULL, refusal TEXT NOT NULL,
        wrong_contents INTEGER NOT NULL, changed_ns INTEGER NOT NULL, PRIMARY KEY (agent, sha256)
    ) STRICT""",
    "CREATE INDEX uploads_by_job ON uploads (job, phase)",
)
_COLUMNS = "agent, sha256, size_bytes, kind, job, build_id, received_bytes, phase, refusal, wrong_contents, changed_ns"
_THIS = "agent = ? AND sha256 = ?"


class UploadPhase(StrEnum):
    RECEIVING = "receiving"
    ACCEPTED = "accepted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class UploadRecord:
    """``refusal``: why it was refused.  ``wrong_contents``: how often its bytes were not those that were offered.
    ``changed_ns``: ns since 1970."""

    agent: str
    offer: UploadOffer
    received_bytes: int
    phase: UploadPhase
    refusal: str
    wrong_contents: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Uploads that are being received: how many, and of how many bytes as offered."""

    uploads: int
    size_bytes: int


class UploadRecords:
    """Every method is one transaction.  All raise ``StoreError``."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def find(self, agent: str, sha256: str) -> UploadRecord | None:
        with self._file.reading() as connection:
            return _find(connection, agent, sha256)

    def add(self, agent: str, offer: UploadOffer, now_ns: int) -> UploadRecord:
        """A new one that nothing was received of; the one that there is when it was offered before."""
        row = (agent, offer.sha256, offer.size_bytes, offer.kind, offer.job, offer.build_id, now_ns)
        with self._file.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO uploads VALUES (?, ?, ?, ?, ?, ?, 0, 'receiving', '', 0, ?)", row)
            record = _find(connection, agent, offer.sha256)
        assert record is not None
        return record

    def received(self, agent: str, sha256: str, received_bytes: int, now_ns: int) -> None:
        """So much is durable.  Nothing happens for one that is not being received."""
        with self._file.transaction() as connection:
            values = (received_bytes, now_ns, agent, sha256)
            connection.execute(
                f"UPDATE uploads SET received_bytes = ?, changed_ns = ? WHERE {_THIS} AND phase = 'receiving'", values
            )

    def begin_again(self, agent: str, sha256: str, now_ns: int) -> None:
        """What was received is not what was offered."""
        with self._file.transaction() as connection:
            connection.execute(
                f"""UPDATE uploads SET received_bytes = 0, wrong_contents = wrong_contents + 1, changed_ns = ?
                    WHERE {_THIS} AND phase = 'receiving'""",
                (now_ns, agent, sha256),
            )

    def finish(self, agent: str, sha256: str, refusal: str, now_ns: int) -> None:
        """Accepted, or refused when there is a ``refusal``.  What it was first, it stays."""
        phase = UploadPhase.REFUSED if refusal else UploadPhase.ACCEPTED
        with self._file.transaction() as connection:
            values = (phase, refusal, now_ns, agent, sha256)
            connection.execute(
                f"UPDATE uploads SET phase = ?, refusal = ?, changed_ns = ? WHERE {_THIS} AND phase = 'receiving'", values
            )

    def refusal_of(self, sha256: str) -> str:
        """Why this content was refused, from whichever agent; "" = it was not."""
        query = "SELECT refusal FROM uploads WHERE sha256 = ? AND phase = 'refused'"
        with self._file.reading() as connection:
            row = connection.execute(query, (sha256,)).fetchone()
            return "" if row is None else str(row[0])

    def unfinished(self, agent: str = "") -> Unfinished:
        """Of one agent, or of all."""
        query = """SELECT COUNT(*), COALESCE(SUM(size_bytes), 0) FROM uploads
            WHERE phase = 'receiving' AND ? IN ('', agent)"""
        with self._file.reading() as connection:
            return Unfinished(*connection.execute(query, (agent,)).fetchone())

    def accepted_of_job(self, job: str) -> int:
        """How many captures of a job were accepted."""
        query = "SELECT COUNT(*) FROM uploads WHERE job = ? AND phase = 'accepted'"
        with self._file.reading() as connection:
            return int(connection.execute(query, (job,)).fetchone()[0])

    def answered_build_ids(self, agent: str) -> frozenset[str]:
        """Of debug files that this agent has sent, accepted or not."""
        query = "SELECT build_id FROM uploads WHERE agent = ? AND kind = ? AND phase != 'receiving'"
        with self._file.reading() as connection:
            return frozenset(row[0] for row in connection.execute(query, (agent, UploadKind.DEBUG_FILE)))

    def expired(self, unfinished_before_ns: int, finished_before_ns: int) -> tuple[UploadRecord, ...]:
        """Those last changed before these times."""
        query = f"""SELECT {_COLUMNS} FROM uploads WHERE changed_ns < CASE phase WHEN 'receiving' THEN ? ELSE ? END
            ORDER BY changed_ns"""
        with self._file.reading() as connection:
            return tuple(_record(row) for row in connection.execute(query, (unfinished_before_ns, finished_before_ns)))

    def receiving(self) -> frozenset[tuple[str, str]]:
        """(agent, SHA-256) of every upload that is being received."""
        with self._file.reading() as connection:
            return frozenset(connection.execute("SELECT agent, sha256 FROM uploads WHERE phase = 'receiving'").fetchall())

    def forget_debug_files(self, build_ids: Iterable[str]) -> None:
        """They can be asked for and offered again."""
        query = "DELETE FROM uploads WHERE kind = ? AND build_id = ? AND phase != 'receiving'"
        with self._file.transaction() as connection:
            connection.executemany(query, [(UploadKind.DEBUG_FILE, build_id) for build_id in build_ids])

    def remove(self, record: UploadRecord) -> None:
        """Unless it changed since."""
        with self._file.transaction() as connection:
            values = (record.agent, record.offer.sha256, record.changed_ns)
            connection.execute(f"DELETE FROM uploads WHERE {_THIS} AND changed_ns = ?", values)


def _find(connection: sqlite3.Connection, agent: str, sha256: str) -> UploadRecord | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM uploads WHERE {_THIS}", (agent, sha256)).fetchone()
    return _record(row) if row is not None else None


def _record(row: tuple[str, str, int, str, str, str, int, str, str, int, int]) -> UploadRecord:
    agent, sha256, size_bytes, kind, job, build_id, received_bytes, phase, refusal, wrong_contents, changed_ns = row
    offer = UploadOffer(sha256, size_bytes, UploadKind(kind), job, build_id)
    return UploadRecord(agent, offer, received_bytes, UploadPhase(phase), refusal, wrong_contents, changed_ns)
