"""Threads of a text, which names the thread of each sample but not its process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from collectors.ingest.timeline import Timeline
from profiler.model.arrays import BoolColumn, Int32Column
from profiler.model.sample_table import SampleTable
from profiler.model.thread_table import ThreadTable


def with_process_names(names: Sequence[tuple[int, int, int]], samples: SampleTable) -> tuple[ThreadTable, SampleTable]:
    """(thread table, samples with their rows in it).

    ``names``: pid, tid and string number of the name of each row that ``samples`` refer to; ``samples`` in the order of time.
    A process has the name that its first thread had in its latest sample before (else its first after), where it has samples.
    """
    table = np.array(names, np.int32).reshape(-1, 3)
    pid, tid, name = (np.ascontiguousarray(table[:, column]) for column in range(3))
    process_name = name[samples.thread]
    is_leader = (pid == tid) & (pid >= 0)
    others = np.flatnonzero(~is_leader[samples.thread])
    if len(others) and is_leader.any():
        named = _leader_names(pid, name, samples, is_leader[samples.thread]).at(
            pid[samples.thread[others]].astype(np.uint64), samples.time_ns[others]
        )
        process_name[others] = np.where(named >= 0, named, process_name[others])
    width = int(name.max(initial=0)) + 1
    rows, thread = np.unique(samples.thread.astype(np.int64) * width + process_name, return_inverse=True)
    first = (rows // width).astype(np.int32)
    threads = ThreadTable(pid[first], tid[first], (rows % width).astype(np.int32), name[first])
    return threads, replace(samples, thread=thread.astype(np.int32))


def _leader_names(pid: Int32Column, name: Int32Column, samples: SampleTable, is_leader: BoolColumn) -> Timeline:
    rows = np.flatnonzero(is_leader)
    rows = rows[np.argsort(pid[samples.thread[rows]], kind="stable")]
    key, value = pid[samples.thread[rows]], name[samples.thread[rows]]
    is_change = np.ones(len(rows), np.bool_)
    is_change[1:] = (key[1:] != key[:-1]) | (value[1:] != value[:-1])
    times = samples.time_ns[rows]
    return Timeline(list(zip(key[is_change].tolist(), times[is_change].tolist(), value[is_change].tolist(), strict=True)))
