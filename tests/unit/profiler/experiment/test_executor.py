"""What happens around a run: the command before it, and what perf leaves out without saying so."""

from __future__ import annotations

import pytest

from profiler.experiment.executor import missing_kernel_notes, run_before


@pytest.mark.parametrize(
    ("command", "failure"),
    [
        ((), ""),
        (("true",), ""),
        (("false",), "--before command ended with 1"),
        (("sh", "-c", "echo fine; echo no room >&2; exit 3"), "--before command ended with 3: no room"),
        (("/etc/passwd",), "--before command cannot be run: Permission denied"),
        (("sh", "-c", "kill $$"), "--before command ended with -15"),
    ],
)
def test_command_before_a_run(command: tuple[str, ...], failure: str) -> None:
    assert run_before(command) == failure


def test_recordings_of_user_space_alone_are_noted() -> None:
    assert missing_kernel_notes("cpu-clock", ["cpu-clock"]) == []
    assert missing_kernel_notes("cpu-clock:u", ["cpu-clock:u"]) == []
    assert "perf_event_paranoid" in missing_kernel_notes("cpu-clock", ["cpu-clock:u"])[0]
