"""A small file system in a mount namespace of its own, which lasts as long as the process that holds it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_HOLD = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo there && read -r _'


@cache
def why_not() -> str:
    """Why no file system can be mounted here, "" = one can."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return "a file system of its own can be mounted by root only, with unshare and nsenter"
    command = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"no file system can be mounted here: {tried.stderr.strip()}" if tried.returncode else ""


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """``inside``: runs a command that sees the disk.  ``seen``: the disk, from outside."""

    inside: tuple[str, ...]
    seen: Path

    def fill(self, leaving_bytes: int) -> None:
        """With a file beside everything else; what was in it before is counted as free."""
        self.empty()
        state = os.statvfs(self.seen)
        count = max(0, state.f_bavail * state.f_frsize - leaving_bytes)
        with (self.seen / "ballast").open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, max(1, count))

    def empty(self) -> None:
        (self.seen / "ballast").unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(directory: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """On ``directory``, which must be there; what lies in it is hidden to those who see the disk."""
    command = ["unshare", "--mount", "sh", "-c", _HOLD, "sh", str(size_bytes), str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"there\n"
        try:
            yield SmallDisk(("nsenter", f"--mount=/proc/{holder.pid}/ns/mnt"), Path(f"/proc/{holder.pid}/root{directory}"))
        finally:
            holder.stdin.close()


@contextlib.contextmanager
def visible_disk(directory: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """As ``small_disk``, seen by everybody: SQLite resolves the links in a path, and so never comes to another namespace."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(directory)], check=True)
    try:
        yield SmallDisk((), directory)
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
