"""What readers and operators are answered, beside the values of the protocol and of the store."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass
from profiler.protocol.job import JobOrder
from profiler.service.jobs.job_board import StoredJob
from profiler.store.records import StoredRun, StoredSession


@dataclass(frozen=True, slots=True)
class Jobs:
    """Oldest first."""

    jobs: tuple[StoredJob, ...]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Oldest first."""

    sessions: tuple[StoredSession, ...]


@dataclass(frozen=True, slots=True)
class SessionCaptures:
    """``captures``: in the order in which they were added."""

    session: StoredSession
    captures: tuple[StoredRun, ...]


@dataclass(frozen=True, slots=True)
class JobSubmission:
    """``order``: its ``id`` and ``session`` are empty, the aggregator fills them in."""

    agent: str
    order: JobOrder


@dataclass(frozen=True, slots=True)
class Health:
    """``status``: "ok"."""

    status: str = "ok"
