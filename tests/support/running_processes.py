"""What tests have started and not ended, known by the environment that it was given."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LeftProcess:
    """``test``: the one that was running when it was started."""

    pid: int
    command: str
    test: str

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command}) was left running by {self.test}"


def started_with(variable: str, within_s: float) -> list[LeftProcess]:
    """Processes with ``variable``, "NAME=value", in the environment that they were started with, and which do not end
    within so many seconds; without this process."""
    deadline = time.monotonic() + within_s
    while (left := _started_with(variable)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _started_with(variable: str) -> list[LeftProcess]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                environment = (entry / "environ").read_bytes().split(b"\0")
                if variable.encode() in environment:
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                    found.append(LeftProcess(int(entry.name), command, _test_of(environment)))
    return found


def _test_of(environment: list[bytes]) -> str:
    """What pytest wrote into it."""
    name = b"PYTEST_CURRENT_TEST="
    return next((part.removeprefix(name).decode() for part in environment if part.startswith(name)), "an unknown test")
