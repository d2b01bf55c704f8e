"""One aggregator per store at a time: each of two would order every round of an experiment, and judge the other's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from profiler.store.file_lock import LockWords, file_lock

NAME = "serve.lock"


@contextlib.contextmanager
def serving_lock(directory: Path) -> Iterator[int]:
    """Locks the store in ``directory``, which is there; the lock's descriptor.  ``UsageError`` when another aggregator serves
    it, ``StoreError`` where nothing can be locked."""

    def taken(owner: str) -> str:
        return f"{directory}: another aggregator, process {owner}, serves this store: end it, or give --store another one"

    with file_lock(directory / NAME, 0o600, LockWords("--store DIR names another place", taken)) as lock:
        yield lock
