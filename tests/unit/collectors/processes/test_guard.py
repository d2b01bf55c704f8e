"""Commands that put themselves on the guard's list."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Sequence

from collectors.processes.guard import GroupGuard


def start(guard: GroupGuard, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        guard.listed(arguments), stdin=guard.list_descriptor, stdout=subprocess.PIPE, start_new_session=True
    )


def test_what_is_listed_ends_with_the_guard() -> None:
    with GroupGuard() as guard:
        process = start(guard, ("sleep", "60"))
        descriptor = os.pidfd_open(process.pid)
        assert not select.select([descriptor], [], [], 0.2)[0]
    assert process.wait(30) == -signal.SIGTERM
    os.close(descriptor)
    process.communicate()


def test_it_has_no_input_and_the_signals_of_before_even_when_the_guard_is_gone() -> None:
    """SIGPIPE is number 13: bit 12 of the mask of ignored signals."""
    script = "cat; grep SigIgn /proc/self/status; echo $0 $#"
    with GroupGuard() as guard:
        whole = start(guard, ("sh", "-c", script, "the name", "two words"))
        printed = whole.communicate(timeout=30)[0].decode().split()
        guard._process.kill()
        guard._process.wait()
        orphan = start(guard, ("sh", "-c", script, "the name", "two words"))
        assert orphan.communicate(timeout=30)[0].decode().split() == printed
    assert (whole.returncode, orphan.returncode) == (0, 0)
    assert int(printed[1], 16) >> 12 & 1 == 0
    assert printed[2:] == ["the", "name", "1"]
