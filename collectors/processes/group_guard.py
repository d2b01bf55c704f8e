"""A process that outlives slotscope by a moment, to end what slotscope started.  Executed by its file name, never imported.

Closes standard output when it is ready, then reads lines ``+PGID`` and ``-PGID`` from standard input.  At its end, which
comes when slotscope ends, however that is killed, the process groups that are still on the list are ended: politely, by the
signal whose number is the only argument, then for certain.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

GRACE_S = 2.0


def _main() -> None:
    groups: set[int] = set()
    os.close(1)  # not sys.stdout.close(), which leaves the descriptor open
    for line in sys.stdin.buffer:
        group = int(line[1:])
        if line.startswith(b"+"):
            groups.add(group)
        else:
            groups.discard(group)
    for number in (int(sys.argv[1]), signal.SIGKILL):
        _signal(groups, number)
        groups = _still_running(groups, time.monotonic() + GRACE_S)


def _signal(groups: set[int], number: int) -> None:
    for group in groups:
        # Not permitted: what runs as another user ends with its service manager, if at all.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _still_running(groups: set[int], deadline: float) -> set[int]:
    """Those that still run at the deadline; returns as soon as none does."""
    while groups := groups & _running_groups() if groups else set():
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return groups


def _running_groups() -> set[int]:
    """Process groups with a member that is no zombie: nobody may be there to reap those."""
    found = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry.name}/stat", "rb") as file:
                state, _, group, *_ = file.read().rpartition(b") ")[2].split()
                if state not in (b"Z", b"X"):
                    found.add(int(group))
    return found


if __name__ == "__main__":
    _main()
