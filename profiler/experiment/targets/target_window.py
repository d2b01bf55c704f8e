"""One window of a running process: looked at before and after, and what that says of the time between."""

from __future__ import annotations

import os
import time

from collectors.processes.process_times import used_between
from collectors.prometheus import MetricsPage, PageMetric, fetch_page, page_metrics
from collectors.targets.watched_process import ProcessMoment, look_at
from profiler.errors import CaptureError
from profiler.experiment.plan.experiment_plan import PlanTarget
from profiler.experiment.plan.plan_check_services import CPU_TIME_METRIC
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import Metric, RunOutcome

EXCLUDED = "excluded by the plan"
# A window that ends much later was interrupted: the machine slept, or had no time for anything.  Of one that is much shorter,
# because its page came late or the disk was slow, little is left that could be held against whole ones.
_LONGEST = 2.0
_LONGEST_SLACK_S = 1.0
_SHORTEST = 0.5
_SETTLE_SLACK_S = 0.1


@dataclass(frozen=True, slots=True)
class TargetMoment:
    """A target at one moment.  ``process``, ``page``: None when the plan does not name them.  ``failure``: why it could not be
    looked at, "" = it could."""

    monotonic_ns: int
    process: ProcessMoment | None = None
    page: MetricsPage | None = None
    failure: str = ""


def look_at_target(target: PlanTarget, pages: tuple[PageMetric, ...]) -> TargetMoment:
    """Now; what goes wrong is in the answer, for the other targets go on."""
    try:
        page = fetch_page(target.metrics, pages) if target.metrics and pages else None
        process = look_at(target.finder) if target.finder.is_given else None
    except CaptureError as error:
        return TargetMoment(time.monotonic_ns(), failure=str(error))
    return TargetMoment(time.monotonic_ns(), process, page)


@dataclass(frozen=True, slots=True)
class WindowRule:
    """``window_s``: how long a window lasts; ``settle_s``: how long a process must have been running before one."""

    window_s: float
    settle_s: float
    pages: tuple[PageMetric, ...]


def window_outcome(target: PlanTarget, before: TargetMoment, after: TargetMoment, rule: WindowRule) -> RunOutcome:
    """The metrics of the time between two looks, or why they do not count.

    The wall time stays 0: the plan decides how long a window is, and not the process.
    """
    try:
        metrics = _metrics(before, after, rule)
    except CaptureError as error:
        return RunOutcome(failure=EXCLUDED if target.is_excluded else str(error))
    return RunOutcome(metrics=metrics, failure=EXCLUDED if target.is_excluded else "")


def _metrics(before: TargetMoment, after: TargetMoment, rule: WindowRule) -> tuple[Metric, ...]:
    for moment, when in ((before, "before"), (after, "after")):
        if moment.failure:
            raise CaptureError(f"{when} the window: {moment.failure}")
    length_s = (after.monotonic_ns - before.monotonic_ns) / 1e9
    if not rule.window_s * _SHORTEST <= length_s <= rule.window_s * _LONGEST + _LONGEST_SLACK_S:
        raise CaptureError(f"the window took {length_s:.1f} s in place of {rule.window_s:g} s")
    found: tuple[Metric, ...] = ()
    if before.process is not None and after.process is not None:
        _check_process(before, after.process, rule)
        # Windows never end to the millisecond: what is told is the use in exactly the time that the plan says.
        used = sum(used_between(before.process.usage, after.process.usage)) * rule.window_s / length_s
        found = (Metric(CPU_TIME_METRIC, used, "ns", (used,)),)
    if before.page is not None and after.page is not None:
        found += page_metrics(rule.pages, before.page, after.page)
    return found


def _check_process(before: TargetMoment, after: ProcessMoment, rule: WindowRule) -> None:
    assert before.process is not None
    if before.process.identities != after.identities:
        raise CaptureError("the process restarted in the window")
    youngest_s = max(started for _, started in after.identities) / os.sysconf("SC_CLK_TCK")
    age_s = before.monotonic_ns / 1e9 - (youngest_s - _boot_offset_s())
    if age_s < rule.settle_s - _SETTLE_SLACK_S:
        raise CaptureError(f"the process had started only {age_s:.0f} s before, and settle is {rule.settle_s:g} s")


def _boot_offset_s() -> float:
    """Time since boot, which counts suspended time too, less the monotonic clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
