"""A watched process in lines for a terminal: each window when it is kept, and the session at its end."""

from __future__ import annotations

from profiler.model.attach_summary import AttachSummary, KeptWindow, WindowTotals
from reports.quantities import count, counted, scale_for


def window_line(window: KeptWindow) -> str:
    """What is told of a window as soon as it is kept."""
    outcome = window.outcome
    used_ns = outcome.user_ns + outcome.system_ns
    parts = [f"window {window.number + 1}", window.instance, _time(outcome.wall_ns), f"cpu {_time(used_ns)}"]
    parts.append(counted(window.samples, "sample"))
    parts += [f"{metric.name} {scale_for([metric.value], metric.unit).quantity(metric.value)}" for metric in outcome.metrics]
    if window.gap_ns >= 0:
        parts.append(f"gap before it {_time(window.gap_ns)}")
    if window.lost_samples:
        parts.append(f"LOST {count(window.lost_samples)}: {window.advice}")
    return "  ".join([*parts, *([f"left out: {outcome.failure}"] if outcome.failure else [])])


def _time(time_ns: int) -> str:
    return scale_for([time_ns], "ns").quantity(time_ns)


def summary_lines(summary: AttachSummary) -> list[str]:
    """What the windows that count add up to; others are only told of."""
    totals = summary.totals
    left_out = totals.windows - totals.counting
    head = f"session {summary.session}: {summary.ending}; {counted(totals.windows, 'window')} of {summary.variant}"
    lines = [f"{head}, {left_out} of them left out" if left_out else head]
    if totals.wall_ns:
        lines += _of_counting(totals, summary.profiler)
    if totals.gaps:
        longest_ms, all_ms = totals.longest_gap_ns / 1e6, totals.gaps_ns / 1e6
        lines.append(f"not recorded between windows: {longest_ms:.1f} ms at most, {all_ms:.1f} ms in all")
    return lines


def _of_counting(totals: WindowTotals, profiler: str) -> list[str]:
    recorded = f"{totals.wall_ns / 1e9:.1f} s recorded, {totals.used_ns / 1e9:.2f} s of CPU time"
    return [
        f"{recorded}, {counted(totals.samples, 'sample')}, {count(totals.lost_samples)} lost",
        f"{profiler} itself used {100 * totals.perf_ns / totals.wall_ns:.2f} % of one CPU",
    ]
