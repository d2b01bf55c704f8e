"""The moment at which a program that is held at its gate goes off."""

from __future__ import annotations

import time
from collections.abc import Callable

from profiler.errors import CaptureError


class StartMoment:
    """For the first of several runs; the later ones begin when they can.  ``begin_at_ns``: CLOCK_MONOTONIC, 0 = at once.
    ``ready`` is called when everything is attached, ``begun`` with the moment of the first instruction."""

    def __init__(self, begin_at_ns: int, ready: Callable[[], None], begun: Callable[[int], None]) -> None:
        self._begin_at_ns = begin_at_ns
        self._ready = ready
        self._begun = begun
        self._is_over = False

    def wait(self) -> None:
        """``CaptureError`` when the moment has passed."""
        if self._is_over:
            return
        late_s = (time.monotonic_ns() - self._begin_at_ns) / 1e9
        if self._begin_at_ns and late_s > 0:
            raise CaptureError(f"the moment to begin had passed by {late_s:.3f} s when all was ready: order a later one")
        self._ready()
        if self._begin_at_ns:
            time.sleep(max(0.0, (self._begin_at_ns - time.monotonic_ns()) / 1e9))

    def passed(self, monotonic_ns: int) -> None:
        """The program began then."""
        if not self._is_over:
            self._is_over = True
            self._begun(monotonic_ns)
