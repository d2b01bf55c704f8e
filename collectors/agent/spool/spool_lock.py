"""One agent per spool: the lock is held by the agent, and until everything that it started has ended."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import StoreError
from profiler.store.durable_directory import make_directory
from profiler.store.file_lock import LockWords, file_lock

_ELSEWHERE = "spool in the agent's file names the place"


@contextlib.contextmanager
def spool_lock(directory: Path) -> Iterator[int]:
    """Makes the directory; the lock's descriptor.  ``UsageError`` when another agent has the spool, ``StoreError`` where
    nothing can be locked."""
    try:
        make_directory(directory, 0o700)
    except OSError as error:
        raise StoreError(f"{directory}: {error.strerror}; {_ELSEWHERE}") from None

    def taken(owner: str) -> str:
        return f"{directory}: another agent, process {owner}, has this spool: one agent runs on it at a time"

    with file_lock(directory / "lock", 0o600, LockWords(_ELSEWHERE, taken)) as lock:
        yield lock
