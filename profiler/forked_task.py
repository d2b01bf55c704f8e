"""Work done in a forked copy of this process, whose bytes come back through a pipe.

The copy shares all that was read so far, so that nothing has to be sent to it.  It may fail or be killed at any time: then
there is no answer, and the work is to be done here.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import warnings
from collections.abc import Callable
from types import TracebackType

CHUNK_BYTES = 1 << 20


def can_fork() -> bool:
    """Other threads of Python's may hold locks that nobody would release in a copy.  (Those of numpy's linear algebra prepare
    themselves for a fork.)"""
    return hasattr(os, "fork") and threading.active_count() == 1


class ForkedTask:
    """Runs ``work`` at once; to be used in a ``with`` statement, at whose end the copy is gone.  ``process``: its ID."""

    def __init__(self, work: Callable[[], bytes]) -> None:
        """OSError when there can be no further process."""
        self._reading, writing = os.pipe()
        try:
            self.process = _fork()
        except OSError:
            os.close(self._reading)
            os.close(writing)
            raise
        if self.process == 0:
            os.close(self._reading)
            _answer(work, writing)
        os.close(writing)
        self._has_ended = False

    def __enter__(self) -> ForkedTask:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._reading)
        if not self._has_ended:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)

    def answer(self) -> bytes | None:
        """What ``work`` returned, None when it did not end well.  To be called once."""
        pieces = []
        while piece := os.read(self._reading, CHUNK_BYTES):
            pieces.append(piece)
        _, status = os.waitpid(self.process, 0)
        self._has_ended = True
        return b"".join(pieces) if status == 0 else None


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _answer(work: Callable[[], bytes], writing: int) -> None:
    """The copy's whole life: it never returns, runs none of the handlers of this process and writes nothing else."""
    status = 1
    gc.disable()  # looking at all objects would copy the pages that they are in
    with contextlib.suppress(BaseException):
        data = memoryview(work())
        while data:
            data = data[os.write(writing, data) :]
        status = 0
    os._exit(status)
