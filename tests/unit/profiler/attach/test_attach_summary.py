"""What is printed at the end of a session."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from collectors.attach_target import TargetFinder
from profiler.attach.plan import AttachPlan
from profiler.attach.summary import AttachSummary, KeptWindow
from profiler.cli.attach import _summary_text
from profiler.cli.context import CliContext
from profiler.model.run import RunOutcome
from profiler.store.records import RunKey

SECOND = 1_000_000_000


def test_windows_that_are_left_out_are_not_summed() -> None:
    """Two windows of 10 s with 4 s of CPU time, 40 samples, and perf at 0.5 s; between them one whose perf died."""
    outcome = RunOutcome(wall_ns=10 * SECOND, user_ns=3 * SECOND, system_ns=SECOND)
    first = KeptWindow(RunKey("2026-1", 0), 0, "node-1", outcome, samples=40, lost_samples=1, gap_ns=-1, perf_ns=SECOND // 2)
    died = replace(first, number=1, outcome=replace(outcome, failure="perf ended with status -9"), gap_ns=2_000_000)
    third = replace(first, number=2, gap_ns=30_000_000)
    summary = AttachSummary("2026-1", "node", "ended as asked", (first, died, third))
    context = CliContext(Path("elsewhere"), io.StringIO(), io.StringIO())
    assert _summary_text(summary, context, AttachPlan(TargetFinder(pid=1))).splitlines()[:-1] == [
        "session 2026-1: ended as asked; 3 windows of node, 1 of them left out",
        "20.0 s recorded, 8.00 s of CPU time, 80 samples, 2 lost",
        "perf itself used 5.00 % of one CPU",
        "not recorded between windows: 30.0 ms at most, 32.0 ms in all",
    ]
