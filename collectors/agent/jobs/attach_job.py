"""Jobs that watch a running target: under perf, or only its CPU time and metrics."""

from __future__ import annotations

import select
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from collectors.agent.config.agent_config import ConfiguredTarget
from collectors.agent.jobs.job_events import JobEvents
from collectors.agent.jobs.job_values import JobTask
from collectors.agent.spool.spool import session_command
from collectors.host import host_facts
from collectors.prometheus import PageMetric, parse_series
from collectors.targets.attach_target import find_target
from profiler.attach.defaults import FREQUENCY_HZ
from profiler.attach.plan import AttachPlan
from profiler.attach.schedule import check_not_passed
from profiler.attach.session import attach_session
from profiler.attach.stop_request import StopRequest
from profiler.attach.window import is_whole_window
from profiler.experiment.plan.call_graph_request import parse_call_graph
from profiler.experiment.plan.experiment_plan import PlanTarget
from profiler.experiment.plan.recording_plan import DEFAULT_EVENT
from profiler.experiment.targets.target_window import WindowRule, look_at_target, window_outcome
from profiler.model.attach_summary import AttachSummary, KeptWindow
from profiler.model.capture import empty_capture
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from profiler.protocol.job import JobOrder
from profiler.store.records import SessionStart, SessionState
from profiler.store.store import Store
from reports.quantities import counted

# A busy host sees the edges of a window that much later, which matters in short ones only.
_LATE_S = 0.25


def attach_job(task: JobTask, target: ConfiguredTarget, store: Store, stop: StopRequest, events: JobEvents) -> None:
    """Watches all windows.  Errors of ``attach_session``; what was recorded before is in the store."""
    if task.order.is_profiled:
        _profiled(task, target, store, stop, events)
    else:
        _Plain(task, target, store, stop, events).run()


def _profiled(task: JobTask, target: ConfiguredTarget, store: Store, stop: StopRequest, events: JobEvents) -> None:
    order = task.order
    plan = AttachPlan(
        target.finder,
        variant=order.variant,
        duration_s=order.windows * order.window_s,
        window_s=order.window_s,
        event=DEFAULT_EVENT if order.event == "auto" else order.event,
        frequency_hz=order.frequency_hz or FREQUENCY_HZ,
        call_graph=parse_call_graph(order.call_graph),
        phase=order.phase,
        metrics_address=target.metrics if order.metrics else "",
        pages=_pages(order),
        begin_at_ns=task.begin_at_ns,
        instance=order.instance,
        command=session_command(order.id),
    )
    attach_session(plan, store, stop, _Observer(events, order, stop))


def _pages(order: JobOrder) -> tuple[PageMetric, ...]:
    return tuple(parse_series(metric.name, metric.spec) for metric in order.metrics)


@dataclass(slots=True)
class _Observer:
    """Tells the agent what it has to know.  A window that was cut short counts for whoever reads the session alone; beside the
    windows of other hosts it does not: the job fails, and its round is made again."""

    events: JobEvents
    order: JobOrder
    stop: StopRequest
    kept: int = 0

    def told(self, line: str) -> None:
        """For people at a terminal."""

    def attached(self, session: str) -> None:
        self.events.ready()

    def begun(self, begun_ns: int) -> None:
        self.events.begun(begun_ns)

    def window_kept(self, window: KeptWindow) -> None:
        self.kept += 1
        self.events.progress(f"{self.kept} of {counted(self.order.windows, 'window')}")

    def ended(self, summary: AttachSummary) -> None:
        said = f"{summary.ending}; {counted(len(summary.windows), 'window')}"
        ordered, failures = self.order.windows, [window.outcome.failure for window in summary.windows if window.outcome.failure]
        counting = [window.outcome for window in summary.windows if not window.outcome.failure]
        whole = sum(is_whole_window(outcome.wall_ns, self.order.window_s, _LATE_S) for outcome in counting)
        if self.stop.is_asked or whole < ordered:
            self.events.failed("; ".join([said, f"{ordered} were ordered, {whole} are whole and count", *failures[-1:]]))
        else:
            self.events.done(said)


@dataclass(frozen=True, slots=True)
class _Plain:
    """Windows in which nothing is recorded: CPU time and metrics between two looks."""

    task: JobTask
    target: ConfiguredTarget
    store: Store
    stop: StopRequest
    events: JobEvents

    def run(self) -> None:
        order = self.task.order
        found = find_target(self.target.finder)
        watched = PlanTarget(
            order.variant,
            order.instance or found.instance,
            pid=0 if found.cgroup else found.pid,
            cgroup=found.cgroup,
            metrics=self.target.metrics,
        )
        check_not_passed(self.task.begin_at_ns, time.monotonic_ns())
        now = datetime.now(UTC).isoformat(timespec="seconds")
        start = SessionStart(now, host_facts().hostname, session_command(order.id), 0, has_rounds=True)
        session = self.store.begin_session(start)
        state = SessionState.INTERRUPTED
        try:
            if self._windows(session, watched):
                state = SessionState.FINISHED
        finally:
            self.store.finish_session(session, state)

    def _windows(self, session: str, watched: PlanTarget) -> bool:
        """False when the end was asked for before."""
        order = self.task.order
        self.events.ready()
        begin_ns = self.task.begin_at_ns or time.monotonic_ns()
        if self._is_asked_before(begin_ns):
            self.events.failed("the end was asked for")
            return False
        failures = []
        for number in range(order.windows):
            end_ns = begin_ns + round((number + 1) * order.window_s * 1e9)
            failure = self._window(session, watched, number, end_ns)
            failures += [failure] if failure else []
            if self.stop.is_asked:
                self.events.failed(f"the end was asked for; {counted(number + 1, 'window')} of {order.windows}")
                return False
            self.events.progress(f"{number + 1} of {counted(order.windows, 'window')}")
        if failures:
            self.events.failed(f"{len(failures)} of {counted(order.windows, 'window')} do not count: {failures[-1]}")
        else:
            self.events.done(counted(order.windows, "window"))
        return True

    def _window(self, session: str, watched: PlanTarget, number: int, end_ns: int) -> str:
        """Why it does not count, "" = it does."""
        order = self.task.order
        rule = WindowRule(order.window_s, 0.0, _pages(order))
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        before = look_at_target(watched, rule.pages)
        if number == 0:
            self.events.begun(before.monotonic_ns)
        is_cut = self._is_asked_before(end_ns)
        after = look_at_target(watched, rule.pages)
        outcome = window_outcome(watched, before, after, rule)
        if is_cut:
            return "the end was asked for"
        identity = RunIdentity(session, order.variant, number, RunMode.PLAIN, number, instance=watched.node)
        info = CaptureInfo(identity, host=host_facts(), outcome=outcome, started_at=started_at)
        self.store.add(empty_capture(info))
        self.store.finish_round(session, number)
        return outcome.failure

    def _is_asked_before(self, moment_ns: int) -> bool:
        """Waits until then."""
        left_s = max(0.0, (moment_ns - time.monotonic_ns()) / 1e9)
        return bool(select.select([self.stop.descriptor], [], [], left_s)[0])
