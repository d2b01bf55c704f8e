"""What happens around a run: the command before it, and what perf leaves out without saying so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.experiment.run.executor import run_before
from profiler.experiment.run.run_recording import missing_kernel_notes, strayed, substituted_event
from support.small_captures import small_capture, small_info


@pytest.mark.parametrize(
    ("command", "failure"),
    [
        ((), ""),
        (("true",), ""),
        (("false",), "--before command ended with 1"),
        (("sh", "-c", "echo fine; echo no room >&2; exit 3"), "--before command ended with 3: no room"),
        (("/etc/passwd",), f"--before: /etc/passwd: cannot be run in {Path.cwd()}: Permission denied"),
        (("sh", "-c", "kill $$"), "--before command ended with -15"),
    ],
)
def test_command_before_a_run(tmp_path: Path, command: tuple[str, ...], failure: str) -> None:
    assert run_before(command, tmp_path / "before") == failure


def test_recordings_of_user_space_alone_are_noted() -> None:
    assert missing_kernel_notes("cpu-clock", ["cpu-clock"]) == []
    assert missing_kernel_notes("cpu-clock:u", ["cpu-clock:u"]) == []
    assert "perf_event_paranoid" in missing_kernel_notes("cpu-clock", ["cpu-clock:u"])[0]


@pytest.mark.parametrize(
    ("asked", "recorded"),
    [
        ("cpu-clock", ["cpu-clock", "dummy:HG"]),
        ("cpu-clock:u", ["cpu-clock:uH"]),
        ("cpu-clock,page-faults", ["cpu-clock", "page-faults"]),
        ("cycles:pp", ["cycles:ppH"]),
        ("task-clock", ["task-clock"]),
    ],
)
def test_events_recorded_as_asked_for(asked: str, recorded: list[str]) -> None:
    assert substituted_event(asked, recorded) == ""


def test_a_clock_in_place_of_the_event_is_a_failure() -> None:
    # What perf 6.1 records for these where the processor's counters are not there.
    for asked, recorded in (("cycles", ["cpu-clock", "dummy:HG"]), ("cycles:pp", ["cpu-clock:ppH"])):
        assert substituted_event(asked, recorded) == (
            f"event {asked!r} is not counted on this machine, and perf recorded cpu-clock in its place: ask for that"
        )


def test_samples_outside_of_the_given_processors() -> None:
    """What is not known, -1, strayed nowhere; without processors to keep to, nothing can stray."""
    capture = small_capture({"main": 4}, small_info("a"))
    moved = replace(capture, samples=replace(capture.samples, cpu=np.array([0, 2, 5, -1], np.int16)))
    assert strayed(moved, frozenset({0})) == ["it ran on CPU 2, 5, outside of those it was given"]
    assert strayed(moved, frozenset({0, 2, 5})) == []
    assert strayed(moved, frozenset()) == []
    assert strayed(small_capture({}, small_info("a")), frozenset({0})) == []
