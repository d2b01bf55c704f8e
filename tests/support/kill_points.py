"""Which calls of slotscope are boundaries between two steps on its disk, and where its lives are quick."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.held_calls import Call

_JOURNAL, _DATABASE = "-journal", ".sqlite"
_IN_MEMORY = Path("/dev/shm")


def is_boundary(call: Call) -> bool:
    """Every call that changes or syncs a file or directory.  Of a transaction only the one that commits it, which ends its
    journal: what is around that is SQLite's, which alone syncs by ``fdatasync``."""
    if not call.path.startswith("/") or call.name == "fdatasync":
        return False
    if call.path.endswith((_JOURNAL, _DATABASE)):
        return call.name == "unlink"
    return call.name != "mkdir" or not Path(call.path).exists()


@contextlib.contextmanager
def quick_directory() -> Iterator[Path]:
    """In memory where there is such a place: what survives is known from the calls, so that no disk need be waited for."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None) as directory:
        yield Path(directory)
