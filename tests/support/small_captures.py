"""Captures of a few samples whose names are known at capture, so that no binary is needed to read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.model.capture import Capture, empty_capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.event import Event
from profiler.model.frame_table import CpuMode, FrameTable
from profiler.model.quality import CaptureQuality
from profiler.model.run import CaptureInfo, PerfSettings, RunIdentity, RunMode, RunOutcome
from profiler.model.sample_table import SampleTable, StackState
from profiler.model.stack_table import StackTable
from profiler.model.thread_table import ThreadTable

SAMPLE_NS = 1_000_000


def small_info(
    variant: str, round_number: int = 0, mode: RunMode = RunMode.PROFILED, phase: str = "", failure: str = "", session: str = ""
) -> CaptureInfo:
    perf = PerfSettings(event="cpu-clock", frequency_hz=1000) if mode is RunMode.PROFILED else PerfSettings()
    return CaptureInfo(
        identity=RunIdentity(session, variant, round_number, mode, position=2 * round_number),
        perf=perf,
        outcome=RunOutcome(wall_ns=100 * SAMPLE_NS, user_ns=90 * SAMPLE_NS, failure=failure),
        command=("epoch",),
        phase=phase,
    )


def small_capture(stacks: dict[str, int], info: CaptureInfo) -> Capture:
    """``stacks``: "main/work/leaf" -> number of samples of 1 ms each; time runs on in the order given."""
    if not stacks:
        return empty_capture(info)
    functions = sorted({name for stack in stacks for name in stack.split("/")})
    strings = ("epoch", *functions)
    nodes: dict[tuple[str, ...], int] = {}
    prefix: list[int] = []
    frame: list[int] = []
    for stack in stacks:
        parts = tuple(stack.split("/"))
        for depth in range(1, len(parts) + 1):
            if parts[:depth] not in nodes:
                nodes[parts[:depth]] = len(prefix)
                prefix.append(nodes.get(parts[: depth - 1], -1))
                frame.append(functions.index(parts[depth - 1]))
    rows = [nodes[tuple(stack.split("/"))] for stack, count in stacks.items() for _ in range(count)]
    return Capture(
        info=info,
        quality=CaptureQuality(samples=len(rows), complete=len(rows)),
        strings=strings,
        dsos=(Dso("[jit]", b"", DsoKind.ANONYMOUS),),
        frames=FrameTable(
            np.zeros(len(functions), np.int32),
            np.arange(len(functions), dtype=np.uint64) * 16,
            np.zeros(len(functions), np.bool_),
            np.full(len(functions), CpuMode.USER, np.uint8),
            np.arange(1, len(functions) + 1, dtype=np.int32),
        ),
        stacks=StackTable(np.array(prefix, np.int32), np.array(frame, np.int32)),
        threads=ThreadTable(*(np.array([value], np.int32) for value in (7, 7, 0, 0))),
        samples=_samples(rows),
        events=(Event("cpu-clock", "ns", 1000, 0),),
    )


def _samples(rows: Sequence[int]) -> SampleTable:
    number = len(rows)
    return SampleTable(
        np.arange(number, dtype=np.uint64) * SAMPLE_NS,
        np.zeros(number, np.int32),
        np.zeros(number, np.int16),
        np.zeros(number, np.int16),
        np.array(rows, np.int32),
        np.full(number, SAMPLE_NS, np.int64),
        np.full(number, StackState.COMPLETE, np.uint8),
    )
