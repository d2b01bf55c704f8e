"""One run of an experiment at a time: two of them would build into one directory, double runs, and disturb each other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import StoreError, UsageError
from profiler.store.file_lock import is_locked_in_time

NAME = "lock"


@contextlib.contextmanager
def experiment_lock(directory: Path, experiment: str) -> Iterator[int]:
    """Locks ``directory``, which is made; the lock's descriptor, to be held by whatever must have ended before the next run.

    ``UsageError`` when another run keeps the lock, ``StoreError`` where nothing can be locked.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise StoreError(f"{directory}: {error.strerror}; --store DIR names another place") from None
    try:
        if not is_locked_in_time(descriptor, directory):
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise UsageError(
                f"experiment {experiment!r} is being run in this store already, by process {owner}: wait for its end"
            )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        yield descriptor
    finally:
        os.close(descriptor)
