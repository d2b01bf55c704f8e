"""How an agent's clock stands to the aggregator's."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The aggregator's clock, ns since 1970-01-01 UTC, while it answered."""

    server_time_ns: int


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The aggregator's clock less the agent's wall clock, and by how much that may be wrong at most (half of the round trip of
    the quickest exchange), both in ns."""

    offset_ns: int
    error_ns: int
