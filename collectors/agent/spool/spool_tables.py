"""What an agent remembers over its own end: jobs that it took, captures of theirs, and where their programs' files were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from profiler.codec.json_values import from_json, to_json
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.job import JobReport
from profiler.store.sqlite_file import SqliteFile, SqliteSchema

FILE_NAME = "agent.sqlite"
APPLICATION_ID = 0x534C4147  # "SLAG"
TABLES = (
    """CREATE TABLE jobs (
        id TEXT NOT NULL PRIMARY KEY, number INTEGER NOT NULL UNIQUE, report TEXT NOT NULL, is_final INTEGER NOT NULL,
        is_delivered INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE captures (
        blob TEXT NOT NULL PRIMARY KEY, job TEXT NOT NULL, sha256 TEXT NOT NULL, size_bytes INTEGER NOT NULL,
        state TEXT NOT NULL
    ) STRICT""",
    "CREATE TABLE objects (build_id TEXT NOT NULL PRIMARY KEY, path TEXT NOT NULL) STRICT",
)
_SCHEMA = SqliteSchema("spool", APPLICATION_ID, 1, TABLES, "`slotscope agent` makes one")
# Of jobs that are over and done with, to know them again when a server orders them once more.
MOST_OLD_JOBS = 1000


class CaptureState(StrEnum):
    """WAITING: to be uploaded.  COMMITTED: the aggregator has it.  REFUSED: it never will."""

    WAITING = "waiting"
    COMMITTED = "committed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class SpooledCapture:
    """``blob``: its key in the spool's store."""

    blob: str
    job: str
    sha256: str
    size_bytes: int
    state: CaptureState = CaptureState.WAITING


@dataclass(frozen=True, slots=True)
class TakenJob:
    """``report``: the latest.  ``is_delivered``: the aggregator has its final report."""

    id: str
    report: JobReport
    is_delivered: bool


class SpoolTables:
    """Every method is one transaction.  All raise ``StoreError``."""

    def __init__(self, directory: Path) -> None:
        self._file = SqliteFile(directory / FILE_NAME, _SCHEMA, create=True)

    def put_report(self, job: str, report: JobReport) -> None:
        """The first one of a job takes it; a final one stays."""
        row = (job, _text(report), report.state.is_final)
        with self._file.transaction() as connection:
            connection.execute(
                "INSERT INTO jobs SELECT ?, COALESCE(MAX(number), 0) + 1, ?, ?, 0 FROM jobs WHERE true "
                "ON CONFLICT (id) DO UPDATE SET report = excluded.report, is_final = excluded.is_final WHERE NOT is_final",
                row,
            )

    def delivered(self, job: str) -> None:
        """The aggregator has the final report."""
        with self._file.transaction() as connection:
            connection.execute("UPDATE jobs SET is_delivered = 1 WHERE id = ? AND is_final", (job,))
            connection.execute(
                "DELETE FROM jobs WHERE is_delivered AND number <= (SELECT MAX(number) FROM jobs) - ? "
                "AND id NOT IN (SELECT job FROM captures)",
                (MOST_OLD_JOBS,),
            )

    def jobs(self, job: str = "") -> tuple[TakenJob, ...]:
        """In the order in which they were taken; with an ID that one, if it was."""
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT id, report, is_delivered FROM jobs WHERE ?1 IN ('', id) ORDER BY number", (job,)
            ).fetchall()
            return tuple(TakenJob(name, from_json(JobReport, json.loads(text)), bool(told)) for name, text, told in rows)

    def add_capture(self, capture: SpooledCapture, objects: Sequence[tuple[str, str]]) -> None:
        """``objects``: (build ID in hex, path) of what was mapped in it."""
        row = (capture.blob, capture.job, capture.sha256, capture.size_bytes, capture.state.value)
        with self._file.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO captures VALUES (?, ?, ?, ?, ?)", row)
            connection.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?)", objects)

    def set_state(self, blob: str, state: CaptureState) -> None:
        with self._file.transaction() as connection:
            connection.execute("UPDATE captures SET state = ? WHERE blob = ?", (state.value, blob))

    def captures(self) -> tuple[SpooledCapture, ...]:
        """In the order in which they were found."""
        with self._file.reading() as connection:
            rows = connection.execute("SELECT blob, job, sha256, size_bytes, state FROM captures ORDER BY rowid").fetchall()
            return tuple(SpooledCapture(blob, job, sha, size, CaptureState(state)) for blob, job, sha, size, state in rows)

    def forget_captures(self, job: str) -> None:
        """Of a job whose captures are all dealt with and whose final report was delivered."""
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM captures WHERE job = ? AND state != 'waiting'", (job,))

    def object_path(self, build_id: str) -> str:
        """ "" when no capture of this agent had such a file mapped."""
        with self._file.reading() as connection:
            row = connection.execute("SELECT path FROM objects WHERE build_id = ?", (build_id,)).fetchone()
            return str(row[0]) if row else ""


def _text(report: JobReport) -> str:
    return json.dumps(to_json(report))
