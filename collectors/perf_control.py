"""A perf that is told over a pipe when to begin (``--control``, perf 5.10 or later), so that nothing before is counted."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from profiler.errors import CaptureError

ACKNOWLEDGE_S = 10.0


@dataclass(frozen=True, slots=True)
class ControlDescriptors:
    """perf's ends of the two control pipes."""

    commands: int
    acknowledgements: int

    @property
    def option(self) -> tuple[str, str]:
        return ("--control", f"fd:{self.commands},{self.acknowledgements}")


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
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    of_perf = ControlDescriptors(command_read, answer_write)
    listed = arguments(of_perf)
    try:
        process = _start_process(listed, of_perf, messages)
    except BaseException:
        for descriptor in (command_write, answer_read):
            os.close(descriptor)
        raise
    finally:
        os.close(command_read)
        os.close(answer_write)
    try:
        is_enabled = _enable(command_write, answer_read)
    except BaseException:
        process.kill()
        process.wait()
        os.close(command_write)
        raise
    finally:
        os.close(answer_read)
    if not is_enabled:
        process.wait()
    return ControlledPerf(process, command_write, tuple(listed), is_enabled)


def _start_process(arguments: list[str], of_perf: ControlDescriptors, messages: IO[bytes]) -> subprocess.Popen[bytes]:
    # A session of its own keeps the terminal's Ctrl-C from it: it is stopped in order, after the program.
    try:
        return subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=messages,
            stderr=messages,
            pass_fds=(of_perf.commands, of_perf.acknowledgements),
            start_new_session=True,
            env=dict(os.environ, LC_ALL="C"),
        )
    except OSError as error:
        raise CaptureError(perf_not_runnable(error)) from None


def _enable(commands: int, acknowledgements: int) -> bool:
    """Sends the command; False when perf went away instead of acknowledging it.  ``CaptureError`` when it does neither."""
    try:
        os.write(commands, b"enable\n")
    except BrokenPipeError:
        return False
    ready, _, _ = select.select([acknowledgements], [], [], ACKNOWLEDGE_S)
    if not ready:
        raise CaptureError(
            f"perf started, but did not acknowledge within {ACKNOWLEDGE_S:.0f} s that it records: it hangs, or the program "
            "called perf here does not know --control (perf 5.10 or later does)"
        )
    return os.read(acknowledgements, 64).startswith(b"ack")


def perf_not_runnable(error: OSError) -> str:
    """One line with the way out for a perf that cannot be executed."""
    if isinstance(error, FileNotFoundError):
        return "perf is not installed: install linux-perf (Debian), linux-tools-$(uname -r) (Ubuntu) or perf (Fedora, Arch)"
    return f"perf cannot be run: {error.strerror}"
