"""One window of an attached target: its two edges, and what they say of the time between."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future

from collectors.processes.process_status import status_of
from collectors.processes.process_times import CpuUsage, cpu_usage, used_between
from collectors.prometheus import MetricsPage, fetch_page, page_metrics
from collectors.targets.attach_target import AttachTarget
from profiler.attach.plan import AttachPlan
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import Metric, RunOutcome

PERF_CPU = "perf cpu"
# A window is whole when it lasted as long as it should have, but for this share.
_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class CpuReading:
    """CPU time of all members at one moment; ``pids``: the members."""

    usage: CpuUsage
    pids: tuple[int, ...]


def read_cpu(target: AttachTarget) -> CpuReading:
    """Looks for the members anew, which takes some ms on a host with many processes."""
    members = target.members()
    return CpuReading(cpu_usage(members), tuple(status.pid for status in members))


def read_cpu_again(target: AttachTarget, last: CpuReading) -> CpuReading:
    """Of the members known; ``last`` when the target has gone, with whatever it had used then."""
    statuses = [status for pid in last.pids if (status := status_of(pid)) is not None]
    if not any((status.pid, status.started) == (target.pid, target.started) for status in statuses):
        return last
    found = cpu_usage(statuses)
    # Children that ended and are not waited for yet are in no reading.
    return CpuReading(found, last.pids) if found.total_ns >= last.usage.total_ns else last


@dataclass(frozen=True, slots=True)
class Edge:
    """Between two windows.  ``page``: the page of metrics, fetched meanwhile; None when none is asked for."""

    reading: CpuReading
    page: Future[MetricsPage] | None


def edge_at(reading: CpuReading, plan: AttachPlan, pool: Executor | None) -> Edge:
    """``pool``: fetches pages; None where none are read."""
    page = pool.submit(fetch_page, plan.metrics_address, plan.pages) if plan.pages and pool is not None else None
    return Edge(reading, page)


def edge_at_end(target: AttachTarget, last: CpuReading, is_gone: bool, plan: AttachPlan, pool: Executor | None) -> Edge:
    """The end of a window.  Of a process that has ended the CPU time of after ``last`` is lost, unless its parent has not taken
    note yet; nor does it have a page."""
    reading = last if is_gone else read_cpu(target)
    if is_gone or target.pid not in reading.pids:
        return Edge(read_cpu_again(target, last), None)
    return edge_at(reading, plan, pool)


@dataclass(frozen=True, slots=True)
class WindowTimes:
    """When perf recorded (monotonic, ns), what perf itself used (CPU time in ns), and why the window ended early, "" = it did
    not.  ``perf_metric``: what that use is called, for what records in place of perf."""

    begun_ns: int
    ended_ns: int
    perf_ns: int
    cut_by: str
    perf_metric: str = PERF_CPU

    @property
    def length_ns(self) -> int:
        return self.ended_ns - self.begun_ns


@dataclass(frozen=True, slots=True)
class WindowOutcome:
    """``is_whole``: it lasted as long as it should.  ``note``: what a reader must know of one that did not, or of metrics
    that are missing, "" = nothing."""

    outcome: RunOutcome
    is_whole: bool
    note: str


def window_outcome(times: WindowTimes, before: Edge, after: Edge, plan: AttachPlan) -> WindowOutcome:
    """The CPU time is that between two readings of it, each some ms behind its edge: so it adds up over the windows."""
    user_ns, system_ns = used_between(before.reading.usage, after.reading.usage)
    metrics, missing = _page_metrics(before, after, plan)
    outcome = RunOutcome(
        wall_ns=times.length_ns,
        user_ns=user_ns,
        system_ns=system_ns,
        metrics=(*metrics, Metric(times.perf_metric, float(times.perf_ns), "ns", (float(times.perf_ns),))),
    )
    length_s, is_whole = times.length_ns / 1e9, is_whole_window(times.length_ns, plan.window_s)
    short = "" if is_whole else f"a window lasted {length_s:.1f} s in place of {plan.window_s:g} s"
    told = [f"{short}: {times.cut_by}" if short else f"at the end of a window {times.cut_by}"] if times.cut_by else [short]
    return WindowOutcome(outcome, is_whole, "; ".join(filter(None, (*told, missing))))


def is_whole_window(length_ns: int, window_s: float, slack_s: float = 0.0) -> bool:
    """Whether it lasted as long as it should have, but for ``slack_s`` beside the share that is always allowed."""
    return abs(length_ns / 1e9 - window_s) <= _TOLERANCE * window_s + slack_s


def _page_metrics(before: Edge, after: Edge, plan: AttachPlan) -> tuple[Sequence[Metric], str]:
    """(metrics, "") or ((), why there are none)."""
    if before.page is None or after.page is None:
        return (), ""
    try:
        return page_metrics(plan.pages, before.page.result(), after.page.result()), ""
    except CaptureError as error:
        return (), f"no metrics: {error}"
