"""Jobs that watch a running target under perf."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.agent.config.agent_config import ConfiguredTarget
from collectors.agent.jobs.job_events import JobEvents
from collectors.agent.jobs.job_values import JobTask
from collectors.agent.jobs.ordered_metrics import ordered_metrics
from collectors.agent.spool.spool import session_command
from profiler.attach.plan import AttachPlan
from profiler.attach.session import attach_session, python_session
from profiler.attach.stop_request import StopRequest
from profiler.attach.window import is_whole_window
from profiler.experiment.plan.call_graph_request import parse_call_graph
from profiler.experiment.plan.recording_plan import DEFAULT_EVENT
from profiler.model.attach_summary import AttachSummary, KeptWindow
from profiler.orders.refusal import sampling_rate_hz
from profiler.protocol.hello import TargetProfiler
from profiler.protocol.job import JobOrder
from profiler.store.store import Store
from reports.quantities import counted

# A busy host sees the edges of a window that much later, which matters in short ones only.
_LATE_S = 0.25


def attach_job(task: JobTask, target: ConfiguredTarget, store: Store, stop: StopRequest, events: JobEvents) -> None:
    """Watches all windows.  Errors of ``attach_session`` and ``python_session``; what was recorded before is in the store."""
    order = task.order
    plan = AttachPlan(
        target.finder,
        variant=order.variant,
        duration_s=order.windows * order.window_s,
        window_s=order.window_s,
        event=DEFAULT_EVENT if order.event == "auto" else order.event,
        frequency_hz=sampling_rate_hz(order),
        call_graph=parse_call_graph(order.call_graph),
        phase=order.phase,
        metrics_address=target.metrics if order.metrics else "",
        pages=ordered_metrics(order),
        begin_at_ns=task.begin_at_ns,
        instance=order.instance,
        settle_s=order.settle_s,
        most_kept_bytes=task.most_kept_bytes,
        command=session_command(order.id),
    )
    observer = _Observer(events, order, stop)
    if target.profiler is TargetProfiler.PYSPY:
        python_session(plan, target.has_native, store, stop, observer)
    else:
        attach_session(plan, store, stop, observer)


@dataclass(slots=True)
class _Observer:
    """Tells the agent what it has to know.  A window that was cut short counts for whoever reads the session alone; beside the
    windows of other hosts it does not: the job fails, and its round is made again."""

    events: JobEvents
    order: JobOrder
    stop: StopRequest
    kept: int = 0
    whole: int = 0

    def told(self, line: str) -> None:
        """For people at a terminal."""

    def attached(self, session: str) -> None:
        self.events.ready()

    def begun(self, begun_ns: int) -> None:
        self.events.begun(begun_ns)

    def window_kept(self, window: KeptWindow) -> None:
        self.kept += 1
        outcome = window.outcome
        self.whole += not outcome.failure and is_whole_window(outcome.wall_ns, self.order.window_s, _LATE_S)
        self.events.progress(f"{self.kept} of {counted(self.order.windows, 'window')}")

    def ended(self, summary: AttachSummary) -> None:
        said, ordered = f"{summary.ending}; {counted(summary.totals.windows, 'window')}", self.order.windows
        if self.stop.is_asked or self.whole < ordered:
            counting = f"{ordered} were ordered, {self.whole} are whole and count"
            self.events.failed("; ".join(filter(None, (said, counting, summary.totals.last_failure))))
        else:
            self.events.done(said)
