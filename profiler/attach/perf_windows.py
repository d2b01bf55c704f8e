"""Windows that perf records: while one is recorded the one before is read, and the perf of the next one attaches."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path

from collectors.processes.guard import GroupGuard
from collectors.profilers.attached_perf import AttachedPerf, attach
from collectors.profilers.perf_record import PerfEnd
from collectors.targets.attach_target import AttachTarget
from profiler.attach.instance import AttachedInstance, attached_instance
from profiler.attach.kept_windows import KeptWindows
from profiler.attach.perf_window import PerfWindow
from profiler.attach.plan import AttachPlan
from profiler.attach.schedule import EARLIEST_ATTACH_NS, check_not_passed, edge_after
from profiler.attach.waiting import Cause, Event, wait_for
from profiler.attach.window import (
    CpuReading,
    Edge,
    WindowTimes,
    edge_at,
    edge_at_end,
    read_cpu,
    read_cpu_again,
    window_outcome,
)
from profiler.attach.window_profiler import SessionSetting
from profiler.errors import CaptureError
from profiler.experiment.run.run_recording import RunRecording
from profiler.model.quick_dataclass import dataclass

LEAST_LEAD_S = 0.4
# A window's raw recording, which stays until it is read: more is not written.
LARGEST_RECORDING_BYTES = 1 << 30
_MOST_OF_WINDOW = 0.8
_TRIES = 2
_CUT_BY = {
    Cause.TIME: "",
    Cause.ASKED: "the end was asked for",
    Cause.TARGET: "the process ended",
    Cause.PROFILER: "perf ended",
    Cause.SIZE: f"the recording reached {LARGEST_RECORDING_BYTES >> 30} GiB",
    Cause.REFUSED: "no other perf could attach",
}


@dataclass(frozen=True, slots=True)
class Perf:
    """A ``WindowProfiler``.  ``version``: of perf."""

    version: str
    name: str = "perf"
    polite: signal.Signals = signal.SIGTERM
    follows_another: bool = True

    def attached(self, target: AttachTarget, plan: AttachPlan) -> contextlib.AbstractContextManager[AttachedInstance]:
        return attached_instance(target, plan, self.version)

    def probe(self, instance: AttachedInstance, path: Path, guard: GroupGuard) -> None:
        attach(instance.perf, instance.target, path, guard).abort()
        path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def windows(self, setting: SessionSetting, kept: KeptWindows) -> Iterator[_PerfWindows]:
        with ThreadPoolExecutor(max_workers=1) as pages:
            windows = _PerfWindows(setting, kept, pages)
            try:
                yield windows
            finally:
                windows.abort()


@dataclass(frozen=True, slots=True)
class _Upcoming:
    """A perf that is attached and waits for the edge."""

    number: int
    perf: AttachedPerf
    path: Path


@dataclass(slots=True)
class _Segment:
    """A window that is being recorded.  ``edge_ns``: when it is to end.  ``last``: the latest reading of the CPU time in it.
    ``perf_ended_ns``: when perf was seen to have ended by itself, 0 = it was not.  ``gap_ns``: see ``KeptWindow``."""

    of: _Upcoming
    started_at: str
    begun_ns: int
    edge_ns: int
    before: Edge
    last: CpuReading
    gap_ns: int
    perf_ended_ns: int = 0


@dataclass(slots=True)
class _PerfWindows:
    """``pages``: fetches pages of metrics."""

    setting: SessionSetting
    kept: KeptWindows
    pages: ThreadPoolExecutor
    end_ns: int = 0
    _number: int = 0
    _lead_s: float = LEAST_LEAD_S
    _failures: int = 0
    _perfs: list[AttachedPerf] = field(default_factory=list)

    def abort(self) -> None:
        for perf in self._perfs:
            perf.abort()

    def record(self, instance: AttachedInstance) -> Cause:
        """Windows of one process, until something ends them."""
        begin_at_ns = 0 if self._number else self.setting.plan.begin_at_ns
        cause, upcoming = self._attach_in_time(instance, begin_at_ns)
        if upcoming is None:
            return cause
        segment: _Segment | None = self._begin(upcoming, instance, begin_at_ns)
        while segment is not None:
            try:
                cause, following = self._until_edge(segment, instance)
            except CaptureError:
                self._hand_over(segment, None, Cause.REFUSED, instance)
                raise
            segment = self._hand_over(segment, following, cause, instance)
        return cause

    def _attach_in_time(self, instance: AttachedInstance, begin_at_ns: int) -> tuple[Cause, _Upcoming | None]:
        """A perf that waits, the moment to begin having come; none when something else happened before, which is told."""
        events = self._events(instance)
        if begin_at_ns and (cause := wait_for(events, begin_at_ns - EARLIEST_ATTACH_NS)) is not Cause.TIME:
            return cause, None
        upcoming = self._attach(instance)
        if upcoming is None:
            return Cause.TARGET, None
        check_not_passed(begin_at_ns, time.monotonic_ns())
        if not upcoming.number:
            self.setting.observer.attached(self.setting.session)
        if begin_at_ns:
            cause = wait_for([*events, (upcoming.perf.descriptor, Cause.PROFILER)], begin_at_ns)
            if cause is Cause.PROFILER:
                raise CaptureError("perf ended by itself before the first window began")
            if cause is not Cause.TIME:
                self._drop(upcoming)
                return cause, None
        return Cause.TIME, upcoming

    def _begin(self, upcoming: _Upcoming, instance: AttachedInstance, begin_at_ns: int) -> _Segment:
        """The first window of a process.  ``begin_at_ns``: 0 = now."""
        setting, begun_ns = self.setting, upcoming.perf.begin()
        planned_ns = begin_at_ns or begun_ns
        if not self.end_ns and setting.plan.duration_s:
            self.end_ns = planned_ns + round(setting.plan.duration_s * 1e9)
        segment = self._segment(upcoming, planned_ns, begun_ns, edge_at(read_cpu(instance.target), setting.plan, self.pages))
        if not upcoming.number:
            setting.observer.begun(begun_ns)
        setting.announce(instance, _how(instance))
        return segment

    def _segment(self, upcoming: _Upcoming, planned_ns: int, begun_ns: int, before: Edge, gap_ns: int = -1) -> _Segment:
        edge_ns = edge_after(planned_ns, begun_ns, round(self.setting.plan.window_s * 1e9), self.end_ns)
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        return _Segment(upcoming, started_at, begun_ns, edge_ns, before, before.reading, gap_ns)

    def _until_edge(self, segment: _Segment, instance: AttachedInstance) -> tuple[Cause, _Upcoming | None]:
        """Waits, and has the next perf attached in time for the edge; in the last window when perf does not last as long as
        the window."""
        edge_ns, is_last = segment.edge_ns, segment.edge_ns == self.end_ns
        lead_s = 0.0 if is_last else min(self._lead_s, _MOST_OF_WINDOW * self.setting.plan.window_s)
        cause = self._wait(segment, instance, edge_ns - round(lead_s * 1e9))
        if cause in (Cause.ASKED, Cause.TARGET) or (is_last and cause is Cause.TIME):
            return cause, None
        upcoming = self._attach(instance)
        if upcoming is None:
            return Cause.TARGET, None
        if is_last and time.monotonic_ns() >= edge_ns:
            self._drop(upcoming)
            return cause, None
        return (self._wait(segment, instance, edge_ns) if cause is Cause.TIME else cause), upcoming

    def _attach(self, instance: AttachedInstance) -> _Upcoming | None:
        """None when the process has ended."""
        path, started = self.setting.directory / f"window-{self._number}.perf.data", time.monotonic()
        try:
            perf = attach(instance.perf, instance.target, path, self.setting.guard)
        except CaptureError:
            if instance.target.is_there():
                raise
            return None
        self._perfs.append(perf)
        self._lead_s = max(LEAST_LEAD_S, 2.0 * (time.monotonic() - started))
        self._number += 1
        return _Upcoming(self._number - 1, perf, path)

    def _drop(self, upcoming: _Upcoming) -> None:
        """No window follows."""
        upcoming.perf.abort()
        self._perfs.remove(upcoming.perf)

    def _events(self, instance: AttachedInstance) -> list[Event]:
        return [(self.setting.stop.descriptor, Cause.ASKED), (instance.descriptor, Cause.TARGET)]

    def _wait(self, segment: _Segment, instance: AttachedInstance, until_ns: int) -> Cause:
        """Until then, or until something else happens.  The CPU time is read now and again: a process takes it along when it
        ends."""

        def tick() -> Cause | None:
            segment.last = read_cpu_again(instance.target, segment.last)
            path = segment.of.path
            return Cause.SIZE if path.exists() and path.stat().st_size > LARGEST_RECORDING_BYTES else None

        cause = wait_for([*self._events(instance), (segment.of.perf.descriptor, Cause.PROFILER)], until_ns, tick)
        if cause is Cause.PROFILER:
            segment.perf_ended_ns = time.monotonic_ns()
        return cause

    def _hand_over(
        self, segment: _Segment, upcoming: _Upcoming | None, cause: Cause, instance: AttachedInstance
    ) -> _Segment | None:
        """Ends a window and begins the next one, if there is to be one; what was recorded goes to be read."""
        ended_ns = segment.of.perf.pause() or segment.perf_ended_ns or time.monotonic_ns()
        following = None
        begun_ns = upcoming.perf.begin() if upcoming is not None and cause not in (Cause.TARGET, Cause.ASKED) else 0
        after = edge_at_end(instance.target, segment.last, cause is Cause.TARGET, self.setting.plan, self.pages)
        if upcoming is not None and begun_ns:
            planned_ns = segment.edge_ns if cause is Cause.TIME else begun_ns
            following = self._segment(upcoming, planned_ns, begun_ns, after, begun_ns - ended_ns)
        elif upcoming is not None:
            self._drop(upcoming)
        end, perf_ns = segment.of.perf.finish()
        self._perfs.remove(segment.of.perf)
        standing = "the process stood still, stopped by a signal or a debugger" if instance.target.is_stopped() else ""
        cut_by = ": ".join(filter(None, (_CUT_BY[cause] or standing, end.failure)))
        self._keep(segment, after, WindowTimes(segment.begun_ns, ended_ns, perf_ns, cut_by), end, instance)
        self._count_failures(end, cause)
        return following

    def _keep(self, segment: _Segment, after: Edge, times: WindowTimes, end: PerfEnd, instance: AttachedInstance) -> None:
        counted = self.kept.count(window_outcome(times, segment.before, after, self.setting.plan), end.failure)
        info = self.setting.info(instance, segment.of.number, segment.started_at, counted.outcome)
        recording = RunRecording(segment.of.path, segment.of.perf.arguments, end.messages)
        self.kept.submit(PerfWindow(recording, info, instance.locator, counted.note, segment.begun_ns, segment.gap_ns))

    def _count_failures(self, end: PerfEnd, cause: Cause) -> None:
        self._failures = self._failures + 1 if cause is Cause.PROFILER else 0
        if self._failures >= _TRIES:
            raise CaptureError(f"perf ended by itself {_TRIES} times in a row: {end.failure or 'it gave no reason'}")


def _how(instance: AttachedInstance) -> str:
    perf = instance.perf
    size = f",{perf.dump_bytes}" if perf.dump_bytes else ""
    return f"{perf.event} at {perf.frequency_hz} Hz, call graph {perf.call_graph}{size} ({perf.call_graph_reason})"
