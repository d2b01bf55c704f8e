"""One run of a service: started, awaited, warmed up, measured while it is under load, and stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from collectors.disturbance import disturbances, host_activity
from collectors.metrics import read_metrics
from collectors.perf_record import PerfRecorder, start_recording
from collectors.perf_stat import PerfCounter, start_counting
from collectors.process_group import GroupCommand, GroupProcess, ProcessGroups, output_tail
from collectors.process_times import all_processes, tree
from collectors.prometheus import MetricsPage, fetch_page, page_metrics
from collectors.service import (
    ServiceFailure,
    Window,
    await_ready,
    check_nobody_answers,
    finish_load,
    stop_service,
    warm_up,
    watch_window,
)
from profiler.errors import CaptureError
from profiler.experiment.arm_metrics import command_metrics
from profiler.experiment.arms import ExperimentArm
from profiler.experiment.executor import (
    OUTPUT_NAME,
    RAW_NAME,
    RunRecording,
    disturbed,
    drop_caches,
    failed,
    identity_of,
    recorded_capture,
    run_before,
    run_info,
    strayed,
)
from profiler.experiment.experiment_plan import PlanLoad, cpu_per_request
from profiler.experiment.preparation import Preparation, PreparedArm
from profiler.experiment.schedule import ScheduledRun
from profiler.model.capture import Capture, empty_capture
from profiler.model.run import CaptureInfo, Metric, RunMode, RunOutcome
from symbolize.locate import Locator

LOAD_OUTPUT_NAME = "load-output"
_Perf = PerfRecorder | PerfCounter


@dataclass(frozen=True, slots=True)
class _Measured:
    """A run so far: what it reports, and what perf recorded of it, None for a plain run or one that failed before."""

    outcome: RunOutcome
    recording: RunRecording | None = None


@dataclass(frozen=True, slots=True)
class ServiceExecutor:
    """Runs services under their arm's load.  ``directory``: for outputs and the recording.  ``arms``: by label."""

    preparation: Preparation
    directory: Path
    locator: Locator
    arms: Mapping[str, ExperimentArm]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def raw_recording(self) -> Path:
        return self.directory / RAW_NAME

    def execute(self, session: str, scheduled: ScheduledRun, arm: PreparedArm) -> Capture:
        self.raw_recording.unlink(missing_ok=True)
        plan = self.preparation.plan
        failure = run_before(plan.before)
        info = run_info(self.preparation, identity_of(session, scheduled, arm), arm, self.now())
        if failure:
            return empty_capture(replace(info, outcome=RunOutcome(failure=failure)))
        if plan.drop_caches:
            drop_caches()
        before = host_activity()
        measured = self._measured(info, self.arms[arm.name])
        after = host_activity()
        info = replace(info, outcome=measured.outcome)
        if measured.recording is None:
            return disturbed(empty_capture(info), disturbances(before, after))
        capture = recorded_capture(measured.recording, info, self.locator)
        return disturbed(capture, (*disturbances(before, after), *strayed(capture, plan.cpus)))

    def _measured(self, info: CaptureInfo, arm: ExperimentArm) -> _Measured:
        load = arm.load
        assert load is not None
        output = self.directory / OUTPUT_NAME
        output.write_bytes(b"")
        service = GroupCommand(info.command, output, arm.arm.environment, self.preparation.plan.cpus)
        measured = _Measured(RunOutcome())
        try:
            check_nobody_answers(load.ready)
            with ProcessGroups() as groups:
                run = _ServiceRun(groups, groups.start(service), arm, load, self)
                await_ready(run.service, load.ready)
                run.warm_up()
                measured = run.under_load(info)
                if measured.outcome.is_valid:
                    stop_service(groups, run.service, load.stop_signal, load.stop_timeout_s)
        except ServiceFailure as error:
            measured = replace(measured, outcome=failed(measured.outcome, str(error)))
        outcome = replace(measured.outcome, output_tail=output_tail(output))
        return replace(measured, outcome=self._with_output_metrics(outcome))

    def _with_output_metrics(self, outcome: RunOutcome) -> RunOutcome:
        """What the service itself printed; all of it is there when it has stopped."""
        if not outcome.is_valid:
            return outcome
        try:
            found = read_metrics(self.preparation.plan.metrics, self.directory / OUTPUT_NAME)
        except CaptureError as error:
            return failed(outcome, str(error))
        return replace(outcome, metrics=(*found, *outcome.metrics))


@dataclass(frozen=True, slots=True)
class _ServiceRun:
    """A service that runs."""

    groups: ProcessGroups
    service: GroupProcess
    arm: ExperimentArm
    load: PlanLoad
    executor: ServiceExecutor

    def warm_up(self) -> None:
        """Load again and again until the time is over."""
        until = time.monotonic() + self.load.warmup_s
        while self.load.warmup_s and time.monotonic() < until:
            if not warm_up(self.groups, self.service, self._start_load(), until):
                return

    def under_load(self, info: CaptureInfo) -> _Measured:
        """The window.  ``ServiceFailure`` when service or load fail; what only spoils a number is in the outcome."""
        pages = self._page()
        attached = self._attach(info)
        try:
            load = self._start_load()
            limit_s = self.executor.preparation.plan.timeout_s
            window = watch_window(self.service, load, self.load.window_s, limit_s)
            if attached is not None:
                attached.stop()
            outcome = RunOutcome(wall_ns=window.wall_ns, user_ns=window.user_ns, system_ns=window.system_ns)
            outcome = self._with_page_metrics(outcome, pages)
            measured = self._finished(outcome, attached)
        except BaseException:
            if attached is not None:
                attached.abort()
            raise
        finish_load(load, was_asked=bool(self.load.window_s), timeout_s=self.load.stop_timeout_s)
        return replace(measured, outcome=self._with_load_metrics(measured.outcome, window))

    def _start_load(self) -> GroupProcess:
        output = self.executor.directory / LOAD_OUTPUT_NAME
        return self.groups.start(GroupCommand(self.arm.load_command, output, self.arm.arm.environment))

    def _attach(self, info: CaptureInfo) -> _Perf | None:
        """To all processes that the service has, whose later threads and children follow."""
        first, *others = [status.pid for status in tree((self.service.pid,), all_processes())] or [self.service.pid]
        if info.identity.mode is RunMode.PROFILED:
            return start_recording(info.perf, first, self.executor.raw_recording, others)
        stats = self.arm.metrics.stats
        return start_counting(stats, (first, *others)) if stats else None

    def _finished(self, outcome: RunOutcome, attached: _Perf | None) -> _Measured:
        if isinstance(attached, PerfCounter):
            try:
                return _Measured(replace(outcome, metrics=(*outcome.metrics, *attached.finish())))
            except CaptureError as error:
                return _Measured(failed(outcome, str(error)))
        if isinstance(attached, PerfRecorder):
            end = attached.finish()
            recording = RunRecording(self.executor.raw_recording, attached.arguments, end.messages)
            return _Measured(failed(outcome, end.failure), recording)
        return _Measured(outcome)

    def _page(self) -> MetricsPage | None:
        pages = self.arm.metrics.pages
        try:
            return fetch_page(self.load.metrics, pages) if pages else None
        except CaptureError as error:
            raise ServiceFailure(str(error)) from None

    def _with_page_metrics(self, outcome: RunOutcome, before: MetricsPage | None) -> RunOutcome:
        after = self._page()
        if before is None or after is None:
            return outcome
        try:
            found = page_metrics(self.arm.metrics.pages, before, after)
        except CaptureError as error:
            return failed(outcome, str(error))
        return replace(outcome, metrics=(*outcome.metrics, *found))

    def _with_load_metrics(self, outcome: RunOutcome, window: Window) -> RunOutcome:
        """Read in the load's output and by commands, while the service still runs."""
        if not outcome.is_valid:
            return outcome
        try:
            found = read_metrics(self.arm.metrics.load_output, self.executor.directory / LOAD_OUTPUT_NAME)
            found += self._cpu_per_request(found, window)
            found += command_metrics(self.arm.metrics.commands, self.executor.directory)
        except CaptureError as error:
            return failed(outcome, str(error))
        return replace(outcome, metrics=(*outcome.metrics, *found))

    def _cpu_per_request(self, found: tuple[Metric, ...], window: Window) -> tuple[Metric, ...]:
        if not self.load.requests:
            return ()
        requests = next(metric.value for metric in found if metric.name == self.load.requests)
        if not requests > 0:
            raise CaptureError(f"the load counted {requests:g} requests in {self.load.requests!r}")
        value = (window.user_ns + window.system_ns) / requests
        return (Metric(cpu_per_request(self.load), value, "ns", (value,)),)
