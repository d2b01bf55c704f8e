"""A lock on a file that is waited for a little while, in which what a killed process had started comes to its end."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

from profiler.errors import StoreError

# What a killed run had started is given 2 s to end.
PATIENCE_S = 6.0
_POLL_S = 0.05


def is_locked_in_time(descriptor: int, directory: Path) -> bool:
    """Within ``PATIENCE_S``.  ``StoreError`` where there are no locks; ``directory`` stands in the message."""
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
