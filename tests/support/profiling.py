"""Records the epoch workload through slotscope's own recording path, and attributes what was recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from collectors.disturbance import disturbances, host_activity
from collectors.processes.launcher import LaunchRequest, launch_recorded
from collectors.profilers.perf_record import start_recording
from collectors.recording_file import read_recording
from profiler.model.capture import Capture
from profiler.model.costs import ArmCosts, CostTable
from profiler.model.run import CaptureInfo, PerfSettings, RunIdentity, RunMode, RunOutcome
from profiler.pipeline import AnalysisOptions, Arm, arm_costs
from support.workload import Timers, parse_timers
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

# Then the last run counts, disturbed or not.
MOST_DISTURBED = 3
ALL_PHASES = "^phase::"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One profiled run: its capture, what the kernel accounted it with, and the program's own timers."""

    capture: Capture
    outcome: RunOutcome
    timers: Timers

    def sampled_part(self) -> float:
        """Of the CPU time that the kernel charged the process with.  Where a virtual machine's CPUs are taken away for a
        moment, their time goes on and the clock that samples does not: a few per cent, in and outside the phase."""
        part = float(self.capture.samples.weight.sum()) / (self.outcome.user_ns + self.outcome.system_ns)
        assert 0.9 < part < 1.02
        return part


def dwarf_settings(frequency_hz: int, dump_bytes: int = 16384) -> PerfSettings:
    return PerfSettings(event="cpu-clock", frequency_hz=frequency_hz, call_graph="dwarf", dump_bytes=dump_bytes)


def frame_pointer_settings(frequency_hz: int) -> PerfSettings:
    return PerfSettings(event="cpu-clock", frequency_hz=frequency_hz, call_graph="fp")


def record(
    program: Path,
    arguments: tuple[str, ...],
    settings: PerfSettings,
    scratch: Path,
    read_timers: Callable[[str], Timers] = parse_timers,
) -> RecordedRun:
    """One run under perf, made again where something else disturbed it; the raw recording is removed."""
    for _ in range(MOST_DISTURBED):
        before = host_activity()
        run = _record_once(program, arguments, settings, scratch, read_timers)
        reasons = disturbances(before, host_activity())
        if not reasons:
            return run
        print(f"{program.name}: {', '.join(reasons)}")
    return run


def enough(recorded: Callable[[int], RecordedRun], count: int, least_samples: int) -> RecordedRun:
    """``recorded`` with ``count`` repetitions of the work, and with more on a machine so fast that those have too few
    samples."""
    run = recorded(count)
    samples = len(run.capture.samples)
    return run if samples > least_samples else recorded(math.ceil(1.2 * count * least_samples / samples))


def _record_once(
    program: Path,
    arguments: tuple[str, ...],
    settings: PerfSettings,
    scratch: Path,
    read_timers: Callable[[str], Timers],
) -> RecordedRun:
    output, recording = scratch / "output.txt", scratch / "perf.data"
    command = (str(program), *arguments)
    outcome, recorder = launch_recorded(LaunchRequest(command, output), lambda pid: start_recording(settings, pid, recording))
    end = recorder.finish()
    assert (outcome.failure, end.failure) == ("", "")
    identity = RunIdentity(session="test", variant="epoch", round=0, mode=RunMode.PROFILED)
    info = CaptureInfo(identity=identity, perf=settings, outcome=outcome, command=command)
    capture = read_recording(recording, info, Locator())
    recording.unlink()
    return RecordedRun(capture, outcome, read_timers(output.read_text()))


def costs_of(run: RecordedRun, phase: str = ALL_PHASES, view: str = "leaf", focus: str = "") -> ArmCosts:
    options = AnalysisOptions(phase=phase, view=view, focus=focus)
    return arm_costs(Arm("epoch", (run.capture,)), options, Symbolizer(Locator(), None))


def self_by_name(table: CostTable) -> dict[str, int]:
    return {name: int(weight) for name, weight in zip(table.names, table.self_weight.sum(axis=1), strict=True)}


def assert_shares_match(
    table: CostTable, expected_ns: Mapping[str, int], tolerance: float, sampling_deviations: float = 3
) -> None:
    """Every category's share of the table equals its share of the timers within ``tolerance`` and so many standard deviations
    of sampling; a category that has no timer is expected to have no time."""
    samples = int(table.self_samples.sum())
    assert share_misses(self_by_name(table), expected_ns, tolerance, samples, sampling_deviations) == []


def share_misses(
    measured: Mapping[str, int],
    expected_ns: Mapping[str, int],
    tolerance: float,
    samples: int,
    sampling_deviations: float = 3,
) -> list[str]:
    """The names whose share of ``measured`` is not their share of ``expected_ns``, each with both; see
    ``assert_shares_match``."""
    total, timed = sum(measured.values()), sum(expected_ns.values())
    misses = []
    for name in sorted({*measured, *expected_ns}):
        share, expected = measured.get(name, 0) / total, expected_ns.get(name, 0) / timed
        allowed = tolerance + sampling_deviations * math.sqrt(expected * (1 - expected) / samples)
        if abs(share - expected) > allowed:
            misses.append(f"{name}: {share:.2%}, by the timers {expected:.2%}, allowed +-{allowed:.2%}")
    return misses
