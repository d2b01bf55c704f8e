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
        groups.add(group) if line.startswith(b"+") else groups.discard(group)
    _signal(groups, int(sys.argv[1]))
    deadline = time.monotonic() + GRACE_S
    while groups and time.monotonic() < deadline:
        groups = {group for group in groups if _signal({group}, 0)}
        time.sleep(0.02)
    _signal(groups, signal.SIGKILL)


def _signal(groups: set[int], number: int) -> bool:
    """Whether one of them is there."""
    is_there = False
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
            is_there = True
    return is_there


if __name__ == "__main__":
    _main()
