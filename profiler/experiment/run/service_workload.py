"""A service that is started, awaited, warmed up, measured while it is under load, and stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from collectors.metrics import read_metrics
from collectors.processes.process_group import GroupCommand, GroupProcess, ProcessGroups
from collectors.processes.process_output import output_tail
from collectors.processes.process_status import all_processes, tree
from collectors.processes.service import (
    ServiceFailure,
    Window,
    await_ready,
    check_nobody_answers,
    finish_load,
    stop_service,
    warm_up,
    watch_window,
)
from collectors.profilers.perf_record import PerfRecorder, start_recording
from collectors.profilers.perf_stat import PerfCounter, start_counting
from collectors.prometheus import MetricsPage, fetch_page, page_metrics
from profiler.errors import CaptureError
from profiler.experiment.plan.experiment_plan import PlanLoad, cpu_per_request
from profiler.experiment.plan.recording_plan import RecordPlan
from profiler.experiment.run.arm_metrics import command_metrics
from profiler.experiment.run.arms import ExperimentArm
from profiler.experiment.run.preparation import PreparedArm
from profiler.experiment.run.run_recording import RunRecording, failed
from profiler.experiment.run.workload import Measured
from profiler.experiment.run.workplace import Workplace
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, Metric, RunMode, RunOutcome

_Perf = PerfRecorder | PerfCounter


@dataclass(frozen=True, slots=True)
class ServiceWorkload:
    """Services under their arm's load.  ``arms``: by label."""

    plan: RecordPlan
    place: Workplace
    arms: Mapping[str, ExperimentArm]

    def run(self, info: CaptureInfo, arm: PreparedArm) -> Measured:
        of_arm = self.arms[arm.name]
        load = of_arm.load
        assert load is not None
        output = self.place.output
        output.write_bytes(b"")
        service = GroupCommand(info.command, output, arm.arm.environment, self.plan.cpus)
        measured = Measured(RunOutcome())
        try:
            check_nobody_answers(load.ready)
            with ProcessGroups(self.place.guard) as groups:
                run = _ServiceRun(groups, groups.start(service), of_arm, load, self.place, self.plan.timeout_s)
                await_ready(run.service, load.ready)
                run.warm_up()
                measured = run.under_load(info)
                if measured.outcome.is_valid:
                    stop_service(groups, run.service, load.stop_signal, load.stop_timeout_s)
        except ServiceFailure as error:
            measured = replace(measured, outcome=failed(measured.outcome, str(error)))
        return replace(measured, outcome=replace(measured.outcome, output_tail=output_tail(output)))

    def with_reported(self, outcome: RunOutcome, arm: PreparedArm) -> RunOutcome:
        """What the service itself printed; all of it is there when it has stopped."""
        if not outcome.is_valid:
            return outcome
        try:
            found = read_metrics(self.plan.metrics, self.place.output)
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
    place: Workplace
    timeout_s: float

    @property
    def load_output(self) -> Path:
        return self.place.directory / "load-output"

    def warm_up(self) -> None:
        """Load again and again until the time is over."""
        until = time.monotonic() + self.load.warmup_s
        while self.load.warmup_s and time.monotonic() < until:
            if not warm_up(self.groups, self.service, self._start_load(), until):
                return

    def under_load(self, info: CaptureInfo) -> Measured:
        """The window.  ``ServiceFailure`` when service or load fail; what only spoils a number is in the outcome."""
        pages = self._page()
        attached = self._attach(info)
        try:
            load = self._start_load()
            window = watch_window(self.service, load, self.load.window_s, self.timeout_s)
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
        return self.groups.start(GroupCommand(self.arm.load_command, self.load_output, self.arm.arm.environment))

    def _attach(self, info: CaptureInfo) -> _Perf | None:
        """To all processes that the service has, whose later threads and children follow."""
        first, *others = [status.pid for status in tree((self.service.pid,), all_processes())] or [self.service.pid]
        if info.identity.mode is RunMode.PROFILED:
            return start_recording(info.perf, first, self.place.raw_recording, others)
        stats = self.arm.metrics.stats
        return start_counting(stats, (first, *others)) if stats else None

    def _finished(self, outcome: RunOutcome, attached: _Perf | None) -> Measured:
        if isinstance(attached, PerfCounter):
            try:
                return Measured(replace(outcome, metrics=(*outcome.metrics, *attached.finish())))
            except CaptureError as error:
                return Measured(failed(outcome, str(error)))
        if isinstance(attached, PerfRecorder):
            end = attached.finish()
            recording = RunRecording(self.place.raw_recording, attached.arguments, end.messages)
            return Measured(failed(outcome, end.failure), recording)
        return Measured(outcome)

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
            found = read_metrics(self.arm.metrics.load_output, self.load_output)
            found += self._cpu_per_request(found, window)
            found += command_metrics(self.arm.metrics.commands, self.place.directory)
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
