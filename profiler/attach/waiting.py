"""Waiting for a moment, or for what happens before it."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto

TICK_S = 1.0
# In the last steps before the moment there is no time for anything else.
_LEAST_TICK_S = 0.25
_LAST_STEP_NS = 2_000_000


class Cause(Enum):
    """Why a wait ended.  TIME: it is over.  ASKED: Ctrl-C, a signal, or the program's own wish.  TARGET: the process ended.
    PROFILER: what records ended by itself.  SIZE: the recording is as large as it may be.  REFUSED: the next perf could not
    attach."""

    TIME = auto()
    ASKED = auto()
    TARGET = auto()
    PROFILER = auto()
    SIZE = auto()
    REFUSED = auto()


# A file descriptor, and what it means that it can be read.
Event = tuple[int, Cause]


def wait_for(events: Sequence[Event], until_ns: int, tick: Callable[[], Cause | None] = lambda: None) -> Cause:
    """The first of the events that happens, of several at once the first in the order given; TIME when none does until
    ``until_ns`` (CLOCK_MONOTONIC).  ``tick`` is called about every second; what it returns ends the wait, too."""
    descriptors = [descriptor for descriptor, _ in events]
    while True:
        left_ns = max(0, until_ns - time.monotonic_ns())
        # In ever shorter steps: the kernel may make a wait 0.5 % longer, up to 0.1 s (select(2)).
        step_s = min(TICK_S, left_ns / (2e9 if left_ns > _LAST_STEP_NS else 1e9))
        ready, _, _ = select.select(descriptors, [], [], step_s)
        for descriptor, cause in events:
            if descriptor in ready:
                return cause
        if left_ns <= _LAST_STEP_NS:
            return Cause.TIME
        if step_s >= _LEAST_TICK_S and (found := tick()) is not None:
            return found
