"""A session that profiles a process which runs already: window after window, until it ends or somebody asks for the end.

What records a window, and when windows begin and end: ``perf_windows``, ``pyspy_windows``.  What is kept: ``kept_windows``.
"""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime

from collectors.host import host_facts
from collectors.processes.guard import GroupGuard
from collectors.profilers.perf_record import perf_version
from collectors.prometheus import check_series, fetch_text
from collectors.targets.attach_target import AttachTarget, check_access, find_target
from collectors.targets.watched_process import check_settled, look_at
from profiler.attach.instance import AttachedInstance
from profiler.attach.kept_windows import KeptWindows
from profiler.attach.observer import AttachObserver
from profiler.attach.perf_windows import Perf
from profiler.attach.plan import AttachPlan, check_attach_plan, check_python_plan, variant_of
from profiler.attach.schedule import check_not_passed
from profiler.attach.stop_request import StopRequest
from profiler.attach.waiting import Cause, wait_for
from profiler.attach.window_profiler import ProcessWindows, SessionSetting, WindowProfiler
from profiler.errors import CaptureError
from profiler.experiment.run.preparation import check_frequency
from profiler.model.attach_summary import AttachSummary
from profiler.model.quick_dataclass import dataclass
from profiler.store.records import SessionStart, SessionState
from profiler.store.store import Store

# How often another process is looked for: at first, and after a while, since docker or systemctl may be run each time.
POLL_S = 0.25
SLOWEST_POLL_S = 2.0
SETTLED_S = 0.5
_SLOWER = 1.25


def attach_session(plan: AttachPlan, store: Store, stop: StopRequest, observer: AttachObserver) -> AttachSummary:
    """perf watches until the end; every window is in the store soon after its own.  Several processes may do so at the same
    time, in one store, too.

    ``CaptureError``, ``UsageError``: what is to be profiled is not there, may not be profiled, has not settled, or came back as
    another build; the moment to begin has passed.
    """
    check_attach_plan(plan)
    check_frequency(plan.frequency_hz)
    profiler = Perf(perf_version())
    target = find_target(plan.finder)
    check_access(target)
    if target.is_stopped():
        observer.told(_standing_still(target))
    if plan.pages:
        waiting = check_series(fetch_text(plan.metrics_address), plan.pages)
        observer.told(f"{plan.metrics_address} answers, {len(plan.pages) - len(waiting)} metrics found")
        for line in waiting:
            observer.told(line)
    return _Session(plan, store, stop, observer, profiler).watch(target)


def python_session(
    plan: AttachPlan, has_native: bool, store: Store, stop: StopRequest, observer: AttachObserver
) -> AttachSummary:
    """py-spy watches a Python process until it ends, somebody asks for the end, or ``plan.duration_s`` has been recorded, gaps
    not counted; every window is in the store soon after its own end.  ``has_native``: also C, C++ and Rust frames.

    ``CaptureError``, ``UsageError``: what is to be profiled is not there, is not Python, may not be profiled, or has not
    settled.
    """
    from collectors.profilers.pyspy import PySpySettings, pyspy_version
    from profiler.attach.pyspy_windows import PySpy

    check_python_plan(plan)
    profiler = PySpy(PySpySettings(rate_hz=plan.frequency_hz, has_native=has_native), pyspy_version())
    target = find_target(plan.finder)
    check_access(target)
    if target.is_stopped():  # py-spy would take it for no Python process
        raise CaptureError(_standing_still(target))
    return _Session(plan, store, stop, observer, profiler).watch(target)


def _standing_still(target: AttachTarget) -> str:
    return (
        f"process {target.pid} ({target.name}) was stopped by a signal or a debugger, and uses no CPU time until it is let go "
        f"on (`kill -CONT {target.pid}`)"
    )


@dataclass(frozen=True, slots=True)
class _Session:
    """What is needed before a session begins in the store."""

    plan: AttachPlan
    store: Store
    stop: StopRequest
    observer: AttachObserver
    profiler: WindowProfiler

    def watch(self, target: AttachTarget) -> AttachSummary:
        plan = self.plan
        if plan.settle_s:
            check_settled(look_at(target.finder), plan.begin_at_ns or time.monotonic_ns(), plan.settle_s)
        with contextlib.ExitStack() as stack:
            instances = stack.enter_context(contextlib.ExitStack())
            instance = instances.enter_context(self.profiler.attached(target, plan))
            directory = stack.enter_context(self.store.working_directory())
            guard = stack.enter_context(GroupGuard(polite=self.profiler.polite))
            # Whoever may not record is told so before a session begins.
            self.profiler.probe(instance, directory / "probe", guard)
            check_not_passed(plan.begin_at_ns, time.monotonic_ns())
            host, variant = host_facts(), plan.variant or variant_of(target.name)
            started_at = datetime.now(UTC).isoformat(timespec="seconds")
            session = self.store.begin_session(SessionStart(started_at, host.hostname, plan.command, 0, has_rounds=True))
            setting = SessionSetting(session, variant, plan, host, directory, guard, self.stop, self.observer)
            state = SessionState.INTERRUPTED
            try:
                with (
                    KeptWindows(self.store, self.observer, plan.phase, plan.most_kept_bytes) as kept,
                    self.profiler.windows(setting, kept) as windows,
                ):
                    ending = _Watch(setting, kept, windows, self.profiler).run(instance, instances)
                state = SessionState.INTERRUPTED if self.stop.is_asked and plan.duration_s else SessionState.FINISHED
            finally:
                self.store.finish_session(session, state)
        files = f"/proc/{target.pid}/root" if kept.lacks_names and target.is_there() else ""
        summary = AttachSummary(session, variant, ending, kept.totals, files, self.profiler.name)
        self.observer.ended(summary)
        return summary


@dataclass(frozen=True, slots=True)
class _Watch:
    """A session under way: which process is watched, and which one after it."""

    setting: SessionSetting
    kept: KeptWindows
    windows: ProcessWindows
    profiler: WindowProfiler

    def run(self, instance: AttachedInstance, instances: contextlib.ExitStack) -> str:
        """How it ended, in one line.  ``instances``: holds the instance, and is closed before it holds the next one."""
        plan, first_build = self.setting.plan, instance.program.build_id
        while True:
            try:
                cause = self.windows.record(instance)
            except CaptureError:
                self.kept.wait()  # what was recorded is kept
                raise
            self.kept.wait()
            if cause is not Cause.TARGET:
                return self._ending(cause)
            ended = f"process {instance.target.pid} ({instance.target.name}) ended"
            if plan.finder.pid or plan.instance or not self.profiler.follows_another:
                return ended
            self.setting.observer.told(f"{ended}; waiting for another {plan.finder}")
            following = self._await_another(instances)
            if following is None:
                return f"{ended}, and no other took its place"
            instance = following
            self._check_build(instance, first_build)

    def _ending(self, cause: Cause) -> str:
        """The last two causes end a session when no time is left for another window."""
        if cause is Cause.ASKED:
            return "ended as asked"
        over = "ended after its duration"
        if cause is Cause.PROFILER:
            return f"{over}, at the end of which {self.profiler.name} had ended by itself"
        return f"{over}, at the end of which the recording was as large as it may be" if cause is Cause.SIZE else over

    def _check_build(self, instance: AttachedInstance, first_build: str) -> None:
        if instance.program.build_id != first_build:
            raise CaptureError(
                f"process {instance.target.pid} ({instance.target.name}) is another build than before (build ID "
                f"{instance.program.build_id or 'none'}): attach to it with another --variant; what was recorded is kept in "
                f"session {self.setting.session}"
            )

    def _await_another(self, instances: contextlib.ExitStack) -> AttachedInstance | None:
        """None when somebody asked for the end, or the duration is over.  One that has only just started is let settle, also
        where the plan does not ask for that: it may be a fork that has not become the program yet."""
        instances.close()  # the one that ended: everything of it has been read
        plan, end_ns = self.setting.plan, self.windows.end_ns
        told, pause_s = "", POLL_S
        while not end_ns or time.monotonic_ns() < end_ns:
            try:
                target = find_target(plan.finder)
                check_access(target)
                if target.age_s() >= max(SETTLED_S, plan.settle_s):
                    return instances.enter_context(self.profiler.attached(target, plan))
                pause_s = POLL_S
            except CaptureError as error:
                # None for a moment, or an old and a new one, is what a restart looks like.
                if str(error) != told and told:
                    self.setting.observer.told(str(error))
                told = str(error)
            asked = [(self.setting.stop.descriptor, Cause.ASKED)]
            if wait_for(asked, time.monotonic_ns() + round(pause_s * 1e9)) is Cause.ASKED:
                return None
            pause_s = min(_SLOWER * pause_s, SLOWEST_POLL_S)
        return None
