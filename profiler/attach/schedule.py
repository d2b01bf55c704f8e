"""When a session begins, and when its windows end (CLOCK_MONOTONIC); pure."""

from __future__ import annotations

from profiler.errors import CaptureError

# perf attaches so long before a session that is to begin at a moment; what it records until then is thrown away.
EARLIEST_ATTACH_NS = 10_000_000_000
# A window that begins later by a greater share of its length moves the edges behind it.
_MOST_LATE = 0.02


def check_not_passed(begin_at_ns: int, now_ns: int) -> None:
    """``CaptureError`` when the moment to begin is over.  ``begin_at_ns``: 0 = at once."""
    if begin_at_ns and now_ns > begin_at_ns:
        late_s = (now_ns - begin_at_ns) / 1e9
        raise CaptureError(f"the moment to begin had passed by {late_s:.3f} s when perf was attached: order a later one")


def edge_after(planned_ns: int, begun_ns: int, window_ns: int, end_ns: int) -> int:
    """When a window is to end that was to begin at ``planned_ns`` and began at ``begun_ns``.  ``end_ns``: of the session, 0 =
    none; the last window takes what is left of it when that is less than half a window more."""
    edge_ns = window_ns + (planned_ns if begun_ns - planned_ns <= _MOST_LATE * window_ns else begun_ns)
    return end_ns if end_ns and edge_ns > end_ns - window_ns // 2 else edge_ns
