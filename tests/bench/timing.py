"""Whole processes, timed: wall and CPU time, memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Timing:
    """Of one command with all its processes: wall and CPU seconds, and the largest resident set of any of them."""

    wall: float
    cpu: float
    memory_mb: float


@dataclass(frozen=True)
class Contender:
    """A command to be timed; ``name`` as printed.  ``peer``: name of the command that its ratio is to, "" for none.
    ``at_least``, ``memory_below_mb``: what the ratio and the memory are held to, 0 for nothing."""

    name: str
    command: str
    peer: str = ""
    at_least: float = 0
    memory_below_mb: float = 0


def environment(folder: Path) -> dict[str, str]:
    """Compiled modules and symbol caches are kept beside the captures: what is timed is the tool as installed."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return own | {
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": str(folder / "pycache"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


def timed(command: str, folder: Path) -> Timing:
    """One run through the shell (pipes are part of what is compared); output is thrown away."""
    started = time.perf_counter()
    with subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        message = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command}\n{message.decode(errors='replace')[-2000:]}")
    return Timing(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def compare(title: str, contenders: Sequence[Contender], folder: Path, rounds: int) -> bool:
    """Prints medians of interleaved rounds, each command in a fresh process; returns whether all is kept that is held to."""
    for contender in contenders:
        timed(contender.command, folder)  # fills caches, the peer's page cache among them
    timings: dict[str, list[Timing]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for contender in contenders:
            timings[contender.name].append(timed(contender.command, folder))
    print(f"\n{title}\n{'':40}{'wall':>9}{'cpu':>9}{'memory':>9}{'ratio':>8}{'cpu ratio':>11}   held to")
    kept = [_row(contender, timings) for contender in contenders]
    return all(kept)


def _row(contender: Contender, timings: dict[str, list[Timing]]) -> bool:
    """Prints one line of the table."""
    own = _medians(timings[contender.name])
    text = f"{contender.name:40}{own.wall:8.3f}s{own.cpu:8.3f}s{own.memory_mb:6.0f} MB"
    is_kept, held_to = True, ""
    if contender.peer:
        peer = _medians(timings[contender.peer])
        text += f"{peer.wall / own.wall:7.2f}x{peer.cpu / own.cpu:10.2f}x"
        if contender.at_least:
            is_kept = peer.wall / own.wall >= contender.at_least
            held_to = f"   >= {contender.at_least}x {'kept' if is_kept else 'MISSED'}"
    if contender.memory_below_mb:
        fits = own.memory_mb < contender.memory_below_mb
        held_to += f"   < {contender.memory_below_mb:.0f} MB {'kept' if fits else 'MISSED'}"
        is_kept &= fits
    print(text + held_to, flush=True)
    return is_kept


def _medians(runs: Sequence[Timing]) -> Timing:
    """Medians of the times, the largest memory."""
    return Timing(
        statistics.median(run.wall for run in runs),
        statistics.median(run.cpu for run in runs),
        max(run.memory_mb for run in runs),
    )
