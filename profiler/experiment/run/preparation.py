"""What is settled before the first run: each arm's command, program and perf settings, and the facts of inputs and host."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from collectors.host import host_facts
from collectors.processes.launcher import resolve_program
from collectors.profilers.perf_record import perf_version
from profiler.errors import CaptureError, UsageError
from profiler.experiment.binaries.call_graph import choose_call_graph
from profiler.experiment.binaries.program_facts import file_state, keeps_frame_pointers, program_facts
from profiler.experiment.binaries.shared_objects import SharedObjects
from profiler.experiment.plan.recording_plan import Arm, ProfilePolicy, RecordPlan, check_plan
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import HostFacts, InputFile, PerfSettings, ProgramFacts, RunMode

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
MAX_SAMPLE_RATE = Path("/proc/sys/kernel/perf_event_max_sample_rate")


@dataclass(frozen=True, slots=True)
class PreparedProgram:
    """``command``: argument list as run.  ``executable``: the file whose code is measured; ``executable_state``: see
    ``file_state``."""

    command: tuple[str, ...]
    executable: Path
    executable_state: tuple[int, int, int]
    program: ProgramFacts


@dataclass(frozen=True, slots=True)
class PreparedArm:
    """``plain``, ``profiled``: what runs without and under perf, the same as a rule.  ``perf``: how it is recorded, without
    perf's own command line; empty when nothing is profiled."""

    arm: Arm
    plain: PreparedProgram
    profiled: PreparedProgram
    perf: PerfSettings

    @property
    def name(self) -> str:
        return self.arm.label

    def of_mode(self, mode: RunMode) -> PreparedProgram:
        return self.profiled if mode is RunMode.PROFILED else self.plain


@dataclass(frozen=True, slots=True)
class Preparation:
    plan: RecordPlan
    arms: tuple[PreparedArm, ...]
    host: HostFacts
    inputs: tuple[InputFile, ...]


def prepare(plan: RecordPlan) -> Preparation:
    """Everything that can be refused before a session begins.  ``UsageError``, ``CaptureError``: one line with the way out."""
    check_plan(plan)
    if plan.drop_caches and not os.access(DROP_CACHES, os.W_OK):
        raise CaptureError(f"--drop-caches needs root to write {DROP_CACHES}: run as root, or leave it out")
    _check_cpus(plan.cpus)
    if plan.before:
        resolve_program(plan.before[0])
    version = "" if plan.profile is ProfilePolicy.NONE else perf_version()
    if version:
        check_frequency(plan.frequency_hz)
    inputs = tuple(_input_file(path) for path in plan.inputs)
    return Preparation(plan, tuple(_prepare_arm(plan, arm, version) for arm in plan.arms), host_facts(), inputs)


def check_frequency(frequency_hz: int, limit_file: Path = MAX_SAMPLE_RATE) -> None:
    """``UsageError`` for a rate above the kernel's limit: perf would sample at the limit instead."""
    try:
        limit_hz = int(limit_file.read_text())
    except (OSError, ValueError):
        return
    if frequency_hz > limit_hz:
        raise UsageError(
            f"--frequency {frequency_hz}: the kernel allows {limit_hz} samples per second at most; ask for less, or raise the "
            f"limit: `sudo sysctl kernel.perf_event_max_sample_rate={frequency_hz}`"
        )


def _check_cpus(cpus: frozenset[int]) -> None:
    missing = sorted(cpus - os.sched_getaffinity(0))
    if missing:
        raise UsageError(f"--cpus: CPU {missing[0]} is not there or not allowed; there are {sorted(os.sched_getaffinity(0))}")


def _prepare_arm(plan: RecordPlan, arm: Arm, version: str) -> PreparedArm:
    plain = _prepare_program(arm.command, arm.binary)
    profiled = _prepare_program(arm.profiled_command, arm.profiled_binary) if arm.profiled_command else plain
    perf = PerfSettings()
    if version:
        chosen = choose_call_graph(plan.call_graph, profiled.executable, SharedObjects(), keeps_frame_pointers)
        perf = PerfSettings(
            event=plan.event,
            frequency_hz=plan.frequency_hz,
            call_graph=chosen.mode,
            call_graph_reason=chosen.reason,
            dump_bytes=chosen.dump_bytes,
            perf_version=version,
        )
    return PreparedArm(arm, plain, profiled, perf)


def _prepare_program(command: tuple[str, ...], binary: str) -> PreparedProgram:
    executable = resolve_program(binary or command[0])
    resolve_program(command[0])
    return PreparedProgram(command, executable, file_state(executable), program_facts(executable))


def _input_file(path: Path) -> InputFile:
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return InputFile(str(path.absolute()), os.fstat(stream.fileno()).st_size, digest)
    except OSError as error:
        raise UsageError(f"--input {path}: {error.strerror}") from None
