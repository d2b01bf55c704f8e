"""What came of a session: its windows, and the line that tells of each."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.model.capture import Capture
from profiler.model.run import RunOutcome
from profiler.store.records import RunKey
from reports.quantities import count, counted, scale_for


@dataclass(frozen=True, slots=True)
class KeptWindow:
    """A window that is in the store, as ``key``.  ``gap_ns``: time before it that no perf recorded, after a window of the same
    process; -1 = it is the first one.  ``perf_ns``: CPU time of perf, or of what recorded in its place.  ``advice``: what is
    said of lost samples."""

    key: RunKey
    number: int
    instance: str
    outcome: RunOutcome
    samples: int
    lost_samples: int
    gap_ns: int
    perf_ns: int
    advice: str = ""


def kept_window(key: RunKey, capture: Capture, gap_ns: int, cpu_metric: str, advice: str) -> KeptWindow:
    """``cpu_metric``: name of the metric that says what recording took."""
    info = capture.info
    used_ns = next(round(metric.value) for metric in info.outcome.metrics if metric.name == cpu_metric)
    samples, lost = len(capture.samples), capture.quality.lost_samples
    return KeptWindow(key, info.identity.round, info.identity.instance, info.outcome, samples, lost, gap_ns, used_ns, advice)


@dataclass(frozen=True, slots=True)
class AttachSummary:
    """``ending``: one line.  ``windows``: in order of time.  ``files``: directory below which the process's own files are found
    as long as it runs, "" = where everybody finds them.  ``profiler``: the program that recorded."""

    session: str
    variant: str
    ending: str
    windows: tuple[KeptWindow, ...]
    files: str = ""
    profiler: str = "perf"


def window_line(window: KeptWindow) -> str:
    """What is told of a window as soon as it is kept."""
    outcome = window.outcome
    times = scale_for([outcome.wall_ns], "ns").quantity(outcome.wall_ns)
    used_ns = outcome.user_ns + outcome.system_ns
    parts = [f"window {window.number + 1}", window.instance, times, f"cpu {scale_for([used_ns], 'ns').quantity(used_ns)}"]
    parts.append(counted(window.samples, "sample"))
    parts += [f"{metric.name} {scale_for([metric.value], metric.unit).quantity(metric.value)}" for metric in outcome.metrics]
    if window.gap_ns >= 0:
        parts.append(f"gap before it {scale_for([window.gap_ns], 'ns').quantity(window.gap_ns)}")
    if window.lost_samples:
        parts.append(f"LOST {count(window.lost_samples)}: {window.advice}")
    return "  ".join([*parts, *([f"left out: {outcome.failure}"] if outcome.failure else [])])
