"""The aggregator's clock, measured from here, and carried on by the monotonic clock, which nobody sets."""

from __future__ import annotations

import time
from collections.abc import Callable

from profiler.model.quick_dataclass import dataclass
from profiler.protocol.clock import ClockOffset

EXCHANGES = 8


@dataclass(frozen=True, slots=True)
class ServerClock:
    """At ``monotonic_ns`` (CLOCK_MONOTONIC) the aggregator's clock showed ``server_ns``.  Later steps of this host's wall clock
    change nothing.  ``offset``: as it was then."""

    offset: ClockOffset
    server_ns: int
    monotonic_ns: int

    def monotonic_of(self, server_ns: int) -> int:
        return self.monotonic_ns + (server_ns - self.server_ns)

    def server_of(self, monotonic_ns: int) -> int:
        return self.server_ns + (monotonic_ns - self.monotonic_ns)


def measure_clock(
    exchange: Callable[[], int],
    exchanges: int = EXCHANGES,
    monotonic_ns: Callable[[], int] = time.monotonic_ns,
    wall_ns: Callable[[], int] = time.time_ns,
) -> ServerClock:
    """``exchange``: asks the aggregator for its time, ns.  Of several exchanges the quickest counts: the answer was given
    within its round trip, so half of that is the error."""
    best: ServerClock | None = None
    for _ in range(exchanges):
        wall, before = wall_ns(), monotonic_ns()
        server = exchange()
        error = (monotonic_ns() - before + 1) // 2
        if best is None or error < best.offset.error_ns:
            best = ServerClock(ClockOffset(server - (wall + error), error), server, before + error)
    assert best is not None
    return best
