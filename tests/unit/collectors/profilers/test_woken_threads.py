"""Sleeping threads that py-spy woke.  100 pauses a second wake for 2 ms of every second at most."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace

import numpy as np

from collectors.profilers.woken_threads import RanBetween, RunTimes, ran_between, run_times, without_woken_threads
from profiler.model.capture import Capture
from profiler.model.thread_table import ThreadTable
from support.sample_captures import run_info, two_stack_capture

MS = 1_000_000


def capture(busy: int, idle: int, partly: int) -> Capture:
    """Samples of threads 8, 9 and 10 of process 7."""
    counts = (busy, idle, partly)
    whole = two_stack_capture(run_info("s", "v"), repeat=(sum(counts) + 2) // 3)
    columns = {name: getattr(whole.samples, name)[: sum(counts)] for name in type(whole.samples).__slots__}
    thread = np.repeat(np.arange(3, dtype=np.int32), counts)
    threads = ThreadTable(*(np.array(column, np.int32) for column in ([7] * 3, [8, 9, 10], [0] * 3, [0, 1, 1])))
    samples = replace(whole.samples, **(columns | {"thread": thread}))
    return replace(whole, samples=samples, threads=threads)


def test_threads_that_ran_for_the_pauses_only_are_left_out_and_named() -> None:
    ran = RanBetween({(7, 8): 2900 * MS, (7, 9): 5 * MS, (7, 10): 500 * MS}, 3.0)
    found = without_woken_threads(capture(300, 140, 200), ran, 100)
    assert np.bincount(found.samples.thread, minlength=3).tolist() == [300, 0, 200]
    assert found.quality.samples == found.quality.complete == 500
    assert "'worker' (9) was asleep: 140 samples" in found.quality.notes[-2]
    assert "'worker' (10): its 200 samples are 2.00 s, but it ran for 0.50 s" in found.quality.notes[-1]


def test_what_ran_longer_or_is_not_known_stays() -> None:
    ran = RanBetween({(7, 8): 2900 * MS, (7, 9): 21 * MS}, 3.0)
    whole = capture(300, 1, 200)
    assert without_woken_threads(whole, ran, 100) is whole


def test_run_times_of_this_process_grow_with_its_work() -> None:
    ended = threading.Event()
    sleeper = threading.Thread(target=ended.wait)
    sleeper.start()
    before = run_times(os.getpid(), with_children=False)
    started = time.thread_time_ns()
    while time.thread_time_ns() - started < 30 * MS:
        pass
    after = run_times(os.getpid(), with_children=True)
    ended.set()
    sleeper.join()
    ran = ran_between(before, after).ran_ns
    assert ran[os.getpid(), threading.get_native_id()] >= 25 * MS
    assert ran[os.getpid(), sleeper.native_id or 0] < 5 * MS


def test_threads_that_began_later_count_from_their_beginning() -> None:
    assert ran_between(RunTimes({(1, 1): 5}, 1.0), RunTimes({(1, 1): 7, (1, 2): 3}, 2.5)) == RanBetween(
        {(1, 1): 2, (1, 2): 3}, 1.5
    )
