"""One run of an experiment at a time: two of them would build into one directory, double runs, and disturb each other."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import StoreError, UsageError

# What a killed run had started is given 2 s to end.
PATIENCE_S = 6.0
_POLL_S = 0.05
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
        if not _is_locked_in_time(descriptor, directory):
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise UsageError(
                f"experiment {experiment!r} is being run in this store already, by process {owner}: wait for its end"
            )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_locked_in_time(descriptor: int, directory: Path) -> bool:
    """Within ``PATIENCE_S``.  ``StoreError`` where there are no locks."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        except OSError as error:
            raise StoreError(f"{directory}: cannot be locked ({error.strerror}); --store DIR names another place") from None
        else:
            return True
