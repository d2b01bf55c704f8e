"""A lock on a file that is waited for a little while, in which what a killed process had started comes to its end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from profiler.errors import StoreError, UsageError
from profiler.model.quick_dataclass import dataclass

# What a killed run had started is given 2 s to end.
PATIENCE_S = 6.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class LockWords:
    """How a lock is spoken of.  ``elsewhere``: how another place is named.  ``taken``: from the ID of the process that keeps it
    to what is said then."""

    elsewhere: str
    taken: Callable[[str], str]


@contextlib.contextmanager
def file_lock(path: Path, mode: int, words: LockWords) -> Iterator[int]:
    """Locks the file, which is made with ``mode``, in a directory that is there; the lock's descriptor, to be held by whatever
    must have ended before the next one.

    ``UsageError`` when another process keeps the lock, ``StoreError`` where nothing can be locked.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    except OSError as error:
        raise StoreError(f"{path.parent}: {error.strerror}; {words.elsewhere}") from None
    try:
        if not _is_locked_in_time(descriptor, path.parent, words):
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise UsageError(words.taken(owner))
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_locked_in_time(descriptor: int, directory: Path, words: LockWords) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        except OSError as error:
            raise StoreError(f"{directory}: cannot be locked ({error.strerror}); {words.elsewhere}") from None
        else:
            return True
