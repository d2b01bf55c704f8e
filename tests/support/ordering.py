"""Jobs ordered one by one from agents that the aggregator knows, and waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from profiler.protocol.job import JobKind, JobOrder
from profiler.service.aggregator import open_aggregator
from profiler.service.jobs.single_jobs import order_single_job
from support import aggregator_files

FINAL = frozenset({"done", "refused", "failed", "lost", "cancelled"})


def watch_order(windows: int = 1, start_at_ns: int = 0) -> JobOrder:
    """CPU time of target `node` in windows of a second; perf has no part in it."""
    return JobOrder("", JobKind.ATTACH, "node", "base", "", "", 0, start_at_ns, 1.0, windows, is_profiled=False)


def order(store: Path, agent: str, asked: JobOrder) -> str:
    """The job's ID."""
    aggregator = open_aggregator(store, create=False)
    (known,) = [each for each in aggregator.agents.agents() if each.name == agent]
    return order_single_job(aggregator, known, asked).order.id


def wait_for(holds: Callable[[], object], seconds: float, what: Callable[[], object]) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


def wait_until_final(store: Path, jobs: list[str], seconds: float) -> list[aggregator_files.JobRow]:
    wait_for(
        lambda: all(aggregator_files.jobs(store)[job].state in FINAL for job in jobs),
        seconds,
        lambda: [aggregator_files.jobs(store)[job] for job in jobs],
    )
    found = aggregator_files.jobs(store)
    return [found[job] for job in jobs]


def origins(store: Path) -> list[str]:
    return sorted(run.origin for run in aggregator_files.runs(store))
