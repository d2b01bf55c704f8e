"""What perf left of a run, read into a capture, with what perf did otherwise than asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from profiler.errors import FormatError
from profiler.model.capture import Capture, empty_capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, RunOutcome
from symbolize.locate import Locator

_CLOCKS = frozenset({"cpu-clock", "task-clock"})


@dataclass(frozen=True, slots=True)
class RunRecording:
    """What perf left behind: its file, its argument list, and the lines that are not routine."""

    path: Path
    arguments: tuple[str, ...]
    messages: Sequence[str]


def recorded_capture(recording: RunRecording, info: CaptureInfo, locator: Locator) -> Capture:
    """The recording read, with what perf did otherwise than asked; an empty capture that failed when it cannot be read."""
    # Half of what is to be loaded before perf can attach, and not needed until it has recorded.
    from collectors.recording_file import read_recording

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


def failed(outcome: RunOutcome, failure: str) -> RunOutcome:
    """The first failure is the cause of later ones."""
    return replace(outcome, failure=outcome.failure or failure)
