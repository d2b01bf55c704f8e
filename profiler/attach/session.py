"""A session that profiles a process which runs already: window after window, until it ends or somebody asks for the end.

While one window is recorded the one before is read, and the perf of the next one attaches.
"""

from __future__ import annotations

import contextlib
import select
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from collectors.attach_target import check_access, find_target
from collectors.attached_perf import AttachedPerf, attach
from collectors.guard import GroupGuard
from collectors.host import host_facts
from collectors.perf_record import PerfEnd, perf_version
from collectors.prometheus import fetch_page
from profiler.attach.begin import EARLIEST_ATTACH_S, check_not_passed
from profiler.attach.instance import AttachedInstance, attached_instance
from profiler.attach.observer import AttachObserver
from profiler.attach.plan import AttachPlan, check_attach_plan, variant_of
from profiler.attach.reading import READING_IS_BEHIND, WindowReader, WindowRecording, recording_path
from profiler.attach.stop_request import StopRequest
from profiler.attach.summary import AttachSummary, KeptWindow, kept_window, window_line
from profiler.attach.window import (
    PERF_CPU,
    CpuReading,
    Edge,
    WindowTimes,
    edge_at,
    read_cpu,
    read_cpu_again,
    window_outcome,
)
from profiler.errors import CaptureError
from profiler.experiment.run.phase_check import check_phase
from profiler.experiment.run.preparation import check_frequency
from profiler.experiment.run.run_recording import RunRecording
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo, HostFacts, RunIdentity, RunMode, RunOutcome
from profiler.store.records import RunKey, SessionStart, SessionState
from profiler.store.store import Store
from symbolize.locate import Locator

TICK_S = 1.0
# How often another process is looked for: at first, and after a while, since docker or systemctl may be run each time.
POLL_S = 0.25
SLOWEST_POLL_S = 2.0
SETTLED_S = 0.5
LEAST_LEAD_S = 0.4
# A window's raw recording, which stays until it is read: more is not written.
LARGEST_RECORDING_BYTES = 1 << 30
_MOST_OF_WINDOW = 0.8
_MOST_LATE = 0.02
_TRIES = 2
_LAST_STEP_NS = 2_000_000
_SLOWER = 1.25


class Cause(Enum):
    """Why a wait ended.  TIME: it is over.  ASKED: Ctrl-C or a signal.  TARGET: the process ended.  PERF: it ended by itself.
    SIZE: the recording is as large as it may be.  REFUSED: the next perf could not attach."""

    TIME = ""
    ASKED = "the end was asked for"
    TARGET = "the process ended"
    PERF = "perf ended"
    SIZE = f"the recording reached {LARGEST_RECORDING_BYTES >> 30} GiB"
    REFUSED = "no other perf could attach"


# What is said at the end of a session.  The last two end it when no time is left for another window.
_ENDINGS = {
    Cause.TIME: "ended after its duration",
    Cause.ASKED: "ended as asked",
    Cause.PERF: "ended after its duration, at the end of which perf had ended by itself",
    Cause.SIZE: "ended after its duration, at the end of which the recording was as large as it may be",
}


def attach_session(plan: AttachPlan, store: Store, stop: StopRequest, observer: AttachObserver) -> AttachSummary:
    """Watches until the end; every window is in the store soon after its own.  Several processes may do so at the same time, in
    one store, too.

    ``CaptureError``, ``UsageError``: what is to be profiled is not there, may not be profiled, or came back as another build;
    the moment to begin has passed.
    """
    check_attach_plan(plan)
    check_frequency(plan.frequency_hz)
    version = perf_version()
    target = find_target(plan.finder)
    check_access(target)
    if plan.pages:
        page = fetch_page(plan.metrics_address, plan.pages)
        observer.told(
            f"{plan.metrics_address} answers, {sum(map(bool, (found.counts for found in page.counters)))} metrics found"
        )
    with contextlib.ExitStack() as stack:
        instances = stack.enter_context(contextlib.ExitStack())
        instance = instances.enter_context(attached_instance(target, plan, version))
        directory = stack.enter_context(store.working_directory())
        guard = stack.enter_context(GroupGuard())
        # Whoever may not record is told so before a session begins.
        attach(instance.perf, target, directory / "probe", guard).abort()
        (directory / "probe").unlink(missing_ok=True)
        check_not_passed(plan.begin_at_ns, time.monotonic_ns())
        host = host_facts()
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        session = store.begin_session(SessionStart(started_at, host.hostname, plan.command, 0, has_rounds=True))
        state = SessionState.INTERRUPTED
        try:
            variant = plan.variant or variant_of(target.name)
            watch = _Watch(session, variant, plan, store, stop, observer, host, version, directory, guard)
            ending = watch.run(instance, instances)
            state = SessionState.INTERRUPTED if stop.is_asked and plan.duration_s else SessionState.FINISHED
        finally:
            store.finish_session(session, state)
    files = f"/proc/{target.pid}/root" if instance.has_own_files and target.is_there() else ""
    summary = AttachSummary(session, variant, ending, tuple(watch.windows), files)
    observer.ended(summary)
    return summary


@dataclass(frozen=True, slots=True)
class _Upcoming:
    """A perf that is attached and waits for the edge."""

    number: int
    perf: AttachedPerf
    path: Path


@dataclass(slots=True)
class _Segment:
    """A window that is being recorded.  ``edge_ns``: when it is to end.  ``last``: the latest reading of the CPU time in it.
    ``perf_ended_ns``: when perf was seen to have ended by itself, 0 = it was not."""

    number: int
    perf: AttachedPerf
    path: Path
    started_at: str
    begun_ns: int
    edge_ns: int
    before: Edge
    last: CpuReading
    perf_ended_ns: int = 0


@dataclass(slots=True)
class _Watch:
    """A session under way."""

    session: str
    variant: str
    plan: AttachPlan
    store: Store
    stop: StopRequest
    observer: AttachObserver
    host: HostFacts
    version: str
    directory: Path
    guard: GroupGuard
    windows: list[KeptWindow] = field(default_factory=list)
    _number: int = 0
    _has_whole: bool = False
    _end_ns: int = 0
    _lead_s: float = LEAST_LEAD_S
    _perf_failures: int = 0
    _is_phase_checked: bool = False
    _gaps: dict[int, int] = field(default_factory=dict)
    _perfs: list[AttachedPerf] = field(default_factory=list)

    def run(self, instance: AttachedInstance, instances: contextlib.ExitStack) -> str:
        """How it ended, in one line.  ``instances``: holds the instance, and is closed before it holds the next one."""
        with (
            WindowReader(self.store, self._kept) as reader,
            ThreadPoolExecutor(max_workers=1) as pages,
        ):
            try:
                return self._run(instance, instances, reader, pages)
            finally:
                for perf in self._perfs:
                    perf.abort()

    def _run(
        self, instance: AttachedInstance, instances: contextlib.ExitStack, reader: WindowReader, pages: ThreadPoolExecutor
    ) -> str:
        first_build = instance.program.build_id
        while True:
            try:
                cause = self._record(_Recorder(instance, reader, pages))
            except CaptureError:
                reader.wait()  # what was recorded is kept
                raise
            reader.wait()
            if cause is not Cause.TARGET:
                return _ENDINGS[cause]
            ended = f"process {instance.target.pid} ({instance.target.name}) ended"
            if self.plan.finder.pid or self.plan.instance:
                return ended
            self.observer.told(f"{ended}; waiting for another {self.plan.finder}")
            following = self._await_another(instances)
            if following is None:
                return f"{ended}, and no other took its place"
            instance = following
            self._check_build(instance, first_build)

    def _check_build(self, instance: AttachedInstance, first_build: str) -> None:
        if instance.program.build_id != first_build:
            raise CaptureError(
                f"process {instance.target.pid} ({instance.target.name}) is another build than before (build ID "
                f"{instance.program.build_id or 'none'}): attach to it with another --variant; what was recorded is kept in "
                f"session {self.session}"
            )

    def _await_another(self, instances: contextlib.ExitStack) -> AttachedInstance | None:
        """None when somebody asked for the end, or the duration is over.  One that has only just started is let settle: it may
        be a fork that has not become the program yet."""
        instances.close()  # the one that ended: everything of it has been read
        told, pause_s = "", POLL_S
        while not self._end_ns or time.monotonic_ns() < self._end_ns:
            try:
                target = find_target(self.plan.finder)
                check_access(target)
                if target.age_s() >= SETTLED_S:
                    return instances.enter_context(attached_instance(target, self.plan, self.version))
                pause_s = POLL_S
            except CaptureError as error:
                # None for a moment, or an old and a new one, is what a restart looks like.
                if str(error) != told and told:
                    self.observer.told(str(error))
                told = str(error)
            if select.select([self.stop.descriptor], [], [], pause_s)[0]:
                return None
            pause_s = min(_SLOWER * pause_s, SLOWEST_POLL_S)
        return None

    def _announce(self, instance: AttachedInstance) -> None:
        """When the first window has begun."""
        perf, target = instance.perf, instance.target
        size = f",{perf.dump_bytes}" if perf.dump_bytes else ""
        belongs = f"all of cgroup {target.cgroup}" if target.cgroup else "with all it starts"
        self.observer.told(
            f"session {self.session}: {self.variant} = process {target.pid} ({target.name}), {belongs}; windows of "
            f"{self.plan.window_s:g} s, {perf.event} at {perf.frequency_hz} Hz, call graph {perf.call_graph}{size} "
            f"({perf.call_graph_reason})"
        )

    def _record(self, recorder: _Recorder) -> Cause:
        """Windows of one process, until something ends them."""
        planned_ns = 0 if self._number else self.plan.begin_at_ns
        early = self._wait_until(planned_ns - round(EARLIEST_ATTACH_S * 1e9), recorder.instance) if planned_ns else None
        upcoming = self._attach(recorder.instance) if early is None else None
        if upcoming is None:
            return early or Cause.TARGET
        if planned_ns:
            check_not_passed(planned_ns, time.monotonic_ns())
        is_first = upcoming.number == 0
        if is_first:
            self.observer.attached(self.session)
        early = self._wait_until(planned_ns, recorder.instance, upcoming.perf) if planned_ns else None
        if early is not None:
            self._drop(upcoming)
            return early
        begun_ns = upcoming.perf.begin()
        if not self._end_ns and self.plan.duration_s:
            self._end_ns = (planned_ns or begun_ns) + round(self.plan.duration_s * 1e9)
        segment: _Segment | None = self._segment(upcoming, planned_ns or begun_ns, begun_ns, recorder.edge(self.plan))
        if is_first:
            self.observer.begun(begun_ns)
        self._announce(recorder.instance)
        cause = Cause.TIME
        while segment is not None:
            try:
                cause, upcoming = self._until_edge(segment, recorder.instance)
            except CaptureError:
                self._hand_over(segment, None, Cause.REFUSED, recorder)
                raise
            segment = self._hand_over(segment, upcoming, cause, recorder)
        return cause

    def _wait_until(self, moment_ns: int, instance: AttachedInstance, perf: AttachedPerf | None = None) -> Cause | None:
        """Until then, or until something else happens; None when nothing did."""
        descriptors = [self.stop.descriptor, instance.descriptor, *((perf.descriptor,) if perf is not None else ())]
        ready: list[int] = []
        while not ready and (left_ns := moment_ns - time.monotonic_ns()) > 0:
            # In ever shorter steps: the kernel may make a wait 0.5 % longer, up to 0.1 s (select(2)).
            ready, _, _ = select.select(descriptors, [], [], left_ns / (2e9 if left_ns > _LAST_STEP_NS else 1e9))
        if not ready:
            return None
        if perf is not None and perf.descriptor in ready:
            raise CaptureError("perf ended by itself before the first window began")
        return Cause.ASKED if self.stop.descriptor in ready else Cause.TARGET

    def _segment(self, upcoming: _Upcoming, planned_ns: int, begun_ns: int, before: Edge) -> _Segment:
        """``planned_ns``: when it should have begun: later edges stay where they were unless it was much too late."""
        window_ns = round(self.plan.window_s * 1e9)
        edge_ns = window_ns + (planned_ns if begun_ns - planned_ns <= _MOST_LATE * window_ns else begun_ns)
        if self._end_ns and edge_ns > self._end_ns - window_ns // 2:
            edge_ns = self._end_ns
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        return _Segment(upcoming.number, upcoming.perf, upcoming.path, started_at, begun_ns, edge_ns, before, before.reading)

    def _until_edge(self, segment: _Segment, instance: AttachedInstance) -> tuple[Cause, _Upcoming | None]:
        """Waits, and has the next perf attached in time for the edge; in the last window when perf does not last as long as
        the window."""
        edge_ns, is_last = segment.edge_ns, segment.edge_ns == self._end_ns
        lead_s = 0.0 if is_last else min(self._lead_s, _MOST_OF_WINDOW * self.plan.window_s)
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
        path, started = recording_path(self.directory, self._number), time.monotonic()
        try:
            perf = attach(instance.perf, instance.target, path, self.guard)
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

    def _wait(self, segment: _Segment, instance: AttachedInstance, until_ns: int) -> Cause:
        """Until then, or until something else happens.  The CPU time is read now and again: a process takes it along when it
        ends."""
        descriptors = [self.stop.descriptor, instance.descriptor, segment.perf.descriptor]
        while True:
            left_s = (until_ns - time.monotonic_ns()) / 1e9
            ready, _, _ = select.select(descriptors, [], [], max(0.0, min(TICK_S, left_s)))
            for descriptor, cause in zip(descriptors, (Cause.ASKED, Cause.TARGET, Cause.PERF), strict=True):
                if descriptor in ready:
                    if cause is Cause.PERF:
                        segment.perf_ended_ns = time.monotonic_ns()
                    return cause
            if left_s <= TICK_S:
                return Cause.TIME
            segment.last = read_cpu_again(instance.target, segment.last)
            if segment.path.exists() and segment.path.stat().st_size > LARGEST_RECORDING_BYTES:
                return Cause.SIZE

    def _hand_over(self, segment: _Segment, upcoming: _Upcoming | None, cause: Cause, recorder: _Recorder) -> _Segment | None:
        """Ends a window and begins the next one, if there is to be one; what was recorded goes to be read."""
        ended_ns = segment.perf.pause() or segment.perf_ended_ns or time.monotonic_ns()
        following = None
        begun_ns = upcoming.perf.begin() if upcoming is not None and cause not in (Cause.TARGET, Cause.ASKED) else 0
        after = recorder.edge_after(segment.last, cause is Cause.TARGET, self.plan)
        if upcoming is not None and begun_ns:
            planned_ns = segment.edge_ns if cause is Cause.TIME else begun_ns
            following = self._segment(upcoming, planned_ns, begun_ns, after)
            self._gaps[following.number] = begun_ns - ended_ns
        elif upcoming is not None:
            self._drop(upcoming)
        end, perf_ns = segment.perf.finish()
        self._perfs.remove(segment.perf)
        cut_by = cause.value if not end.failure else f"{cause.value}: {end.failure}" if cause.value else end.failure
        times = WindowTimes(segment.begun_ns, ended_ns, perf_ns, cut_by)
        found = window_outcome(times, segment.before, after, self.plan)
        failure = end.failure or (found.note if not found.is_whole and self._has_whole else "")
        self._has_whole |= found.is_whole and not end.failure
        info = self._info(segment, recorder.instance, replace(found.outcome, failure=failure))
        recording = RunRecording(segment.path, segment.perf.arguments, end.messages)
        if recorder.reader.is_behind:
            self.observer.told(READING_IS_BEHIND)
        recorder.reader.submit(
            WindowRecording(recording, info, recorder.instance.locator, "" if failure else found.note, segment.begun_ns)
        )
        self._count_failures(end, cause)
        return following

    def _count_failures(self, end: PerfEnd, cause: Cause) -> None:
        self._perf_failures = self._perf_failures + 1 if cause is Cause.PERF else 0
        if self._perf_failures >= _TRIES:
            raise CaptureError(f"perf ended by itself {_TRIES} times in a row: {end.failure or 'it gave no reason'}")

    def _info(self, segment: _Segment, instance: AttachedInstance, outcome: RunOutcome) -> CaptureInfo:
        number, name = segment.number, self.plan.instance or instance.target.instance
        return CaptureInfo(
            RunIdentity(self.session, self.variant, number, RunMode.PROFILED, number, instance=name),
            host=self.host,
            program=instance.program,
            perf=instance.perf,
            outcome=outcome,
            # Not its arguments: they may hold what is secret.
            command=(instance.program.path,),
            started_at=segment.started_at,
            phase=self.plan.phase,
        )

    def _kept(self, key: RunKey, capture: Capture, locator: Locator) -> None:
        """Called when a window is in the store, by the thread that reads them."""
        info = capture.info
        advice = "lower --frequency, or another --call-graph"
        window = kept_window(key, capture, self._gaps.pop(info.identity.round, -1), PERF_CPU, advice)
        self.windows.append(window)
        self.observer.told(window_line(window))
        self.observer.window_kept(window)
        if self.plan.phase and not self._is_phase_checked and not info.outcome.failure:
            check_phase(capture, self.plan.phase, locator)
            self._is_phase_checked = True


@dataclass(frozen=True, slots=True)
class _Recorder:
    """What windows of one process are recorded with.  ``pages``: fetches pages of metrics."""

    instance: AttachedInstance
    reader: WindowReader
    pages: ThreadPoolExecutor

    def edge(self, plan: AttachPlan) -> Edge:
        return edge_at(read_cpu(self.instance.target), plan, self.pages)

    def edge_after(self, last: CpuReading, is_gone: bool, plan: AttachPlan) -> Edge:
        """Of a process that has ended the CPU time of after ``last`` is lost, unless its parent has not taken note yet."""
        target = self.instance.target
        reading = last if is_gone else read_cpu(target)
        if is_gone or target.pid not in reading.pids:
            return Edge(read_cpu_again(target, last), None)
        return edge_at(reading, plan, self.pages)
