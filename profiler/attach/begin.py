"""The moment at which a session was ordered to begin (CLOCK_MONOTONIC)."""

from __future__ import annotations

from profiler.errors import CaptureError

# perf attaches so long before; what it records until then is thrown away.
EARLIEST_ATTACH_S = 10.0


def check_not_passed(begin_at_ns: int, now_ns: int) -> None:
    """``CaptureError`` when the moment is over, 0 = at once."""
    if begin_at_ns and now_ns > begin_at_ns:
        late_s = (now_ns - begin_at_ns) / 1e9
        raise CaptureError(f"the moment to begin had passed by {late_s:.3f} s when perf was attached: order a later one")
