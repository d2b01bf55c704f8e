"""`slotscope serve` in a process of its own, on a free port of loopback."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_START_S = 30.0


@dataclass(frozen=True)
class ServedPages:
    """``url``: without a slash at its end."""

    url: str
    log: Path


@contextlib.contextmanager
def served(store: Path, log: Path, *options: str) -> Iterator[ServedPages]:
    """A server on the store, until the context ends; ``log``: where it writes what it says."""
    command = [sys.executable, "-m", "profiler.cli.main", "--store", str(store), "serve", "--port", "0", *options]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield ServedPages(_url(process, log), log)
    finally:
        process.terminate()
        process.wait(_START_S)


def _url(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        said = log.read_text()
        if " at http" in said and "\n" in said:
            return said.partition(" at ")[2].split()[0]
        time.sleep(0.05)
    raise AssertionError(f"the server did not start: {log.read_text()}")
