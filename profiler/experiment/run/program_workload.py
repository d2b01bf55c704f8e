"""A program that runs from its start to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType

from collectors.metrics import read_metrics
from collectors.processes.launcher import LaunchRequest, launch, launch_recorded
from collectors.processes.start_moment import StartMoment
from collectors.profilers.perf_record import PerfRecorder, start_recording
from collectors.profilers.perf_stat import StatMetric, start_counting
from profiler.errors import CaptureError
from profiler.experiment.plan.recording_plan import RecordPlan
from profiler.experiment.run.arm_metrics import ArmMetrics, command_metrics
from profiler.experiment.run.preparation import PreparedArm
from profiler.experiment.run.run_recording import RunRecording, failed
from profiler.experiment.run.workload import Measured
from profiler.experiment.run.workplace import Workplace
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, RunMode, RunOutcome


@dataclass(frozen=True, slots=True)
class ProgramWorkload:
    """``metrics``: of each arm, beside those in its output.  ``moment``: when the first run begins, None = at once."""

    plan: RecordPlan
    place: Workplace
    metrics: Mapping[str, ArmMetrics] = field(default_factory=lambda: MappingProxyType({}))
    moment: StartMoment | None = None

    def run(self, info: CaptureInfo, arm: PreparedArm) -> Measured:
        plan, place = self.plan, self.place
        request = LaunchRequest(
            info.command, place.output, plan.cpus, arm.arm.environment, plan.timeout_s, place.guard, self.moment
        )
        if info.identity.mode is RunMode.PROFILED:
            return self._profiled(request, info)
        stats = self._metrics_of(arm).stats
        return Measured(_counted(request, stats) if stats else launch(request))

    def with_reported(self, outcome: RunOutcome, arm: PreparedArm) -> RunOutcome:
        if not outcome.is_valid:
            return outcome
        try:
            found = read_metrics(self.plan.metrics, self.place.output)
            found += command_metrics(self._metrics_of(arm).commands, self.place.directory)
        except CaptureError as error:
            return failed(outcome, str(error))
        return replace(outcome, metrics=(*outcome.metrics, *found))

    def _metrics_of(self, arm: PreparedArm) -> ArmMetrics:
        return self.metrics.get(arm.name, ArmMetrics())

    def _profiled(self, request: LaunchRequest, info: CaptureInfo) -> Measured:
        """Returns when perf has ended, too: it is not the work of others."""

        def attach(pid: int) -> PerfRecorder:
            return start_recording(info.perf, pid, self.place.raw_recording)

        outcome, recorder = launch_recorded(request, attach)
        try:
            end = recorder.finish()
        except BaseException:
            recorder.abort()
            raise
        return Measured(failed(outcome, end.failure), RunRecording(self.place.raw_recording, recorder.arguments, end.messages))


def _counted(request: LaunchRequest, stats: tuple[StatMetric, ...]) -> RunOutcome:
    outcome, counter = launch_recorded(request, lambda pid: start_counting(stats, (pid,)))
    try:
        return replace(outcome, metrics=counter.finish())
    except CaptureError as error:
        return failed(outcome, str(error))
    except BaseException:
        counter.abort()
        raise
