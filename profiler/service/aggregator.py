"""Everything the aggregator knows, as one value that routes, pages and background tasks work on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from profiler.errors import StoreError
from profiler.model.quick_dataclass import dataclass
from profiler.service.access import sqlite_tokens
from profiler.service.access.sqlite_tokens import SqliteTokenRegistry
from profiler.service.access.token_registry import TokenRegistry
from profiler.service.agents import sqlite_agents
from profiler.service.agents.agent_registry import AgentRegistry
from profiler.service.agents.sqlite_agents import SqliteAgentRegistry
from profiler.service.experiments import sqlite_experiments
from profiler.service.experiments.experiment_board import ExperimentBoard
from profiler.service.experiments.sqlite_experiments import SqliteExperimentBoard
from profiler.service.ingest import ingest
from profiler.service.ingest.ingest import Ingest, open_ingest
from profiler.service.jobs import sqlite_jobs
from profiler.service.jobs.job_board import JobBoard
from profiler.service.jobs.sqlite_jobs import SqliteJobBoard
from profiler.service.pages.login import sqlite_page_sessions
from profiler.service.pages.login.page_sessions import PageSessionRegistry
from profiler.service.pages.login.sqlite_page_sessions import SqlitePageSessionRegistry
from profiler.service.service_file import open_service_file
from profiler.store.durable_directory import make_directory
from profiler.store.store import Store, open_store

# Of every module that owns tables in the service database.
TABLES = (
    *sqlite_tokens.TABLES,
    *sqlite_agents.TABLES,
    *sqlite_jobs.TABLES,
    *ingest.TABLES,
    *sqlite_experiments.TABLES,
    *sqlite_page_sessions.TABLES,
)


@dataclass(frozen=True, slots=True)
class Aggregator:
    """Use ``open_aggregator``.  ``clock_ns``: ns since 1970, what all agents' clocks are held against."""

    store: Store
    agents: AgentRegistry
    jobs: JobBoard
    tokens: TokenRegistry
    ingest: Ingest
    experiments: ExperimentBoard
    page_sessions: PageSessionRegistry
    clock_ns: Callable[[], int] = time.time_ns


def open_aggregator(directory: Path, create: bool) -> Aggregator:
    """The aggregator whose store is in ``directory``; ``create`` makes what is missing.  ``StoreError``: see ``open_store`` and
    ``SqliteFile``."""
    if create:
        make_private(directory)
    store = open_store(directory, create)
    file = open_service_file(directory, TABLES, create)
    jobs = SqliteJobBoard(file)
    return Aggregator(
        store=store,
        agents=SqliteAgentRegistry(file),
        jobs=jobs,
        tokens=SqliteTokenRegistry(file),
        ingest=open_ingest(store, jobs, file, time.time_ns),
        experiments=SqliteExperimentBoard(file),
        page_sessions=SqlitePageSessionRegistry(file),
    )


def make_private(directory: Path) -> None:
    """A directory that is not there yet becomes its user's alone: what agents send may hold what is secret."""
    try:
        make_directory(directory, 0o700)
    except OSError as error:
        raise StoreError(f"{directory}: {error.strerror}; --store DIR names another place") from None
