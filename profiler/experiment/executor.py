"""One run: prepared, launched, recorded, measured, and read into a capture."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np

from collectors.disturbance import HostActivity, disturbances, host_activity
from collectors.launcher import LaunchRequest, launch, launch_recorded
from collectors.metrics import read_metrics
from collectors.perf_record import PerfRecorder, start_recording
from collectors.perf_stat import StatMetric, start_counting
from collectors.recording_file import read_recording
from profiler.errors import CaptureError, FormatError
from profiler.experiment.arm_metrics import ArmMetrics, command_metrics
from profiler.experiment.preparation import DROP_CACHES, Preparation, PreparedArm, PreparedProgram, file_state, program_facts
from profiler.experiment.schedule import ScheduledRun
from profiler.model.capture import Capture, empty_capture
from profiler.model.run import CaptureInfo, PerfSettings, ProgramFacts, RunIdentity, RunMode, RunOutcome
from symbolize.locate import Locator

RAW_NAME = "perf.data"
OUTPUT_NAME = "output"
_CLOCKS = frozenset({"cpu-clock", "task-clock"})


class Executor(Protocol):
    """Carries out one scheduled run.  The capture's outcome says when it failed; ``CaptureError`` when nothing can run.
    ``raw_recording``: the file of the last profiled run."""

    @property
    def raw_recording(self) -> Path: ...

    def execute(self, session: str, scheduled: ScheduledRun, arm: PreparedArm) -> Capture: ...


@dataclass(frozen=True, slots=True)
class ProcessExecutor:
    """Runs real processes.  ``directory``: for the program's output and the recording, which stays there until the next run.
    ``metrics``: of each arm, beside those in its output."""

    preparation: Preparation
    directory: Path
    locator: Locator
    metrics: Mapping[str, ArmMetrics] = field(default_factory=lambda: MappingProxyType({}))
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def execute(self, session: str, scheduled: ScheduledRun, arm: PreparedArm) -> Capture:
        self.raw_recording.unlink(missing_ok=True)
        plan = self.preparation.plan
        # The command that comes before a run may build the program: what is said of it is asked afterwards.
        failure = run_before(plan.before)
        info = run_info(self.preparation, identity_of(session, scheduled, arm), arm, self.now())
        if failure:
            return empty_capture(replace(info, outcome=RunOutcome(failure=failure)))
        if plan.drop_caches:
            drop_caches()
        request = LaunchRequest(info.command, self.directory / OUTPUT_NAME, plan.cpus, arm.arm.environment, plan.timeout_s)
        metrics = self.metrics.get(arm.name, ArmMetrics())
        before = host_activity()
        if scheduled.mode is RunMode.PLAIN:
            outcome = _counted(request, metrics.stats) if metrics.stats else launch(request)
            after = host_activity()
            return disturbed(
                empty_capture(replace(info, outcome=self._with_metrics(outcome, metrics))), disturbances(before, after)
            )
        capture, after = self._profiled(request, info, metrics)
        return disturbed(capture, (*disturbances(before, after), *strayed(capture, plan.cpus)))

    @property
    def raw_recording(self) -> Path:
        return self.directory / RAW_NAME

    def _profiled(self, request: LaunchRequest, info: CaptureInfo, metrics: ArmMetrics) -> tuple[Capture, HostActivity]:
        """The run, and the host's activity when perf had ended too: perf is not the work of others."""

        def attach(pid: int) -> PerfRecorder:
            return start_recording(info.perf, pid, self.raw_recording)

        outcome, recorder = launch_recorded(request, attach)
        try:
            end = recorder.finish()
        except BaseException:
            recorder.abort()
            raise
        after = host_activity()
        outcome = failed(self._with_metrics(outcome, metrics), end.failure)
        recording = RunRecording(self.raw_recording, recorder.arguments, end.messages)
        return recorded_capture(recording, replace(info, outcome=outcome), self.locator), after

    def _with_metrics(self, outcome: RunOutcome, metrics: ArmMetrics) -> RunOutcome:
        if not outcome.is_valid:
            return outcome
        try:
            found = read_metrics(self.preparation.plan.metrics, self.directory / OUTPUT_NAME)
            found += command_metrics(metrics.commands, self.directory)
        except CaptureError as error:
            return failed(outcome, str(error))
        return replace(outcome, metrics=(*outcome.metrics, *found))


def _counted(request: LaunchRequest, stats: tuple[StatMetric, ...]) -> RunOutcome:
    outcome, counter = launch_recorded(request, lambda pid: start_counting(stats, (pid,)))
    try:
        return replace(outcome, metrics=counter.finish())
    except CaptureError as error:
        return failed(outcome, str(error))
    except BaseException:
        counter.abort()
        raise


@dataclass(frozen=True, slots=True)
class RunRecording:
    """What perf left behind: its file, its argument list, and the lines that are not routine."""

    path: Path
    arguments: tuple[str, ...]
    messages: Sequence[str]


def recorded_capture(recording: RunRecording, info: CaptureInfo, locator: Locator) -> Capture:
    """The recording read, with what perf did otherwise than asked; an empty capture that failed when it cannot be read."""
    info = replace(info, perf=replace(info.perf, perf_command=recording.arguments))
    try:
        capture = read_recording(recording.path, info, locator)
    except FormatError as error:
        return empty_capture(replace(info, outcome=failed(info.outcome, f"recording cannot be read: {error.reason}")))
    recorded = [event.name for event in capture.events]
    notes = [*capture.quality.notes, *([f"perf: {' '.join(recording.messages)}"] if recording.messages else [])]
    notes += missing_kernel_notes(info.perf.event, recorded)
    outcome = failed(info.outcome, substituted_event(info.perf.event, recorded))
    return replace(capture, info=replace(capture.info, outcome=outcome), quality=replace(capture.quality, notes=tuple(notes)))


def run_info(preparation: Preparation, identity: RunIdentity, arm: PreparedArm, now: datetime) -> CaptureInfo:
    """What is known of a run as it begins."""
    program = arm.of_mode(identity.mode)
    return CaptureInfo(
        identity=identity,
        host=preparation.host,
        program=_program_now(program),
        perf=arm.perf if identity.mode is RunMode.PROFILED else PerfSettings(),
        command=program.command,
        started_at=now.isoformat(timespec="milliseconds"),
        phase=preparation.plan.phase,
        inputs=preparation.inputs,
    )


def substituted_event(asked: str, recorded: Sequence[str]) -> str:
    """What is wrong when perf recorded a clock, without a word, in place of an event that the machine does not count; or ""."""
    clocks = {name.partition(":")[0] for name in recorded} & _CLOCKS
    substitutes = sorted(clock for clock in clocks if clock not in asked)
    if not substitutes:
        return ""
    return f"event {asked!r} is not counted on this machine, and perf recorded {substitutes[0]} in its place: ask for that"


def strayed(capture: Capture, cpus: frozenset[int]) -> list[str]:
    """Where samples were taken although the program was not to run there."""
    seen = set(np.unique(capture.samples.cpu).tolist()) - {-1} if cpus and len(capture.samples) else set()
    elsewhere = sorted(seen - cpus)
    return [f"it ran on CPU {', '.join(map(str, elsewhere))}, outside of those it was given"] if elsewhere else []


def missing_kernel_notes(asked: str, recorded: Sequence[str]) -> list[str]:
    """perf records user space alone, without a word, where it may not record the kernel."""
    if ":" in asked or not any(name.endswith(":u") for name in recorded):
        return []
    return ["only user space was recorded; `sudo sysctl kernel.perf_event_paranoid=1` would add the time in the kernel"]


def identity_of(session: str, scheduled: ScheduledRun, arm: PreparedArm) -> RunIdentity:
    """Of the run that is scheduled for the arm."""
    return RunIdentity(
        session, arm.arm.variant, scheduled.round, scheduled.mode, scheduled.position, condition=arm.arm.condition
    )


def _program_now(program: PreparedProgram) -> ProgramFacts:
    """Looks again when the executable was rebuilt since the session began."""
    is_unchanged = file_state(program.executable) == program.executable_state
    return program.program if is_unchanged else program_facts(program.executable)


def disturbed(capture: Capture, reasons: Sequence[str]) -> Capture:
    """With what else happened meanwhile."""
    outcome = replace(capture.info.outcome, disturbance="; ".join(reasons))
    return replace(capture, info=replace(capture.info, outcome=outcome))


def failed(outcome: RunOutcome, failure: str) -> RunOutcome:
    """The first failure is the cause of later ones."""
    return replace(outcome, failure=outcome.failure or failure)


def run_before(command: Sequence[str]) -> str:
    """Runs the command that comes before a run; what went wrong, or ""."""
    if not command:
        return ""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        return f"--before command cannot be run: {error.strerror}"
    if done.returncode == 0:
        return ""
    lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
    return f"--before command ended with {done.returncode}{': ' + lines[-1] if lines else ''}"


def drop_caches() -> None:
    """Empties the page cache, directory entries and inodes; needs root."""
    os.sync()
    try:
        DROP_CACHES.write_text("3\n")
    except OSError as error:
        raise CaptureError(f"--drop-caches: {DROP_CACHES}: {error.strerror}: run as root, or leave it out") from None
