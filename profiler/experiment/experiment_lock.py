"""One run of an experiment at a time: two of them would build into one directory, double runs, and disturb each other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import StoreError
from profiler.store.file_lock import LockWords, file_lock

NAME = "lock"
_ELSEWHERE = "--store DIR names another place"


@contextlib.contextmanager
def experiment_lock(directory: Path, experiment: str) -> Iterator[int]:
    """Locks ``directory``, which is made; the lock's descriptor, to be held by whatever must have ended before the next run.

    ``UsageError`` when another run keeps the lock, ``StoreError`` where nothing can be locked.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{directory}: {error.strerror}; {_ELSEWHERE}") from None
    running = f"experiment {experiment!r} is being run in this store already, by process"
    with file_lock(
        directory / NAME, 0o666, LockWords(_ELSEWHERE, lambda owner: f"{running} {owner}: wait for its end")
    ) as lock:
        yield lock
