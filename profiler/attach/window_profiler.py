"""What a session needs of the program that records its windows, perf or py-spy, and what that is told of the session."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from collectors.processes.guard import GroupGuard
from collectors.targets.attach_target import AttachTarget
from profiler.attach.instance import AttachedInstance
from profiler.attach.kept_windows import KeptWindows
from profiler.attach.observer import AttachObserver
from profiler.attach.plan import AttachPlan
from profiler.attach.stop_request import StopRequest
from profiler.attach.waiting import Cause
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, HostFacts, RunIdentity, RunMode, RunOutcome


@dataclass(frozen=True, slots=True)
class SessionSetting:
    """What all windows of a session have in common.  ``directory``: for raw recordings.  ``guard``: ends what records when
    slotscope is killed."""

    session: str
    variant: str
    plan: AttachPlan
    host: HostFacts
    directory: Path
    guard: GroupGuard
    stop: StopRequest
    observer: AttachObserver

    def info(self, instance: AttachedInstance, number: int, started_at: str, outcome: RunOutcome) -> CaptureInfo:
        """Of the window with this number, from 0."""
        name = self.plan.instance or instance.target.instance
        return CaptureInfo(
            RunIdentity(self.session, self.variant, number, RunMode.PROFILED, number, instance=name),
            host=self.host,
            program=instance.program,
            perf=instance.perf,
            outcome=outcome,
            # Not its arguments: they may hold what is secret.
            command=(instance.program.path,),
            started_at=started_at,
            phase=self.plan.phase,
        )

    def announce(self, instance: AttachedInstance, how: str) -> None:
        """Tells that the first window of a process has begun; ``how`` it is recorded."""
        target = instance.target
        belongs = f"all of cgroup {target.cgroup}" if target.cgroup else "with all it starts"
        self.observer.told(
            f"session {self.session}: {self.variant} = process {target.pid} ({target.name}), {belongs}; windows of "
            f"{self.plan.window_s:g} s, {how}"
        )


class ProcessWindows(Protocol):
    """Windows under way."""

    @property
    def end_ns(self) -> int:
        """When the session is to end (CLOCK_MONOTONIC), 0 = not before somebody asks, or the process ends."""
        ...

    def record(self, instance: AttachedInstance) -> Cause:
        """Windows of one process until something ends them; all of them are handed over to be read.  ``CaptureError``."""
        ...


class WindowProfiler(Protocol):
    """``name``: of the program.  ``polite``: the signal that asks it to end.  ``follows_another``: whether it goes on with the
    process that takes the place of one that ended."""

    @property
    def name(self) -> str: ...

    @property
    def polite(self) -> signal.Signals: ...

    @property
    def follows_another(self) -> bool: ...

    def attached(self, target: AttachTarget, plan: AttachPlan) -> AbstractContextManager[AttachedInstance]:
        """The process, and how it will be recorded.  ``CaptureError`` when it has ended."""
        ...

    def probe(self, instance: AttachedInstance, path: Path, guard: GroupGuard) -> None:
        """Attaches once and lets go.  ``CaptureError`` for whoever may not record.  ``path``: of a recording, not kept."""
        ...

    def windows(self, setting: SessionSetting, kept: KeptWindows) -> AbstractContextManager[ProcessWindows]:
        """At its end nothing records any more."""
        ...
