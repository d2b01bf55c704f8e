"""What the steps of an upload work on."""

from __future__ import annotations

from collections.abc import Callable

from profiler.model.quick_dataclass import dataclass
from profiler.service.ingest import captured_files, upload_records
from profiler.service.ingest.captured_files import CapturedFiles
from profiler.service.ingest.debug_files import DebugTree
from profiler.service.ingest.limits import IngestLimits
from profiler.service.ingest.partial_files import PartialFiles
from profiler.service.ingest.upload_records import UploadRecords
from profiler.service.jobs.job_board import JobBoard
from profiler.store.sqlite_file import SqliteFile
from profiler.store.store import Store

TABLES = (*upload_records.TABLES, *captured_files.TABLES)


@dataclass(frozen=True, slots=True)
class Ingest:
    """Use ``open_ingest``.  ``clock_ns``: ns since 1970."""

    store: Store
    jobs: JobBoard
    records: UploadRecords
    captured: CapturedFiles
    files: PartialFiles
    debug_tree: DebugTree
    limits: IngestLimits
    clock_ns: Callable[[], int]


def open_ingest(
    store: Store, jobs: JobBoard, file: SqliteFile, clock_ns: Callable[[], int], limits: IngestLimits | None = None
) -> Ingest:
    """``file``: the service's, which has ``TABLES``."""
    return Ingest(
        store=store,
        jobs=jobs,
        records=UploadRecords(file),
        captured=CapturedFiles(file),
        files=PartialFiles(store.directory / "uploads"),
        debug_tree=DebugTree(store.directory),
        limits=IngestLimits() if limits is None else limits,
        clock_ns=clock_ns,
    )
