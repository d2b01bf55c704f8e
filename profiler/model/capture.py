"""Capture: what a collector produces from one run; immutable, with file offsets instead of link addresses."""

from __future__ import annotations

import numpy as np

from profiler.model.dso import Dso
from profiler.model.event import Event
from profiler.model.frame_table import FrameTable
from profiler.model.quality import CaptureQuality
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo
from profiler.model.sample_table import SampleTable
from profiler.model.stack_table import StackTable
from profiler.model.thread_table import ThreadTable


@dataclass(frozen=True, slots=True)
class Capture:
    """One run's tables.  Every ``*_table`` index in a column refers to the table of this capture."""

    info: CaptureInfo
    quality: CaptureQuality
    strings: tuple[str, ...]
    dsos: tuple[Dso, ...]
    frames: FrameTable
    stacks: StackTable
    threads: ThreadTable
    samples: SampleTable
    events: tuple[Event, ...]


def empty_capture(info: CaptureInfo) -> Capture:
    """A capture without samples: the record of a plain run."""
    i32, u8 = np.zeros(0, np.int32), np.zeros(0, np.uint8)
    u64 = np.zeros(0, np.uint64)
    return Capture(
        info=info,
        quality=CaptureQuality(),
        strings=(),
        dsos=(),
        frames=FrameTable(i32, u64, np.zeros(0, np.bool_), u8, i32),
        stacks=StackTable(i32, i32),
        threads=ThreadTable(i32, i32, i32, i32),
        samples=SampleTable(u64, i32, np.zeros(0, np.int16), np.zeros(0, np.int16), i32, np.zeros(0, np.int64), u8),
        events=(),
    )
