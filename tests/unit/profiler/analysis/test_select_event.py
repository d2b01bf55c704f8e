"""The event of an analysis."""

from __future__ import annotations

import pytest

from profiler.analysis.select_event import samples_of_event, select_event
from profiler.errors import AnalysisError, UsageError
from profiler.model.capture import Capture
from profiler.model.event import Event
from support.profile_from_text import draw, info_of, samples_from_text

CLOCK = Event("cpu-clock", "ns", 1999, 0)
USER_CLOCK = Event("cpu-clock:u", "ns", 1999, 0)
FAULTS = Event("page-faults", "page-faults", 0, 1)
CYCLES = Event("cycles", "cycles", 1999, 0)
SWITCH = Event("sched:sched_switch", "sched:sched_switch", 0, 1)


def capture(*events: Event) -> Capture:
    return draw(samples_from_text("event  0  0\n---\nmain  main"), info_of(source="a.data"), events).capture


@pytest.mark.parametrize("wanted", ["", "auto"])
def test_the_only_event_or_the_cpu_clock(wanted: str) -> None:
    assert select_event([capture(FAULTS)], wanted) == FAULTS
    assert select_event([capture(FAULTS, CLOCK)], wanted) == CLOCK
    assert select_event([capture(FAULTS, USER_CLOCK)], wanted) == USER_CLOCK
    with pytest.raises(UsageError, match=r"a\.data holds several events: cycles, page-faults; choose one with --event"):
        select_event([capture(FAULTS, CYCLES)], wanted)


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
