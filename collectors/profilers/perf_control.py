"""A perf that is told over a pipe when to begin (``--control``, perf 5.10 or later), so that nothing before is counted."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import IO

from collectors.processes.guard import GroupGuard
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass

ACKNOWLEDGE_S = 10.0


@dataclass(frozen=True, slots=True)
class ControlDescriptors:
    """perf's ends of the two control pipes."""

    commands: int
    acknowledgements: int

    @property
    def option(self) -> tuple[str, str]:
        return ("--control", f"fd:{self.commands},{self.acknowledgements}")


class PerfChannel:
    """A perf that was started and does what it is told.  ``commands``: our end of the pipe for commands, to be closed when perf
    has ended; ``close_answers`` closes the other one."""

    def __init__(self, process: subprocess.Popen[bytes], commands: int, answers: int, arguments: Sequence[str]) -> None:
        self.process = process
        self.commands = commands
        self.arguments = tuple(arguments)
        self._answers = answers

    def send(self, word: bytes, timeout_s: float = 0.0) -> bool:
        """Returns when perf has done it; False when it went away instead.  ``timeout_s``: 0 = ``ACKNOWLEDGE_S``.
        ``CaptureError`` when it does neither."""
        limit_s = timeout_s or ACKNOWLEDGE_S
        try:
            os.write(self.commands, word + b"\n")
        except BrokenPipeError:
            return False
        ready, _, _ = select.select([self._answers], [], [], limit_s)
        if not ready:
            raise CaptureError(
                f"perf started, but did not acknowledge within {limit_s:.0f} s that it records: it hangs, or the program "
                "called perf here does not know --control (perf 5.10 or later does)"
            )
        return os.read(self._answers, 64).startswith(b"ack")

    def close_answers(self) -> None:
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1

    def kill(self) -> None:
        """Ends perf now, with both pipes."""
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        self.close_answers()


@dataclass(frozen=True, slots=True)
class ControlledPerf:
    """A perf that was started.  ``control``: our end of the pipe for commands, to be closed when perf has ended.
    ``is_enabled``: False when it ended instead of beginning."""

    process: subprocess.Popen[bytes]
    control: int
    arguments: tuple[str, ...]
    is_enabled: bool


def start_controlled(arguments: Callable[[ControlDescriptors], list[str]], messages: IO[bytes]) -> ControlledPerf:
    """Starts perf, whose output goes to ``messages``, and returns when its events are enabled.

    ``CaptureError``: perf cannot be run, or does not answer.
    """
    channel = open_channel(arguments, messages)
    try:
        is_enabled = channel.send(b"enable")
    except BaseException:
        channel.kill()
        raise
    channel.close_answers()
    if not is_enabled:
        channel.process.wait()
    return ControlledPerf(channel.process, channel.commands, channel.arguments, is_enabled)


def open_channel(
    arguments: Callable[[ControlDescriptors], list[str]], messages: IO[bytes], guard: GroupGuard | None = None
) -> PerfChannel:
    """Starts perf, whose output goes to ``messages``.  ``guard``: has it on its list before it becomes perf.

    ``CaptureError``: perf cannot be run.
    """
    with contextlib.ExitStack() as of_perf_ends, contextlib.ExitStack() as own_ends:
        command_read, command_write = os.pipe()
        of_perf_ends.callback(os.close, command_read)
        own_ends.callback(os.close, command_write)
        answer_read, answer_write = os.pipe()
        of_perf_ends.callback(os.close, answer_write)
        own_ends.callback(os.close, answer_read)
        of_perf = ControlDescriptors(command_read, answer_write)
        listed = arguments(of_perf)
        process = _start_process(listed, of_perf, messages, guard)
        own_ends.pop_all()  # they stay open
    return PerfChannel(process, command_write, answer_read, listed)


def _start_process(
    arguments: list[str], of_perf: ControlDescriptors, messages: IO[bytes], guard: GroupGuard | None
) -> subprocess.Popen[bytes]:
    if guard is not None and shutil.which(arguments[0]) is None:
        raise CaptureError(perf_not_runnable(FileNotFoundError()))
    # A session of its own keeps the terminal's Ctrl-C from it: it is stopped in order, after the program.
    try:
        return subprocess.Popen(
            arguments if guard is None else guard.listed(arguments),
            stdin=subprocess.DEVNULL if guard is None else guard.list_descriptor,
            stdout=messages,
            stderr=messages,
            pass_fds=(of_perf.commands, of_perf.acknowledgements),
            start_new_session=True,
            env=dict(os.environ, LC_ALL="C"),
        )
    except OSError as error:
        raise CaptureError(perf_not_runnable(error)) from None


def perf_not_runnable(error: OSError) -> str:
    """One line with the way out for a perf that cannot be executed."""
    if isinstance(error, FileNotFoundError):
        return "perf is not installed: install linux-perf (Debian), linux-tools-$(uname -r) (Ubuntu) or perf (Fedora, Arch)"
    return f"perf cannot be run: {error.strerror}"
