"""Jobs that watch a running target without a profiler: only its CPU time and metrics."""

from __future__ import annotations

import select
import time
from datetime import UTC, datetime

from collectors.agent.config.agent_config import ConfiguredTarget
from collectors.agent.jobs.job_events import JobEvents
from collectors.agent.jobs.job_values import JobTask
from collectors.agent.jobs.ordered_metrics import ordered_metrics
from collectors.agent.spool.spool import session_command
from collectors.host import host_facts
from collectors.targets.attach_target import find_target
from profiler.attach.schedule import check_not_passed
from profiler.attach.stop_request import StopRequest
from profiler.experiment.plan.experiment_plan import PlanTarget
from profiler.experiment.targets.target_window import TargetMoment, WindowRule, look_at_target, window_outcome
from profiler.model.capture import empty_capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from profiler.store.records import SessionStart, SessionState
from profiler.store.store import Store
from reports.quantities import counted


@dataclass(frozen=True, slots=True)
class _Edge:
    """The end of one window and the beginning of the next.  ``at``: by the wall clock, ISO 8601."""

    at: str
    look: TargetMoment


@dataclass(frozen=True, slots=True)
class PlainJob:
    """Windows in which nothing is recorded: CPU time and metrics between two looks."""

    task: JobTask
    target: ConfiguredTarget
    store: Store
    stop: StopRequest
    events: JobEvents

    def run(self) -> None:
        """Watches all windows.  ``CaptureError``: the target is not there, or the moment to begin has passed."""
        order = self.task.order
        found = find_target(self.target.finder)
        watched = PlanTarget(
            order.variant,
            order.instance or found.instance,
            pid=found.finder.pid,
            cgroup=found.finder.cgroup,
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
        # The first look costs more than the others: what it needs is loaded then.
        look_at_target(watched, ordered_metrics(order))
        self.events.ready()
        begin_ns = self.task.begin_at_ns or time.monotonic_ns()
        if self._is_asked_before(begin_ns):
            self.events.failed("the end was asked for")
            return False
        failures = []
        edge = self._edge(watched)
        self.events.begun(edge.look.monotonic_ns)
        for number in range(order.windows):
            is_cut = self._is_asked_before(begin_ns + round((number + 1) * order.window_s * 1e9))
            end = self._edge(watched)
            failure = "the end was asked for" if is_cut else self._kept(session, watched, number, (edge, end))
            failures += [failure] if failure else []
            if self.stop.is_asked:
                self.events.failed(f"the end was asked for; {counted(number + 1, 'window')} of {order.windows}")
                return False
            self.events.progress(f"{number + 1} of {counted(order.windows, 'window')}")
            # The target goes on while a window is filed, which on a slow disk takes a good part of the next one.
            edge = end if not end.look.failure else self._edge(watched)
        if failures:
            self.events.failed(f"{len(failures)} of {counted(order.windows, 'window')} do not count: {failures[-1]}")
        else:
            self.events.done(counted(order.windows, "window"))
        return True

    def _edge(self, watched: PlanTarget) -> _Edge:
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        return _Edge(started_at, look_at_target(watched, ordered_metrics(self.task.order)))

    def _kept(self, session: str, watched: PlanTarget, number: int, edges: tuple[_Edge, _Edge]) -> str:
        """Why the window does not count, "" = it does."""
        order, (begin, end) = self.task.order, edges
        rule = WindowRule(order.window_s, order.settle_s, ordered_metrics(order))
        outcome = window_outcome(watched, begin.look, end.look, rule)
        identity = RunIdentity(session, order.variant, number, RunMode.PLAIN, number, instance=watched.node)
        info = CaptureInfo(identity, host=host_facts(), outcome=outcome, started_at=begin.at)
        self.store.add(empty_capture(info))
        self.store.finish_round(session, number)
        return outcome.failure

    def _is_asked_before(self, moment_ns: int) -> bool:
        """Waits until then."""
        left_s = max(0.0, (moment_ns - time.monotonic_ns()) / 1e9)
        return bool(select.select([self.stop.descriptor], [], [], left_s)[0])
