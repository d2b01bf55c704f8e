"""Processes that are started, run for a while beside others, and are ended with everything they started.

Each leads a session of its own.  What escapes into another session is not followed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from collectors.processes.guard import GroupGuard
from collectors.processes.launcher import resolve_program
from collectors.processes.process_status import has_running
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass

GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class GroupCommand:
    """``output``: file that takes standard output and standard error.  ``environment``: added to slotscope's own.  ``cpus``:
    where it may run, empty = everywhere."""

    arguments: tuple[str, ...]
    output: Path
    environment: tuple[tuple[str, str], ...] = ()
    cpus: frozenset[int] = frozenset()


class GroupProcess:
    """A process and its group.  Made by ``ProcessGroups.start``."""

    def __init__(self, command: GroupCommand, process: subprocess.Popen[bytes]) -> None:
        self.command = command
        self.pid = process.pid
        self._process = process
        self._descriptor = os.pidfd_open(process.pid)

    @property
    def descriptor(self) -> int:
        """Readable when the process has ended."""
        return self._descriptor

    def ends_within(self, seconds: float) -> bool:
        return first_to_end((self,), seconds) is not None

    def signal(self, number: int) -> None:
        """To the process alone, if it is there."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def exit_code(self) -> int:
        """Of a process that has ended; below 0 the signal that ended it."""
        return self._process.wait()

    def end(self) -> None:
        """Ends the process and what is left of its group: politely, then for certain."""
        try:
            if not self.ends_within(0):
                self._signal_group(signal.SIGTERM)
                self.ends_within(GRACE_S)
        finally:  # a second Ctrl-C shortens the wait, and must not leave the group behind
            self._signal_group(signal.SIGKILL)
            self._process.wait()

    def kill(self) -> None:
        """Ends the process and what is left of its group at once."""
        self._signal_group(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def first_to_end(processes: Sequence[GroupProcess], seconds: float) -> GroupProcess | None:
    """Waits for one of them; the first in the order given when several have ended, None when none does in time."""
    ready, _, _ = select.select([process.descriptor for process in processes], [], [], max(0.0, seconds))
    return next((process for process in processes if process.descriptor in ready), None)


@contextlib.contextmanager
def _running_on(cpus: frozenset[int]) -> Iterator[None]:
    """This thread, and with it what it starts; empty = where it is."""
    before = os.sched_getaffinity(0)
    if cpus:
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        if cpus:
            os.sched_setaffinity(0, before)


class ProcessGroups:
    """Starts processes; a context manager that leaves none of them behind.  ``guard`` sees to it when slotscope is killed."""

    def __init__(self, guard: GroupGuard) -> None:
        self._guard = guard
        self._started: list[GroupProcess] = []

    def __enter__(self) -> ProcessGroups:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            self.end(process)

    def start(self, command: GroupCommand) -> GroupProcess:
        """``CaptureError`` when it cannot be started."""
        program = resolve_program(command.arguments[0])
        try:
            with command.output.open("wb") as output, _running_on(command.cpus):
                process = subprocess.Popen(
                    self._guard.listed([str(program), *command.arguments[1:]]),
                    stdin=self._guard.list_descriptor,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **dict(command.environment)},
                    start_new_session=True,
                )
        except OSError as error:
            raise CaptureError(f"{command.arguments[0]}: cannot be executed: {error.strerror}") from None
        started = GroupProcess(command, process)
        self._started.append(started)
        return started

    def end(self, process: GroupProcess) -> None:
        """Ends what is left of a process that was started here; nothing happens the second time."""
        if process not in self._started:
            return
        process.end()
        self._started.remove(process)
        process.close()
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline and has_running(process.pid):
            time.sleep(0.005)
        self._guard.release(process.pid)
