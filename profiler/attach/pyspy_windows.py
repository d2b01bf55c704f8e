"""Windows of a Python process that py-spy records, one after the other.

Two of them cannot hold one process at a time, so a new one starts when the one before has written its file; what passes
meanwhile is recorded by neither, and told.  While one window is recorded the one before is read.
"""

from __future__ import annotations

import contextlib
import select
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from collectors.processes.guard import GroupGuard
from collectors.profilers.pyspy import PySpyRecorder, PySpySettings, pyspy_perf_settings, start_pyspy
from collectors.targets.attach_target import AttachTarget
from profiler.attach.instance import AttachedInstance, attached_instance
from profiler.attach.kept_windows import KeptWindows
from profiler.attach.plan import AttachPlan
from profiler.attach.reading import noted
from profiler.attach.waiting import Cause, wait_for
from profiler.attach.window import CpuReading, Edge, WindowTimes, edge_at_end, read_cpu, read_cpu_again, window_outcome
from profiler.attach.window_profiler import SessionSetting
from profiler.errors import CaptureError, FormatError
from profiler.experiment.plan.call_graph_request import CallGraphRequest
from profiler.experiment.run.run_recording import failed
from profiler.model.capture import Capture, empty_capture
from profiler.model.event import NON_IDLE_SAMPLES
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo
from symbolize.locate import Locator

PYSPY_CPU = "py-spy cpu"
# py-spy writes its file by itself when its process ends; when a child of that runs on, it is told to.
ENDS_BY_ITSELF_S = 1.0
_TRIES = 2
_CUT_BY = {
    Cause.TIME: "",
    Cause.ASKED: "the end was asked for",
    Cause.TARGET: "the process ended",
    Cause.PROFILER: "py-spy ended",
}


@dataclass(frozen=True, slots=True)
class PySpy:
    """A ``WindowProfiler``.  ``version``: of py-spy."""

    settings: PySpySettings
    version: str
    name: str = "py-spy"
    polite: signal.Signals = signal.SIGINT
    follows_another: bool = False

    @contextlib.contextmanager
    def attached(self, target: AttachTarget, plan: AttachPlan) -> Iterator[AttachedInstance]:
        with attached_instance(target, replace(plan, call_graph=CallGraphRequest("none")), self.version) as instance:
            yield replace(instance, perf=pyspy_perf_settings(self.settings, self.version))

    def probe(self, instance: AttachedInstance, path: Path, guard: GroupGuard) -> None:
        start_pyspy(self.settings, instance.target.pid, path, self.version, guard).abort()

    @contextlib.contextmanager
    def windows(self, setting: SessionSetting, kept: KeptWindows) -> Iterator[_PySpyWindows]:
        yield _PySpyWindows(self, setting, kept)


@dataclass(frozen=True, slots=True)
class PySpyWindow:
    """A ``ReadableWindow`` whose py-spy has ended.  ``note``: what readers of its numbers must know, "" = nothing."""

    recorder: PySpyRecorder
    info: CaptureInfo
    locator: Locator
    note: str
    gap_ns: int
    cpu_metric: str = PYSPY_CPU
    loss_advice: str = "py-spy could not read these stacks"

    def capture(self) -> Capture:
        """What py-spy wrote; an empty capture that failed when it wrote nothing that can be read."""
        try:
            return noted(self.recorder.finish(self.info), self.note)
        except CaptureError as error:
            failure = str(error)
        except FormatError as error:
            failure = f"recording cannot be read: {error.reason}"
        return empty_capture(replace(self.info, outcome=failed(self.info.outcome, failure)))


@dataclass(slots=True)
class _Segment:
    """A window that is being recorded.  ``last``: the latest reading of the CPU time in it.  ``gap_ns``: see ``KeptWindow``."""

    number: int
    recorder: PySpyRecorder
    started_at: str
    begun_ns: int
    before: CpuReading
    last: CpuReading
    gap_ns: int


@dataclass(slots=True)
class _PySpyWindows:
    profiler: PySpy
    setting: SessionSetting
    kept: KeptWindows
    end_ns: int = 0
    _number: int = 0
    _own_ends: int = 0
    _ended_ns: int = 0

    def record(self, instance: AttachedInstance) -> Cause:
        """Until something ends them, or as many were recorded as the duration has; gaps do not count."""
        plan = self.setting.plan
        most = max(1, round(plan.duration_s / plan.window_s)) if plan.duration_s else 0
        cause = Cause.TIME
        while cause in (Cause.TIME, Cause.PROFILER) and (not most or self._number < most):
            cause = self._record_one(instance)
        return cause

    def _record_one(self, instance: AttachedInstance) -> Cause:
        """One window, handed over to be read."""
        if wait_for([(self.setting.stop.descriptor, Cause.ASKED)], 0) is Cause.ASKED:
            return Cause.ASKED
        segment = self._begin(instance)
        if segment is None:
            return Cause.TARGET
        try:
            cause = self._wait(segment, instance)
            window = self._end(segment, cause, instance)
        except BaseException:
            segment.recorder.abort()
            raise
        self.kept.submit(window)
        self._own_ends = self._own_ends + 1 if cause is Cause.PROFILER else 0
        if self._own_ends >= _TRIES:
            self.kept.wait()
            raise CaptureError(f"py-spy ended by itself {_TRIES} times in a row; the windows tell what it said")
        return cause

    def _begin(self, instance: AttachedInstance) -> _Segment | None:
        """None when the process has ended."""
        number, target, profiler = self._number, instance.target, self.profiler
        path = self.setting.directory / f"window-{number}.speedscope.json"
        if not target.is_there():
            return None
        try:
            recorder = start_pyspy(profiler.settings, target.pid, path, profiler.version, self.setting.guard)
        except CaptureError:
            if target.is_there():
                raise
            return None
        begun_ns, started_at = time.monotonic_ns(), datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            reading = read_cpu(target)
            if not number:
                self._tell(instance, begun_ns)
        except BaseException:
            recorder.abort()
            raise
        self._number += 1
        return _Segment(number, recorder, started_at, begun_ns, reading, reading, begun_ns - self._ended_ns if number else -1)

    def _tell(self, instance: AttachedInstance, begun_ns: int) -> None:
        """When the first window has begun."""
        settings = self.profiler.settings
        frames = "Python and native frames" if settings.has_native else "Python frames"
        self.setting.observer.attached(self.setting.session)
        self.setting.observer.begun(begun_ns)
        self.setting.announce(
            instance,
            f"{NON_IDLE_SAMPLES} at {settings.rate_hz} Hz, {frames}, read by {self.profiler.name} {self.profiler.version}",
        )

    def _wait(self, segment: _Segment, instance: AttachedInstance) -> Cause:
        """Until the window is over, or something else happens.  The CPU time is read now and again: a process takes it along
        when it ends."""

        def tick() -> None:
            segment.last = read_cpu_again(instance.target, segment.last)

        events = [
            (self.setting.stop.descriptor, Cause.ASKED),
            (instance.descriptor, Cause.TARGET),
            (segment.recorder.descriptor, Cause.PROFILER),
        ]
        return wait_for(events, segment.begun_ns + round(self.setting.plan.window_s * 1e9), tick)

    def _end(self, segment: _Segment, cause: Cause, instance: AttachedInstance) -> PySpyWindow:
        """The window, when its py-spy has written its file."""
        recorder, plan = segment.recorder, self.setting.plan
        if cause is Cause.TARGET:
            select.select([recorder.descriptor], [], [], ENDS_BY_ITSELF_S)
        recorder.stop()
        self._ended_ns = ended_ns = time.monotonic_ns()
        after = edge_at_end(instance.target, segment.last, cause is Cause.TARGET, plan, None)
        times = WindowTimes(segment.begun_ns, ended_ns, recorder.end(), _CUT_BY[cause], PYSPY_CPU)
        counted = self.kept.count(window_outcome(times, Edge(segment.before, None), after, plan))
        info = replace(self.setting.info(instance, segment.number, segment.started_at, counted.outcome), perf=recorder.perf)
        return PySpyWindow(recorder, info, instance.locator, counted.note, segment.gap_ns)
