"""A watched process in lines for a terminal: each window when it is kept, and the session at its end."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.model.attach_summary import AttachSummary, KeptWindow
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
    windows = summary.windows
    counting = [window for window in windows if not window.outcome.failure]
    left_out = len(windows) - len(counting)
    head = f"session {summary.session}: {summary.ending}; {counted(len(windows), 'window')} of {summary.variant}"
    lines = [f"{head}, {left_out} of them left out" if left_out else head]
    wall_ns = sum(window.outcome.wall_ns for window in counting)
    if wall_ns:
        lines += _totals(counting, wall_ns, summary.profiler)
    gaps_ns = [window.gap_ns for window in windows if window.gap_ns >= 0]
    if gaps_ns:
        lines.append(f"not recorded between windows: {max(gaps_ns) / 1e6:.1f} ms at most, {sum(gaps_ns) / 1e6:.1f} ms in all")
    return lines


def _totals(counting: Sequence[KeptWindow], wall_ns: int, profiler: str) -> list[str]:
    used_ns = sum(window.outcome.user_ns + window.outcome.system_ns for window in counting)
    samples, lost = (sum(window.samples for window in counting), sum(window.lost_samples for window in counting))
    perf_ns = sum(window.perf_ns for window in counting)
    return [
        f"{wall_ns / 1e9:.1f} s recorded, {used_ns / 1e9:.2f} s of CPU time, {counted(samples, 'sample')}, {count(lost)} lost",
        f"{profiler} itself used {100 * perf_ns / wall_ns:.2f} % of one CPU",
    ]
