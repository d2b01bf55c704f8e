"""The jobs of all agents: ordered, taken, reported about, finished."""

from __future__ import annotations

from typing import Protocol

from profiler.model.quick_dataclass import dataclass
from profiler.protocol.job import JobOrder, JobReport


@dataclass(frozen=True, slots=True)
class StoredJob:
    """``report``: the latest; its state is WAITING while the agent has not taken it.  Times: ns since 1970, aggregator's
    clock."""

    agent: str
    order: JobOrder
    report: JobReport
    ordered_ns: int
    reported_ns: int = 0


class JobBoard(Protocol):
    """Every method is one transaction.  All raise ``StoreError``."""

    def add(self, agent: str, order: JobOrder, ordered_ns: int) -> None:
        """A new job, WAITING.  IDs are unique."""

    def report(self, agent: str, job: str, report: JobReport, reported_ns: int) -> bool:
        """False when this agent has no such job.  A final state stays: later reports of it change nothing."""

    def cancel(self, job: str, detail: str, now_ns: int) -> None:
        """CANCELLED, unless it is final already.  The agent is told with its next look at its jobs."""

    def lose(self, agent: str, detail: str, now_ns: int) -> tuple[str, ...]:
        """Marks every job of an agent that fell silent LOST, unless final or WAITING; their IDs."""

    def to_end(self, agent: str) -> tuple[str, ...]:
        """IDs of jobs that this agent took, that are over by the aggregator's judgement (CANCELLED, LOST), and of which the
        agent has not reported an end yet."""

    def job(self, job: str) -> StoredJob | None: ...

    def jobs(self, session: str = "", agent: str = "", only_open: bool = False, newest: int = 0) -> tuple[StoredJob, ...]:
        """In the order in which they were added; empty arguments admit everything.  ``newest``: only so many, 0 = all."""
