"""Whether the aggregator's clock was set, by hand or after a time without a network: noticed by the monotonic clock, which
nobody sets."""

from __future__ import annotations

from collections.abc import Callable

_LEAST_STEP_NS = 2_000_000_000


class ClockSteps:
    """Both clocks: ns."""

    def __init__(self, clock_ns: Callable[[], int], monotonic_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._monotonic_ns = monotonic_ns
        self._ahead_ns = clock_ns() - monotonic_ns()

    def step_ns(self) -> int:
        """By how much it was set since the last look, negative = back; 0 for less than 2 s, which clocks drift."""
        ahead_ns = self._clock_ns() - self._monotonic_ns()
        step_ns = ahead_ns - self._ahead_ns
        if abs(step_ns) <= _LEAST_STEP_NS:
            return 0
        self._ahead_ns = ahead_ns
        return step_ns
