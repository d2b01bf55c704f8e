"""When the windows of a turn began, by clocks that no agent had a part in.

All hosts of a fleet are one machine with one kernel.  Its real-time clock is the aggregator's, whatever an agent takes the time
for; it stands in each capture.  Its monotonic clock stamps every sample.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from profiler.model.capture import Capture
from profiler.model.run import RunMode
from profiler.service.aggregator import open_aggregator

Turn = tuple[int, RunMode]


@dataclass(frozen=True, slots=True)
class WindowStart:
    """ns after the instant that all nodes of the turn were to begin at, by the aggregator's clock.  ``clock_ns``: by the
    real-time clock when the window began, to the millisecond.  ``sample_ns``: of the first sample, None of a plain window;
    ``gap_ns``: the window began that much before it at most."""

    node: str
    clock_ns: int
    sample_ns: int | None
    gap_ns: int


def window_starts(store: Path, gap_ms: Callable[[Capture], float]) -> dict[Turn, list[WindowStart]]:
    """Of all captures that count, by turn.  ``gap_ms``: between two samples of the node, at most."""
    aggregator = open_aggregator(store, create=False)
    instants = {sha256: job.order.start_at_ns for job in aggregator.jobs.jobs() for sha256 in job.report.captures}
    to_real_time_ns = time.time_ns() - time.monotonic_ns()
    found: dict[Turn, list[WindowStart]] = defaultdict(list)
    for run in aggregator.store.runs():
        if run.summary.failure:
            continue
        capture, instant_ns = aggregator.store.load(run), instants[run.origin]
        begun_ns = round(datetime.fromisoformat(capture.info.started_at).timestamp() * 1e3) * 1_000_000
        is_profiled = capture.info.identity.mode is RunMode.PROFILED
        first_ns = int(capture.samples.time_ns.min()) + to_real_time_ns - instant_ns if is_profiled else None
        gap_ns = round(gap_ms(capture) * 1e6)
        start = WindowStart(capture.info.identity.instance, begun_ns - instant_ns, first_ns, gap_ns)
        found[capture.info.identity.round, capture.info.identity.mode].append(start)
    return dict(found)


def clock_skew_ms(starts: list[WindowStart]) -> float:
    """Between the first and the last window of a turn, by the real-time clock."""
    begun_ns = [start.clock_ns for start in starts]
    return (max(begun_ns) - min(begun_ns)) / 1e6


def sample_skew_ms(starts: list[WindowStart]) -> float:
    """The same by samples: what it may be at most, since a window began within a gap before its first sample."""
    firsts = [(start.sample_ns, start.gap_ns) for start in starts if start.sample_ns is not None]
    return (max(first_ns for first_ns, _ in firsts) - min(first_ns - gap_ns for first_ns, gap_ns in firsts)) / 1e6


def told(turns: dict[Turn, list[WindowStart]]) -> str:
    """For people: of each turn the windows' starts and both skews, ms."""
    lines = []
    for (number, mode), starts in sorted(turns.items()):
        by_clock = sorted(start.clock_ns / 1e6 for start in starts)
        line = f"round {number} {mode}: begun {by_clock[0]:.0f} to {by_clock[-1]:.0f}, skew {clock_skew_ms(starts):.0f}"
        if mode is RunMode.PROFILED:
            firsts = sorted(start.sample_ns / 1e6 for start in starts if start.sample_ns is not None)
            line += f"; first samples {firsts[0]:.1f} to {firsts[-1]:.1f}, skew at most {sample_skew_ms(starts):.1f}"
        lines.append(line)
    return "\n".join(lines)
