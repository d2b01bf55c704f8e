"""CPU time that the samples do not account for: figures of a program of 400 short threads, and arithmetic by hand."""

from __future__ import annotations

import pytest

from profiler.analysis.quality.cpu_coverage import coverage_findings
from profiler.model.capture import Capture
from profiler.model.event import Event
from profiler.model.run import RunMode, RunOutcome
from support.profile_from_text import draw, info_of, samples_from_text

CLOCK = Event("cpu-clock", "ns", 1999, 0)
PERIOD_NS = 500_250
MS = 1_000_000


def capture(samples: int, user_ns: int, system_ns: int = 0, event: Event = CLOCK, mode: RunMode = RunMode.PROFILED) -> Capture:
    weights = "  ".join([str(PERIOD_NS)] * samples)
    stacks = "  ".join(["main"] * samples)
    text = f"weight  {weights}\n---\n        {stacks}"
    return draw(
        samples_from_text(text), info_of(mode=mode, outcome=RunOutcome(user_ns=user_ns, system_ns=system_ns)), (event,)
    ).capture


def test_threads_shorter_than_a_period_are_not_seen() -> None:
    # 45 samples of 500,250 ns are 22.5 ms; the kernel charged 20.0 + 133.9 ms; 22.5 / 153.9 = 14.6 %.
    (warning,) = coverage_findings("tc", [capture(45, 20 * MS, 133_900_000)], CLOCK)
    assert warning.code == "cpu-time-unseen"
    assert warning.message == "tc: the samples hold 15 % of the CPU time that the program used"
    assert "raise --frequency" in warning.advice


def test_chance_and_full_coverage_are_no_warning() -> None:
    assert coverage_findings("a", [capture(176, 89_700_000)], CLOCK) == ()
    # 2 of 4 expected samples: within the scatter of so few.
    assert coverage_findings("a", [capture(2, 2 * MS)], CLOCK) == ()
    # 400 expected, 340 found: 3 standard deviations, although below 90 %.
    assert coverage_findings("a", [capture(340, 400 * PERIOD_NS)], CLOCK) == ()
    # The same share of four times as many samples is six.
    assert len(coverage_findings("a", [capture(340, 400 * PERIOD_NS)] * 4, CLOCK)) == 1


def test_only_clocks_of_recorded_programs_are_asked() -> None:
    user_clock = Event("cpu-clock:uH", "ns", 1999, 0)
    assert coverage_findings("a", [capture(100, 50 * MS, 500 * MS, user_clock)], user_clock) == ()
    assert len(coverage_findings("a", [capture(100, 500 * MS, 0, user_clock)], user_clock)) == 1
    cycles = Event("cycles", "cycles", 1999, 0)
    assert coverage_findings("a", [capture(45, 150 * MS, 0, cycles)], cycles) == ()
    assert coverage_findings("a", [capture(45, 150 * MS, mode=RunMode.IMPORTED)], CLOCK) == ()
    assert coverage_findings("a", [], CLOCK) == ()


@pytest.mark.parametrize("name", ["cpu-clock:k", "cpu-clock:ku"])
def test_clocks_of_the_kernel_are_not_asked(name: str) -> None:
    event = Event(name, "ns", 1999, 0)
    assert coverage_findings("a", [capture(45, 150 * MS, 0, event)], event) == ()
