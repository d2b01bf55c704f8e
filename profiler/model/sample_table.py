"""Samples: one row per observation, ordered by (time, position in the recording)."""

from __future__ import annotations

from enum import IntEnum

from profiler.model.arrays import Int16Column, Int32Column, Int64Column, UInt8Column, UInt64Column
from profiler.model.quick_dataclass import dataclass


class StackState(IntEnum):
    """How much of the call stack a sample carries.

    COMPLETE: outermost frame is a thread entry and no frame can be missing.
    GAP_POSSIBLE: reaches a thread entry, but in a frame-pointer stack the innermost user frame's direct caller may be
    missing.
    ROOTLESS: unwinding ended at something that is not a thread entry (no call frame information, broken chain).
    TRUNCATED: the stack dump or the depth limit ended before the stack did.
    NO_USER_STACK: a kernel thread, or user registers and callchain were not recorded; nothing can be said.
    """

    COMPLETE = 0
    GAP_POSSIBLE = 1
    ROOTLESS = 2
    TRUNCATED = 3
    NO_USER_STACK = 4


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SampleTable:
    """``time_ns``: perf clock.  ``thread``: row of the thread table.  ``cpu``: -1 unknown.  ``event``: row of the event
    table.  ``stack``: row of the stack table, its innermost frame.  ``weight``: in the event's unit, as recorded.
    ``state``: ``StackState``."""

    time_ns: UInt64Column
    thread: Int32Column
    cpu: Int16Column
    event: Int16Column
    stack: Int32Column
    weight: Int64Column
    state: UInt8Column

    def __len__(self) -> int:
        return len(self.time_ns)
