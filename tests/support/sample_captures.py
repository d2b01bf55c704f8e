"""Small captures made by hand, and equality of captures (their columns are arrays)."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import numpy as np

from profiler.model.capture import Capture, empty_capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.event import Event
from profiler.model.frame_table import FrameTable
from profiler.model.quality import CaptureQuality
from profiler.model.run import CaptureInfo, Metric, PerfSettings, ProgramFacts, RunIdentity, RunMode, RunOutcome
from profiler.model.sample_table import SampleTable
from profiler.model.stack_table import StackTable
from profiler.model.thread_table import ThreadTable


def run_info(
    session: str, variant: str, round_number: int = 0, mode: RunMode = RunMode.PROFILED, position: int = 0
) -> CaptureInfo:
    return CaptureInfo(
        identity=RunIdentity(session, variant, round_number, mode, position),
        program=ProgramFacts(path=f"/opt/{variant}", build_id="ab" * 20, frame_pointers=False),
        perf=PerfSettings(event="cpu-clock", frequency_hz=1999, call_graph="fp")
        if mode is RunMode.PROFILED
        else PerfSettings(),
        outcome=RunOutcome(wall_ns=1_500_000_000, user_ns=1_400_000_000, metrics=(Metric("time", 12.5e6, "ns", (12.5e6,)),)),
        command=(f"/opt/{variant}", "--slots", "32"),
        started_at="2026-03-01T10:00:00+00:00",
    )


def two_stack_capture(info: CaptureInfo, repeat: int = 1) -> Capture:
    """main -> work in [kernel] and main -> work -> leaf; three samples each 1,000 ns, ``repeat`` times over."""
    samples = 3 * repeat
    return Capture(
        info=info,
        quality=CaptureQuality(samples=samples, complete=samples, skipped_records=((82, 1),), notes=("a note",)),
        strings=("prog", "worker", "do_syscall_64"),
        dsos=(Dso("/opt/prog", b"\x01\x02", DsoKind.FILE), Dso("[kernel]", b"", DsoKind.KERNEL)),
        frames=FrameTable(
            np.array([0, 0, 1], np.int32),
            np.array([0x1040, 0x1139, 2**64 - 1], np.uint64),
            np.array([True, True, False]),
            np.array([0, 0, 1], np.uint8),
            np.array([-1, -1, 2], np.int32),
        ),
        stacks=StackTable(np.array([-1, 0, 1], np.int32), np.array([0, 1, 2], np.int32)),
        threads=ThreadTable(*(np.array(column, np.int32) for column in ([7], [8], [0], [1]))),
        samples=SampleTable(
            np.arange(samples, dtype=np.uint64),
            np.zeros(samples, np.int32),
            np.full(samples, -1, np.int16),
            np.zeros(samples, np.int16),
            np.tile(np.array([1, 2, 2], np.int32), repeat),
            np.full(samples, 1000, np.int64),
            np.zeros(samples, np.uint8),
        ),
        events=(Event("cpu-clock", "ns", 1999, 0),),
    )


def plain_capture(info: CaptureInfo, **outcome: object) -> Capture:
    return empty_capture(replace(info, outcome=replace(info.outcome, **outcome)))  # type: ignore[arg-type]


def same(left: object, right: object) -> bool:
    """Equal in every field, column type included."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return (
            isinstance(left, np.ndarray)
            and isinstance(right, np.ndarray)
            and left.dtype == right.dtype
            and np.array_equal(left, right)
        )
    if is_dataclass(left) and type(left) is type(right):
        return all(same(getattr(left, field.name), getattr(right, field.name)) for field in fields(left))
    return type(left) is type(right) and left == right
