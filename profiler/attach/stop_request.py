"""Ctrl-C, SIGTERM and SIGHUP as a wish that is seen where it can be granted: between two steps, never in the middle of one."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """A context manager, for the main thread when it listens to signals.  The second Ctrl-C or signal raises
    ``KeyboardInterrupt`` where it arrives; what is ignored (nohup) stays ignored.  ``number``: the signal that asked, 0 = none;
    ``is_asked``: whether anything did."""

    def __init__(self, signals: Sequence[signal.Signals] = SIGNALS) -> None:
        self.number = 0
        self.is_asked = False
        self._signals = tuple(signals)
        self._read = self._write = -1

    def __enter__(self) -> StopRequest:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._previous = {number: signal.getsignal(number) for number in self._signals}
        for number, handler in self._previous.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._asked)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    @property
    def descriptor(self) -> int:
        """Readable when the end was asked for."""
        return self._read

    def ask(self) -> None:
        """A wish of the program itself, within the context; from any thread, as often as wanted."""
        self.is_asked = True
        with contextlib.suppress(BlockingIOError):  # asked for very often
            os.write(self._write, b"!")

    def _asked(self, number: int, _: FrameType | None) -> None:
        if self.number:
            raise KeyboardInterrupt
        self.number = number
        self.ask()
