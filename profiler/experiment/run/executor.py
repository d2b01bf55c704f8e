"""One run: prepared, measured, and read into a capture."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from collectors.disturbance import disturbances, host_activity
from collectors.processes.process_output import output_tail, with_last_line
from collectors.processes.process_tree import TreeCommand, run_tree
from profiler.errors import CaptureError
from profiler.experiment.binaries.program_facts import file_state, program_facts
from profiler.experiment.plan.schedule import ScheduledRun
from profiler.experiment.run.preparation import DROP_CACHES, Preparation, PreparedArm, PreparedProgram
from profiler.experiment.run.run_recording import recorded_capture, strayed
from profiler.experiment.run.workload import Workload
from profiler.experiment.run.workplace import Workplace
from profiler.model.capture import Capture, empty_capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, PerfSettings, ProgramFacts, RunIdentity, RunMode, RunOutcome


class Executor(Protocol):
    """Carries out one scheduled run.  The capture's outcome says when it failed; ``CaptureError`` when nothing can run.
    ``raw_recording``: the file of the last profiled run."""

    @property
    def raw_recording(self) -> Path: ...

    def execute(self, session: str, scheduled: ScheduledRun, arm: PreparedArm) -> Capture: ...


@dataclass(frozen=True, slots=True)
class RunExecutor:
    """Carries out real runs of a workload."""

    preparation: Preparation
    place: Workplace
    workload: Workload
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def raw_recording(self) -> Path:
        return self.place.raw_recording

    def execute(self, session: str, scheduled: ScheduledRun, arm: PreparedArm) -> Capture:
        self.raw_recording.unlink(missing_ok=True)
        plan = self.preparation.plan
        # The command that comes before a run may build the program: what is said of it is asked afterwards.
        failure = run_before(plan.before, self.place.directory / "before")
        info = run_info(self.preparation, identity_of(session, scheduled, arm), arm, self.now())
        if failure:
            return empty_capture(replace(info, outcome=RunOutcome(failure=failure)))
        if plan.drop_caches:
            drop_caches()
        before = host_activity()
        measured = self.workload.run(info, arm)
        after = host_activity()
        info = replace(info, outcome=self.workload.with_reported(measured.outcome, arm))
        if measured.recording is None:
            return disturbed(empty_capture(info), disturbances(before, after))
        capture = recorded_capture(measured.recording, info, self.place.locator)
        return disturbed(capture, (*disturbances(before, after), *strayed(capture, plan.cpus)))


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


def run_before(command: Sequence[str], output: Path) -> str:
    """Runs the command that comes before a run; what went wrong, or "".  ``output``: file that takes what it prints."""
    if not command:
        return ""
    try:
        done = run_tree(TreeCommand(tuple(command), Path.cwd(), output))
    except CaptureError as error:
        return f"--before: {error}"
    if not done.exit_code:
        return ""
    return with_last_line(f"--before command ended with {done.exit_code}", output_tail(output))


def drop_caches() -> None:
    """Empties the page cache, directory entries and inodes; needs root."""
    os.sync()
    try:
        DROP_CACHES.write_text("3\n")
    except OSError as error:
        raise CaptureError(f"--drop-caches: {DROP_CACHES}: {error.strerror}: run as root, or leave it out") from None
