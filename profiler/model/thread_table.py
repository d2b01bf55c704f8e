"""Threads as they were named: a thread that is renamed or execs has one row per name."""

from __future__ import annotations

from profiler.model.arrays import Int32Column
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThreadTable:
    """``pid``, ``tid``: numbers; ``process_name``: string index of the thread group leader's comm at that time;
    ``thread_name``: string index of the thread's own comm."""

    pid: Int32Column
    tid: Int32Column
    process_name: Int32Column
    thread_name: Int32Column

    def __len__(self) -> int:
        return len(self.pid)
