"""Ends what slotscope started when slotscope itself is gone, however it was killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from collectors.processes import group_guard

# Not a function of ours between fork and exec, which may hang beside other threads; and not the parent after the start, which
# may be killed before.  A guard that somebody ended is no reason to die of SIGPIPE, whose meaning is then as it was.
_LISTED = ("sh", "-c", 'trap "" PIPE; echo "+$$" >&0 2>/dev/null; trap - PIPE; exec "$@" </dev/null', "sh")


class GroupGuard:
    """A process that outlives slotscope by a moment and then ends the process groups on its list; a context manager.

    ``held``: descriptors, such as of locks, that stay open until everything on the list has ended.  A normal end of the context
    ends what is still on the list, too.  ``polite``: the signal that asks a group for its end, some time before SIGKILL.
    """

    def __init__(self, held: Sequence[int] = (), polite: signal.Signals = signal.SIGTERM) -> None:
        self._held = tuple(held)
        self._polite = polite

    def __enter__(self) -> GroupGuard:
        # A session of its own: the terminal's Ctrl-C reaches slotscope, which ends everything in order.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", group_guard.__file__, str(int(self._polite))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=self._held,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._list = self._process.stdin.fileno()
        with self._process.stdout as ready:  # its start must not fall into anything that is measured
            ready.read()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._list = -1  # the number may be that of another file from now on
        self._process.wait()

    @property
    def list_descriptor(self) -> int:
        """The standard input of a command made by ``listed``."""
        return self._list

    def listed(self, arguments: Sequence[str]) -> list[str]:
        """The command that puts itself on the list and then becomes ``arguments``; it must lead a group of its own.  Its
        standard input, which is to be ``list_descriptor``, is empty from then on."""
        return [*_LISTED, *arguments]

    def watch(self, group: int) -> None:
        """Puts a process group on the list."""
        self._write(b"+%d\n" % group)

    def release(self, group: int) -> None:
        """The group has ended, or may go on."""
        self._write(b"-%d\n" % group)

    def _write(self, line: bytes) -> None:
        if self._list < 0:
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(self._list, line)
