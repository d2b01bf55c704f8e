"""One agent per spool: the lock is held by the agent, and until everything that it started has ended."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import StoreError, UsageError
from profiler.store.file_lock import is_locked_in_time


@contextlib.contextmanager
def spool_lock(directory: Path) -> Iterator[int]:
    """Makes the directory; the lock's descriptor.  ``UsageError`` when another agent has the spool, ``StoreError`` where
    nothing can be locked."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{directory}: {error.strerror}; spool in the agent's file names the place") from None
    try:
        if not is_locked_in_time(descriptor, directory):
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise UsageError(f"{directory}: another agent, process {owner}, has this spool: one agent runs on it at a time")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        yield descriptor
    finally:
        os.close(descriptor)
