"""Runs a piece of work in a process of its own, with limits for its time and memory, and measures it."""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CRASHED = 70
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Limits:
    """``memory_bytes``: address space beyond that of this process."""

    cpu_s: int = 20
    wall_s: int = 120
    memory_bytes: int = 1 << 30
    file_bytes: int = 1 << 27


@dataclass(frozen=True)
class Outcome:
    """``code``: of the exit, ``CRASHED`` for an exception, negative for a signal.  ``memory_bytes``: resident at its peak."""

    pid: int
    code: int
    out: bytes
    err: str
    cpu_s: float
    memory_bytes: int


def limited(work: Callable[[], int], directory: Path, limits: Limits) -> Outcome:
    """``work`` is done in ``directory``, where its standard output and error go to files."""
    out, err = directory / "standard.output", directory / "standard.error"
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _work_and_exit(work, directory, (out, err), limits)
    _, status, used = os.wait4(child, 0)
    return Outcome(
        pid=child,
        code=os.waitstatus_to_exitcode(status),
        out=out.read_bytes(),
        err=err.read_text("utf-8", "replace"),
        cpu_s=used.ru_utime + used.ru_stime,
        memory_bytes=used.ru_maxrss * 1024,
    )


def _work_and_exit(work: Callable[[], int], directory: Path, streams: tuple[Path, Path], limits: Limits) -> None:
    code = CRASHED
    try:
        for number, path in enumerate(streams, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        os.chdir(directory)
        os.environ.update({"XDG_CACHE_HOME": str(directory / "cache"), "HOME": str(directory)})
        _limit(limits)
        warnings.simplefilter("error")
        code = work()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - whatever it is, it is what is looked for
        traceback.print_exc(file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(code)


def _limit(limits: Limits) -> None:
    memory_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE_BYTES + limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_bytes, limits.file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(limits.wall_s)
