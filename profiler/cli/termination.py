"""SIGTERM and SIGHUP end a recording like Ctrl-C does: in order, with everything put away."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """A signal asked for the end; ``number`` says which."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Raises ``Terminated`` where a signal arrives, for the main thread only.  What is ignored (nohup) stays ignored."""
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    caught = [number for number in SIGNALS if previous[number] is signal.SIG_DFL]
    for number in caught:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, previous[number])


def _raise(number: int, _: FrameType | None) -> None:
    raise Terminated(number)
