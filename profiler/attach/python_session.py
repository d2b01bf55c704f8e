"""A session that profiles a Python process which runs already: py-spy records its windows, one after the other.

Two of them cannot hold one process at a time, so a new one starts when the one before has written its file; what passes
meanwhile is recorded by neither, and told.  While one window is recorded the one before is read.
"""

from __future__ import annotations

import contextlib
import select
import signal
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from collectors.attach_target import check_access, find_target
from collectors.guard import GroupGuard
from collectors.host import host_facts
from collectors.pyspy import PySpyRecorder, PySpySettings, pyspy_perf_settings, pyspy_version, start_pyspy
from profiler.attach.instance import AttachedInstance, attached_instance
from profiler.attach.observer import AttachObserver
from profiler.attach.plan import AttachPlan, check_attach_plan, variant_of
from profiler.attach.reading import READING_IS_BEHIND, WindowReader, noted
from profiler.attach.stop_request import StopRequest
from profiler.attach.summary import AttachSummary, KeptWindow, kept_window, window_line
from profiler.attach.window import CpuReading, Edge, WindowTimes, read_cpu, read_cpu_again, window_outcome
from profiler.errors import CaptureError, FormatError, UsageError
from profiler.experiment.plan.call_graph_request import CallGraphRequest
from profiler.experiment.run.phase_check import check_phase
from profiler.experiment.run.run_recording import failed
from profiler.model.capture import Capture, empty_capture
from profiler.model.event import NON_IDLE_SAMPLES
from profiler.model.run import CaptureInfo, HostFacts, RunIdentity, RunMode, RunOutcome
from profiler.store.records import RunKey, SessionStart, SessionState
from profiler.store.store import Store
from symbolize.locate import Locator

PROFILER = "py-spy"
PYSPY_CPU = "py-spy cpu"
# For every sample the process is stopped, for up to a millisecond.
HIGHEST_FREQUENCY_HZ = 1000
TICK_S = 1.0
# py-spy writes its file by itself when its process ends; when a child of that runs on, it is told to.
ENDS_BY_ITSELF_S = 1.0
_TRIES = 2


class Cause(Enum):
    """Why a window ended.  TIME: it is over.  ASKED: Ctrl-C or a signal.  TARGET: the process ended.  PYSPY: it ended by
    itself."""

    TIME = ""
    ASKED = "the end was asked for"
    TARGET = "the process ended"
    PYSPY = "py-spy ended"


def python_session(
    plan: AttachPlan, has_native: bool, store: Store, stop: StopRequest, observer: AttachObserver
) -> AttachSummary:
    """Watches until the process ends, somebody asks for the end, or ``plan.duration_s`` has been recorded, gaps not counted;
    every window is in the store soon after its own end.  ``has_native``: also C, C++ and Rust frames.

    ``CaptureError``, ``UsageError``: what is to be profiled is not there, is not Python, or may not be profiled.
    """
    _check(plan)
    settings = PySpySettings(rate_hz=plan.frequency_hz, has_native=has_native)
    version = pyspy_version()
    target = find_target(plan.finder)
    check_access(target)
    with contextlib.ExitStack() as stack:
        unwound_by_pyspy = replace(plan, call_graph=CallGraphRequest("none"))
        instance = stack.enter_context(attached_instance(target, unwound_by_pyspy, version))
        instance = replace(instance, perf=pyspy_perf_settings(settings, version))
        directory = stack.enter_context(store.working_directory())
        guard = stack.enter_context(GroupGuard(polite=signal.SIGINT))
        # Whoever may not record is told so before a session begins.
        start_pyspy(settings, target.pid, directory / "probe", version, guard).abort()
        host = host_facts()
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        session = store.begin_session(SessionStart(started_at, host.hostname, plan.command, 0, has_rounds=True))
        state = SessionState.INTERRUPTED
        try:
            variant = plan.variant or variant_of(target.name)
            place = _Place(session, variant, plan, instance, host, settings, version, directory, guard)
            watch = _Watch(place, stop, observer)
            ending = watch.run(store)
            state = SessionState.INTERRUPTED if stop.is_asked and plan.duration_s else SessionState.FINISHED
        finally:
            store.finish_session(session, state)
    summary = AttachSummary(session, variant, ending, tuple(watch.windows), profiler=PROFILER)
    observer.ended(summary)
    return summary


def _check(plan: AttachPlan) -> None:
    check_attach_plan(plan)
    if plan.begin_at_ns:
        raise UsageError("a moment to begin goes with perf only: py-spy begins as soon as it has found the interpreter")
    if plan.frequency_hz > HIGHEST_FREQUENCY_HZ:
        raise UsageError(
            f"--frequency {plan.frequency_hz}: py-spy stops the process for every sample, so that {HIGHEST_FREQUENCY_HZ} per "
            "second are the most"
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """What all windows of a session have in common."""

    session: str
    variant: str
    plan: AttachPlan
    instance: AttachedInstance
    host: HostFacts
    settings: PySpySettings
    version: str
    directory: Path
    guard: GroupGuard

    def info(self, segment: _Segment, outcome: RunOutcome) -> CaptureInfo:
        number, instance = segment.number, self.instance
        return CaptureInfo(
            RunIdentity(
                self.session,
                self.variant,
                number,
                RunMode.PROFILED,
                number,
                instance=self.plan.instance or instance.target.instance,
            ),
            host=self.host,
            program=instance.program,
            perf=segment.recorder.perf,
            outcome=outcome,
            # Not its arguments: they may hold what is secret.
            command=(instance.program.path,),
            started_at=segment.started_at,
            phase=self.plan.phase,
        )


@dataclass(slots=True)
class _Segment:
    """A window that is being recorded.  ``last``: the latest reading of the CPU time in it."""

    number: int
    recorder: PySpyRecorder
    started_at: str
    begun_ns: int
    before: CpuReading
    last: CpuReading


@dataclass(frozen=True, slots=True)
class _PythonWindow:
    """A window whose py-spy has ended.  ``note``: what readers of its numbers must know, "" = nothing."""

    recorder: PySpyRecorder
    info: CaptureInfo
    locator: Locator
    note: str

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
class _Watch:
    """A session under way."""

    place: _Place
    stop: StopRequest
    observer: AttachObserver
    windows: list[KeptWindow] = field(default_factory=list)
    _number: int = 0
    _has_whole: bool = False
    _own_ends: int = 0
    _is_phase_checked: bool = False
    _ended_ns: int = 0
    _gaps: dict[int, int] = field(default_factory=dict)

    def run(self, store: Store) -> str:
        """How it ended, in one line."""
        target, plan = self.place.instance.target, self.place.plan
        most = max(1, round(plan.duration_s / plan.window_s)) if plan.duration_s else 0
        cause = Cause.TIME
        with WindowReader(store, self._kept) as reader:
            while cause in (Cause.TIME, Cause.PYSPY) and (not most or self._number < most):
                cause = self._record(reader)
            reader.wait()
        if cause is Cause.TARGET:
            return f"process {target.pid} ({target.name}) ended"
        return "ended as asked" if cause is Cause.ASKED else "ended after its duration"

    def _record(self, reader: WindowReader) -> Cause:
        """One window, handed over to be read."""
        if self._is_asked():
            return Cause.ASKED
        segment = self._begin()
        if segment is None:
            return Cause.TARGET
        try:
            cause = self._wait(segment)
            window = self._end(segment, cause)
        except BaseException:
            segment.recorder.abort()
            raise
        if reader.is_behind:
            self.observer.told(READING_IS_BEHIND)
        reader.submit(window)
        self._own_ends = self._own_ends + 1 if cause is Cause.PYSPY else 0
        if self._own_ends >= _TRIES:
            reader.wait()
            raise CaptureError(f"py-spy ended by itself {_TRIES} times in a row; the windows tell what it said")
        return cause

    def _is_asked(self) -> bool:
        return bool(select.select([self.stop.descriptor], [], [], 0)[0])

    def _begin(self) -> _Segment | None:
        """None when the process has ended."""
        place, number = self.place, self._number
        target = place.instance.target
        path = place.directory / f"window-{number}.speedscope.json"
        if not target.is_there():
            return None
        try:
            recorder = start_pyspy(place.settings, target.pid, path, place.version, place.guard)
        except CaptureError:
            if target.is_there():
                raise
            return None
        begun_ns, started_at = time.monotonic_ns(), datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            reading = read_cpu(target)
            if number:
                self._gaps[number] = begun_ns - self._ended_ns
            else:
                self.observer.attached(place.session)
                self.observer.begun(begun_ns)
                self._announce()
        except BaseException:
            recorder.abort()
            raise
        self._number += 1
        return _Segment(number, recorder, started_at, begun_ns, reading, reading)

    def _announce(self) -> None:
        """When the first window has begun."""
        place, target = self.place, self.place.instance.target
        frames = "Python and native frames" if place.settings.has_native else "Python frames"
        self.observer.told(
            f"session {place.session}: {place.variant} = process {target.pid} ({target.name}), with all it starts; windows of "
            f"{place.plan.window_s:g} s, {NON_IDLE_SAMPLES} at {place.settings.rate_hz} Hz, {frames}, read by {PROFILER} "
            f"{place.version}"
        )

    def _wait(self, segment: _Segment) -> Cause:
        """Until the window is over, or something else happens.  The CPU time is read now and again: a process takes it along
        when it ends."""
        until_ns = segment.begun_ns + round(self.place.plan.window_s * 1e9)
        descriptors = [self.stop.descriptor, self.place.instance.descriptor, segment.recorder.descriptor]
        while True:
            left_s = (until_ns - time.monotonic_ns()) / 1e9
            ready, _, _ = select.select(descriptors, [], [], max(0.0, min(TICK_S, left_s)))
            for descriptor, cause in zip(descriptors, (Cause.ASKED, Cause.TARGET, Cause.PYSPY), strict=True):
                if descriptor in ready:
                    return cause
            if left_s <= TICK_S:
                return Cause.TIME
            segment.last = read_cpu_again(self.place.instance.target, segment.last)

    def _end(self, segment: _Segment, cause: Cause) -> _PythonWindow:
        """The window, when its py-spy has written its file."""
        place, recorder = self.place, segment.recorder
        if cause is Cause.TARGET:
            select.select([recorder.descriptor], [], [], ENDS_BY_ITSELF_S)
        recorder.stop()
        self._ended_ns = ended_ns = time.monotonic_ns()
        after = self._reading_at_end(segment, cause)
        times = WindowTimes(segment.begun_ns, ended_ns, recorder.end(), cause.value, PYSPY_CPU)
        found = window_outcome(times, Edge(segment.before, None), Edge(after, None), place.plan)
        failure = found.note if not found.is_whole and self._has_whole else ""
        self._has_whole |= found.is_whole
        info = place.info(segment, replace(found.outcome, failure=failure))
        return _PythonWindow(recorder, info, place.instance.locator, "" if failure else found.note)

    def _reading_at_end(self, segment: _Segment, cause: Cause) -> CpuReading:
        """Of a process that has ended the CPU time of after ``segment.last`` is lost, unless its parent has not taken note
        yet."""
        target = self.place.instance.target
        reading = segment.last if cause is Cause.TARGET else read_cpu(target)
        return reading if cause is not Cause.TARGET and target.pid in reading.pids else read_cpu_again(target, segment.last)

    def _kept(self, key: RunKey, capture: Capture, locator: Locator) -> None:
        """Called when a window is in the store, by the thread that reads them."""
        info = capture.info
        advice = "py-spy could not read these stacks"
        window = kept_window(key, capture, self._gaps.pop(info.identity.round, -1), PYSPY_CPU, advice)
        self.windows.append(window)
        self.observer.told(window_line(window))
        self.observer.window_kept(window)
        if self.place.plan.phase and not self._is_phase_checked and not info.outcome.failure:
            check_phase(capture, self.place.plan.phase, locator)
            self._is_phase_checked = True
