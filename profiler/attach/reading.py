"""Recordings into captures of the store, one after the other, beside the recording of the next one."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from profiler.model.capture import Capture
from profiler.model.run import RunKey
from profiler.store.store import Store
from symbolize.locate import Locator

# The target goes first.
_NICENESS = 5
MOST_WAITING = 4
READING_IS_BEHIND = "reading windows takes longer than recording them: a lower --frequency or a longer --window would do"


class ReadableWindow(Protocol):
    """A window that was recorded.  ``locator``: finds the files of its process.  ``gap_ns``: see ``KeptWindow``.
    ``has_own_files``: these may be others than are here under the same paths.  ``cpu_metric``: name of the metric that says
    what recording took.  ``loss_advice``: what to do about lost samples."""

    @property
    def locator(self) -> Locator: ...

    @property
    def gap_ns(self) -> int: ...

    @property
    def has_own_files(self) -> bool: ...

    @property
    def cpu_metric(self) -> str: ...

    @property
    def loss_advice(self) -> str: ...

    def capture(self) -> Capture:
        """Read, whatever recorded it; its file is removed."""
        ...


Kept = Callable[[RunKey, Capture, ReadableWindow], None]


class WindowReader:
    """A context manager.  Reads one recording at a time; ``submit`` waits when ``MOST_WAITING`` are to be read, so that neither
    disk nor memory grows."""

    def __init__(self, store: Store, kept: Kept) -> None:
        self._store = store
        self._kept = kept
        self._under_way: deque[Future[None]] = deque()

    def __enter__(self) -> WindowReader:
        self._pool = ThreadPoolExecutor(max_workers=1, initializer=_step_back)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    @property
    def is_behind(self) -> bool:
        """Whether ``submit`` would have to wait."""
        return len(self._under_way) >= MOST_WAITING and not self._under_way[0].done()

    def submit(self, window: ReadableWindow) -> None:
        """Raises what went wrong with an earlier one."""
        while self._under_way and (self._under_way[0].done() or len(self._under_way) >= MOST_WAITING):
            self._under_way.popleft().result()
        self._under_way.append(self._pool.submit(self._read, window))

    def wait(self) -> None:
        """Until everything that was submitted is in the store.  ``StoreError``, or whatever went wrong."""
        while self._under_way:
            self._under_way.popleft().result()

    def _read(self, window: ReadableWindow) -> None:
        capture = window.capture()
        key = self._store.add(capture)
        self._store.finish_round(capture.info.identity.session, capture.info.identity.round)
        self._kept(key, capture, window)


def noted(capture: Capture, note: str) -> Capture:
    """``capture`` with one more note, "" = none."""
    if not note:
        return capture
    return replace(capture, quality=replace(capture.quality, notes=(*capture.quality.notes, note)))


def _step_back() -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
