"""Moments, and what happens before them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from profiler.attach.schedule import check_not_passed, edge_after
from profiler.attach.stop_request import StopRequest
from profiler.attach.waiting import Cause, wait_for
from profiler.errors import CaptureError

SECOND = 1_000_000_000


@pytest.fixture
def pipes() -> Iterator[list[tuple[int, int]]]:
    made = [os.pipe() for _ in range(2)]
    yield made
    for pair in made:
        for descriptor in pair:
            os.close(descriptor)


def test_a_wait_ends_at_its_moment_and_not_before(pipes: list[tuple[int, int]]) -> None:
    until_ns = time.monotonic_ns() + SECOND // 3
    assert wait_for([(pipes[0][0], Cause.ASKED)], until_ns) is Cause.TIME
    assert time.monotonic_ns() >= until_ns
    assert wait_for([(pipes[0][0], Cause.ASKED)], until_ns - SECOND) is Cause.TIME


def test_the_first_of_two_events_counts_even_when_the_moment_is_over(pipes: list[tuple[int, int]]) -> None:
    events = [(pipes[0][0], Cause.ASKED), (pipes[1][0], Cause.TARGET)]
    os.write(pipes[1][1], b"!")
    assert wait_for(events, 0) is Cause.TARGET
    os.write(pipes[0][1], b"!")
    assert wait_for(events, time.monotonic_ns() + 60 * SECOND) is Cause.ASKED


def test_ticks_come_now_and_again_and_may_end_the_wait() -> None:
    ticks: list[int] = []

    def tick() -> Cause | None:
        ticks.append(time.monotonic_ns())
        return Cause.SIZE if len(ticks) == 2 else None

    assert wait_for([], time.monotonic_ns() + 60 * SECOND, tick) is Cause.SIZE
    assert ticks[1] - ticks[0] > SECOND // 2


def test_a_wish_of_the_program_itself_from_another_thread() -> None:
    found: list[int] = []

    def ask_in_vain_and_then_ask(stop: StopRequest) -> None:
        with StopRequest(signals=()) as other:  # no signals: allowed beside the main thread
            other.ask()
            found.append(other.number)
        for _ in range(100_000):  # more than a pipe holds
            stop.ask()

    with StopRequest() as stop:
        assert not stop.is_asked
        thread = threading.Thread(target=ask_in_vain_and_then_ask, args=(stop,))
        thread.start()
        assert wait_for([(stop.descriptor, Cause.ASKED)], time.monotonic_ns() + 60 * SECOND) is Cause.ASKED
        thread.join()
        assert (stop.is_asked, stop.number) == (True, 0)
    assert found == [0]


def test_a_moment_that_has_passed_is_told_with_how_long_ago() -> None:
    check_not_passed(0, 5 * SECOND)
    check_not_passed(5 * SECOND, 5 * SECOND)
    with pytest.raises(CaptureError, match=r"had passed by 1\.250 s when perf was attached"):
        check_not_passed(5 * SECOND, 25 * SECOND // 4)


def test_edges_stay_where_they_were_planned() -> None:
    """Windows of 10 s.  A window that begins 0.1 s late ends on time, one that begins 0.3 s late is moved."""
    assert edge_after(100, 100, 10, 0) == 110
    assert edge_after(100 * SECOND, 100 * SECOND + SECOND // 10, 10 * SECOND, 0) == 110 * SECOND
    assert edge_after(100 * SECOND, 100 * SECOND + 3 * SECOND // 10, 10 * SECOND, 0) == 110 * SECOND + 3 * SECOND // 10


def test_the_last_window_takes_what_is_left() -> None:
    assert [edge_after(100, 100, 10, end) for end in (104, 110, 114, 116, 130)] == [104, 110, 114, 110, 110]
