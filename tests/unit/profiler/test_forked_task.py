from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from profiler.forked_task import ForkedTask


def killed() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b"never"


def failing() -> bytes:
    raise SystemExit(0)


def test_the_bytes_come_back_from_a_process_of_its_own() -> None:
    large = os.urandom(3_000_000)  # more than a pipe holds
    with ForkedTask(lambda: large + str(os.getpid()).encode()) as task:
        answer = task.answer()
    assert answer is not None
    assert answer[: len(large)] == large
    assert int(answer[len(large) :]) != os.getpid()


@pytest.mark.parametrize("work", [killed, failing])
def test_work_that_does_not_end_well_has_no_answer(work: type[bytes], capfd: pytest.CaptureFixture[str]) -> None:
    with ForkedTask(work) as task:
        assert task.answer() is None
    assert capfd.readouterr() == ("", "")


def test_nothing_is_left_of_a_task_that_nobody_waited_for() -> None:
    with ForkedTask(signal.pause) as task:  # type: ignore[arg-type]
        process = task.process
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_no_copy_is_made_while_other_threads_run() -> None:
    """In a process of its own: here, tests before this one may have left threads behind."""
    script = """
import threading
from profiler.forked_task import can_fork
blocked = threading.Event()
thread = threading.Thread(target=blocked.wait)
print(can_fork())
thread.start()
print(can_fork())
blocked.set()
thread.join()
print(can_fork())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "True"]
