"""What an aggregator's databases hold, read with SQL alone."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class JobRow:
    """``captures``: SHA-256 of every one that was announced."""

    agent: str
    state: str
    detail: str
    captures: tuple[str, ...]
    begun_at_ns: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """``origin``: SHA-256 of what was uploaded."""

    origin: str
    session: str
    position: int


def jobs(store: Path) -> dict[str, JobRow]:
    with sqlite3.connect(f"file:{store / 'service.sqlite'}?mode=ro", uri=True, timeout=30) as connection:
        rows = connection.execute("SELECT id, agent, report FROM jobs").fetchall()
    reports = {job: (agent, json.loads(report)) for job, agent, report in rows}
    return {
        job: JobRow(agent, report["state"], report["detail"], tuple(report["captures"]), report["begun_at_ns"])
        for job, (agent, report) in reports.items()
    }


def runs(store: Path) -> list[RunRow]:
    with sqlite3.connect(f"file:{store / 'catalog.sqlite'}?mode=ro", uri=True, timeout=30) as connection:
        return [RunRow(*row) for row in connection.execute("SELECT origin, session, position FROM runs")]
