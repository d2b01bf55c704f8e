"""What is printed of a watched process."""

from __future__ import annotations

import gc
from dataclasses import replace

from profiler.model.attach_summary import AttachSummary, KeptWindow, WindowTotals
from profiler.model.run import Metric, RunKey, RunOutcome
from reports.attach_lines import summary_lines, window_line

SECOND = 1_000_000_000
OUTCOME = RunOutcome(wall_ns=10 * SECOND, user_ns=3 * SECOND, system_ns=SECOND)
FIRST = KeptWindow(RunKey("2026-1", 0), 0, "node-1", OUTCOME, samples=40, lost_samples=1, gap_ns=-1, perf_ns=SECOND // 2)


def totals_of(*windows: KeptWindow) -> WindowTotals:
    totals = WindowTotals()
    for window in windows:
        totals = totals.with_window(window)
    return totals


def test_windows_that_are_left_out_are_not_summed() -> None:
    """Two windows of 10 s with 4 s of CPU time, 40 samples, and perf at 0.5 s; between them one whose perf died."""
    died = replace(FIRST, number=1, outcome=replace(OUTCOME, failure="perf ended with status -9"), gap_ns=2_000_000)
    third = replace(FIRST, number=2, gap_ns=30_000_000)
    summary = AttachSummary("2026-1", "node", "ended as asked", totals_of(FIRST, died, third))
    assert summary_lines(summary) == [
        "session 2026-1: ended as asked; 3 windows of node, 1 of them left out",
        "20.0 s recorded, 8.00 s of CPU time, 80 samples, 2 lost",
        "perf itself used 5.00 % of one CPU",
        "not recorded between windows: 30.0 ms at most, 32.0 ms in all",
    ]


def test_nothing_recorded() -> None:
    assert summary_lines(AttachSummary("2026-1", "node", "ended as asked", WindowTotals())) == [
        "session 2026-1: ended as asked; 0 windows of node"
    ]


def test_a_window() -> None:
    outcome = replace(OUTCOME, failure="cut", metrics=(Metric("proof", 4e6, "ns"),))
    window = replace(FIRST, number=4, outcome=outcome, gap_ns=12_000_000, advice="lower --frequency")
    assert window_line(window) == (
        "window 5  node-1  10.00 s  cpu 4,000.0 ms  40 samples  proof 4,000.0 µs  gap before it 12.0 ms  "
        "LOST 1: lower --frequency  left out: cut"
    )


def test_a_week_of_windows_takes_no_more_room_than_one() -> None:
    """7 days of 1,440 windows of a minute, half a CPU used: only sums are kept of the 10,080 windows."""
    minute = RunOutcome(wall_ns=60 * SECOND, user_ns=20 * SECOND, system_ns=10 * SECOND)
    window = replace(FIRST, outcome=minute, samples=2970, lost_samples=0, gap_ns=1_000)
    totals = totals_of(*(replace(window, number=number) for number in range(7 * 1440)))
    (_, recorded, own, gaps) = summary_lines(AttachSummary("2026-1", "node", "ended as asked", totals))
    assert recorded == "604800.0 s recorded, 302400.00 s of CPU time, 29,937,600 samples, 0 lost"
    assert own == "perf itself used 0.83 % of one CPU"
    assert gaps == "not recorded between windows: 0.0 ms at most, 10.1 ms in all"
    assert not any(isinstance(held, KeptWindow) for held in gc.get_referents(totals))
