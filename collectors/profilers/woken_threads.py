"""Sleeping threads that a profiler woke: told apart from busy ones by how long they really ran.

A profiler that stops a process to read its stacks ends the system calls in which threads sleep; until they have gone back to
sleep they look busy, which is long where the CPUs are taken.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from collectors.processes.process_status import all_processes, tree
from profiler.model.capture import Capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.sample_selection import selected

# Going back to sleep took 5 to 40 µs a pause where it was measured.
WAKING_NS = 60_000
_FEW_SAMPLES = 20
_SUSPICIOUS = 2.0

ThreadId = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RunTimes:
    """``ran_ns``: time on a CPU up to ``at_s`` (monotonic), by (pid, tid)."""

    ran_ns: Mapping[ThreadId, int]
    at_s: float


@dataclass(frozen=True, slots=True)
class RanBetween:
    """``ran_ns``: of the threads that were there at the end, during ``seconds``."""

    ran_ns: Mapping[ThreadId, int]
    seconds: float


def run_times(pid: int, with_children: bool) -> RunTimes:
    """Of every thread of a process, and of what it started.  Empty on kernels that do not tell."""
    pids = [status.pid for status in tree([pid], all_processes())] if with_children else [pid]
    found: dict[ThreadId, int] = {}
    for each in pids:
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{each}/task"):
                with contextlib.suppress(OSError):
                    found[each, int(entry.name)] = int(Path(entry.path, "schedstat").read_text().split()[0])
    return RunTimes(found, time.monotonic())


def ran_between(before: RunTimes, after: RunTimes) -> RanBetween:
    """A thread that was not there before has run since it began."""
    ran = {thread: total - before.ran_ns.get(thread, 0) for thread, total in after.ran_ns.items()}
    return RanBetween(ran, after.at_s - before.at_s)


def without_woken_threads(capture: Capture, ran: RanBetween, rate_hz: int) -> Capture:
    """``capture`` without the samples of threads that ran no longer than the pauses alone make a sleeping thread run; a note
    names each, and each whose samples are worth much more time than it ran.  ``capture`` has one row per sample."""
    pids, tids = capture.threads.pid.tolist(), capture.threads.tid.tolist()
    counts = np.bincount(capture.samples.thread, minlength=len(pids)).tolist()
    woken, notes = set[int](), list[str]()
    for row, (thread, count) in enumerate(zip(zip(pids, tids, strict=True), counts, strict=True)):
        ran_ns = ran.ran_ns.get(thread)
        if ran_ns is None or not count:
            continue
        name = f"thread {capture.strings[int(capture.threads.thread_name[row])]!r} ({thread[1]})"
        if ran_ns <= WAKING_NS * rate_hz * ran.seconds:
            woken.add(row)
            notes.append(f"{name} was asleep: {count} samples of it are left out, in which py-spy's pauses had woken it")
        elif count > _FEW_SAMPLES and count / rate_hz > _SUSPICIOUS * ran_ns / 1e9:
            notes.append(
                f"{name}: its {count} samples are {count / rate_hz:.2f} s, but it ran for {ran_ns / 1e9:.2f} s; the rest it "
                "waited for a CPU, woken by py-spy's pauses or not"
            )
    if not notes:
        return capture
    kept = selected(capture, ~np.isin(capture.samples.thread, sorted(woken)))
    return replace(kept, quality=replace(kept.quality, notes=(*kept.quality.notes, *notes)))
