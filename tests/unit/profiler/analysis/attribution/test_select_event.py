"""The event of an analysis."""

from __future__ import annotations

import pytest

from profiler.analysis.attribution.select_event import other_events, samples_of_event, select_event
from profiler.errors import AnalysisError, UsageError
from profiler.model.capture import Capture
from profiler.model.event import Event
from support.profile_from_text import DrawnSample, draw, info_of, samples_from_text

CLOCK = Event("cpu-clock", "ns", 1999, 0)
USER_CLOCK = Event("cpu-clock:u", "ns", 1999, 0)
TASK_CLOCK = Event("task-clock", "ns", 1999, 0)
FAULTS = Event("page-faults", "page-faults", 0, 1)
CYCLES = Event("cycles", "cycles", 1999, 0)
INSTRUCTIONS = Event("instructions", "instructions", 1999, 0)
SWITCH = Event("sched:sched_switch", "sched:sched_switch", 0, 1)


def capture(*events: Event, sampled: tuple[int, ...] = (0,), source: str = "a.data") -> Capture:
    """One sample of each event of the rows ``sampled``."""
    samples = [DrawnSample(("main",), event=row) for row in sampled]
    return draw(samples, info_of(source=source), events).capture


@pytest.mark.parametrize("wanted", ["", "auto"])
def test_a_clock_or_cycles_or_the_only_event_with_samples(wanted: str) -> None:
    assert select_event([capture(FAULTS)], wanted) == FAULTS
    assert select_event([capture(FAULTS, CLOCK)], wanted) == CLOCK
    assert select_event([capture(FAULTS, USER_CLOCK)], wanted) == USER_CLOCK
    assert select_event([capture(FAULTS, TASK_CLOCK)], wanted) == TASK_CLOCK
    assert select_event([capture(TASK_CLOCK, FAULTS, CLOCK)], wanted) == CLOCK
    assert select_event([capture(FAULTS, CYCLES, sampled=(0, 1))], wanted) == CYCLES
    message = r"a\.data holds several events: page-faults, sched:sched_switch; choose one with --event"
    with pytest.raises(UsageError, match=message):
        select_event([capture(FAULTS, SWITCH, INSTRUCTIONS, sampled=(0, 1))], wanted)


def test_an_event_without_samples_is_no_choice() -> None:
    assert select_event([capture(FAULTS, SWITCH, sampled=(1,))], "") == SWITCH
    assert select_event([capture(FAULTS, SWITCH, sampled=())], "") == FAULTS
    assert select_event([capture(CLOCK, USER_CLOCK, sampled=(1,))], "") == USER_CLOCK
    assert select_event([capture(FAULTS, SWITCH, sampled=()), capture(FAULTS, SWITCH, sampled=(1,))], "") == SWITCH


def test_the_events_beside_the_one_that_was_taken_are_named() -> None:
    dummy = Event("dummy:HG", "dummy", 0, 1)
    first = capture(CLOCK, FAULTS, SWITCH, dummy, sampled=(0, 1, 1, 3))
    second = capture(CLOCK, FAULTS, SWITCH, dummy, sampled=(0, 0, 1, 2))
    (warning,) = other_events("arm", [first, second], CLOCK, "")
    assert warning.code == "other-events"
    assert warning.message == ("arm: shows cpu-clock; also recorded: page-faults (3 samples), sched:sched_switch (1 sample)")
    assert other_events("arm", [first, second], CLOCK, "cpu-clock") == ()
    assert other_events("arm", [capture(CLOCK, FAULTS)], CLOCK, "auto") == ()
    assert other_events("arm", [capture(USER_CLOCK, FAULTS)], CLOCK, "auto") == ()


def test_the_event_that_perf_adds_for_its_own_records_is_no_choice() -> None:
    dummy = Event("dummy:HG", "dummy", 0, 1)
    assert select_event([capture(dummy, FAULTS)], "") == FAULTS
    with pytest.raises(UsageError, match=r"has no single event 'dummy:HG'; it holds: page-faults"):
        select_event([capture(dummy, FAULTS)], "dummy:HG")


def test_names_with_and_without_modifiers() -> None:
    assert select_event([capture(FAULTS, USER_CLOCK)], "cpu-clock") == USER_CLOCK
    assert select_event([capture(CLOCK, USER_CLOCK)], "cpu-clock:u") == USER_CLOCK
    assert select_event([capture(CLOCK, USER_CLOCK)], "cpu-clock") == CLOCK
    assert select_event([capture(CLOCK, SWITCH)], "sched:sched_switch") == SWITCH
    with pytest.raises(UsageError, match=r"a\.data has no single event 'instructions'; it holds: cpu-clock, page-faults"):
        select_event([capture(CLOCK, FAULTS)], "instructions")
    with pytest.raises(UsageError, match="it holds: sched:sched_switch"):
        select_event([capture(SWITCH)], "sched")


def test_runs_of_one_arm_must_count_the_same() -> None:
    assert select_event([capture(CLOCK), capture(USER_CLOCK)], "") == CLOCK
    with pytest.raises(AnalysisError, match="different events"):
        select_event([capture(CLOCK), capture(CYCLES)], "")


def test_captures_without_events_have_no_say() -> None:
    assert select_event([capture(), capture(CLOCK)], "") == CLOCK
    assert select_event([], "auto").name == ""


def test_only_samples_of_the_event_are_chosen() -> None:
    drawn = samples_from_text("event  0  1  0\n---\nmain  main  f")
    two = draw(drawn, None, (CLOCK, FAULTS)).capture
    assert samples_of_event(two, CLOCK).tolist() == [True, False, True]
    assert samples_of_event(two, FAULTS).tolist() == [False, True, False]
    # One event opened once per group of CPUs has two rows of one name; both are the event.
    twice = draw(drawn, None, (CLOCK, CLOCK)).capture
    assert samples_of_event(twice, CLOCK).tolist() == [True, True, True]
    assert samples_of_event(draw(drawn, None, (USER_CLOCK, FAULTS)).capture, CLOCK).tolist() == [True, False, True]
