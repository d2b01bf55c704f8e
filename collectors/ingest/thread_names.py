"""Threads by the names they had: rows of the thread table for samples."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from collectors.ingest.timeline import Timeline
from collectors.perf_data.side_band import CommRecord, ForkRecord, SideBand
from profiler.model.arrays import Int32Column, Int64Column, UInt64Column, distinct
from profiler.model.interner import Interner
from profiler.model.thread_table import ThreadTable

_THREAD_SHIFT = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_SWAPPER = "swapper"
_IDLE_STAND_IN = np.uint64(0xFFFFFFFE_FFFFFFFF)


@dataclass(slots=True)
class StringTable:
    """Numbers strings in the order of their first use."""

    number_of: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.number_of.setdefault(text, len(self.number_of))

    def strings(self) -> tuple[str, ...]:
        return tuple(self.number_of)


@dataclass(slots=True)
class _ThreadNames:
    """Names in force while records are applied in order; ``changes`` for ``Timeline``, keyed as in samples."""

    strings: StringTable
    changes: list[tuple[int, int, int]] = field(default_factory=list)
    current: dict[int, int] = field(default_factory=dict)

    def set(self, pid: int, tid: int, time_ns: int, name: int) -> None:
        key = thread_key(pid, tid)
        self.current[key] = name
        self.changes.append((key, time_ns, name))


def thread_key(pid: int, tid: int) -> int:
    """(pid, tid) as the one word in which samples carry them."""
    return (tid & 0xFFFFFFFF) << 32 | pid & 0xFFFFFFFF


def name_timeline(side_band: SideBand, strings: StringTable) -> Timeline:
    """The name (string number) of every thread at every time.  A new thread has the name of the thread that made it."""
    names = _ThreadNames(strings)
    names.set(0, 0, 0, strings.number(_SWAPPER))
    records: list[CommRecord | ForkRecord] = [*side_band.comms, *side_band.forks]
    for record in sorted(records, key=lambda record: record[:2]):
        if isinstance(record, CommRecord):
            names.set(record.pid, record.tid, record.time_ns, strings.number(record.name))
        else:
            inherited = names.current.get(thread_key(record.parent_pid, record.parent_tid))
            if inherited is not None:
                names.set(record.pid, record.tid, record.time_ns, inherited)
    return Timeline(names.changes)


class ThreadNumbers:
    """Numbers (pid, tid) pairs."""

    def __init__(self) -> None:
        self._interner = Interner(bits=12)

    def number(self, process_threads: UInt64Column) -> Int32Column:
        """``process_threads``: pid in the low, tid in the high half."""
        # 0, the idle task, cannot be interned; the pair that takes its place, pid -1 and tid -2, does not exist.
        return self._interner.intern(np.where(process_threads == 0, _IDLE_STAND_IN, process_threads))[0]

    def pairs(self) -> UInt64Column:
        keys = self._interner.keys()
        return np.where(keys == _IDLE_STAND_IN, np.uint64(0), keys)


def thread_table(
    thread: Int32Column, times: UInt64Column, pairs: UInt64Column, names: Timeline, strings: StringTable
) -> tuple[ThreadTable, Int32Column]:
    """(thread table, row of each sample).

    ``thread``: row of ``pairs`` of each sample, ``times`` ascending; pairs without a sample are left out.  A thread that no
    record names is called ":tid", a process by its leader.
    """
    thread, pairs = _occurring(thread, pairs)
    first, last = _occurrences(thread, len(pairs))
    own, leader = _names_at(pairs, times[first], names)
    # Most threads are not renamed while they are sampled; for them one look-up answers for all samples.
    pids = pairs & _LOW_HALF
    is_renamed = names.changes_between(pairs, times[first], times[last])
    is_renamed |= names.changes_between(pids << _THREAD_SHIFT | pids, times[first], times[last])
    if not is_renamed.any():
        return _table(pairs, own, leader, strings), thread
    own, leader = own[thread], leader[thread]
    renamed = np.flatnonzero(is_renamed[thread])
    own[renamed], leader[renamed] = _names_at(pairs[thread[renamed]], times[renamed], names)
    width = len(strings.number_of) + 1
    combined = (thread.astype(np.int64) * width + own + 1) * width + leader + 1
    values = distinct(combined)
    rows = np.searchsorted(values, combined).astype(np.int32)
    first, _ = _occurrences(rows, len(values))
    return _table(pairs[thread[first]], own[first], leader[first], strings), rows


def _occurring(thread: Int32Column, pairs: UInt64Column) -> tuple[Int32Column, UInt64Column]:
    """Without the pairs all of whose samples were left out."""
    occurs = np.zeros(len(pairs), np.bool_)
    occurs[thread] = True
    if occurs.all():
        return thread, pairs
    return (np.cumsum(occurs) - 1)[thread].astype(np.int32), pairs[occurs]


def _occurrences(numbers: Int32Column | Int64Column, count: int) -> tuple[Int64Column, Int64Column]:
    """(first, last) row of each number; every number occurs."""
    first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
    rows = np.arange(len(numbers))
    last[numbers] = rows
    first[numbers[::-1]] = rows[::-1]
    return first, last


def _names_at(process_threads: UInt64Column, times: UInt64Column, names: Timeline) -> tuple[Int32Column, Int32Column]:
    """(the thread's own name, its process's name), -1 unknown."""
    own = names.at(process_threads, times)
    pids = process_threads & _LOW_HALF
    leader = names.at(pids << _THREAD_SHIFT | pids, times)
    return own, np.where(leader < 0, own, leader)


def _table(process_threads: UInt64Column, own: Int32Column, leader: Int32Column, strings: StringTable) -> ThreadTable:
    pid = (process_threads & _LOW_HALF).astype(np.uint32).view(np.int32)
    tid = (process_threads >> _THREAD_SHIFT).astype(np.uint32).view(np.int32)
    thread_name = own.copy()
    for row in np.flatnonzero(own < 0).tolist():
        thread_name[row] = strings.number(f":{int(tid[row])}")
    return ThreadTable(pid, tid, np.where(leader < 0, thread_name, leader).astype(np.int32), thread_name)
