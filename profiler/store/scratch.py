"""Temporary directories of a store, on its own file system, and what crashed processes left in them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import StoreError, StoreFullError

STRAY_AGE_S = 24 * 3600.0
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Scratch:
    """Temporary directories below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextlib.contextmanager
    def working_directory(self) -> Iterator[Path]:
        """A fresh directory, removed at the end."""
        directory = self._directory / f"{os.getpid()}-{process_namespace()}-{secrets.token_hex(4)}"
        with store_errors(directory):
            directory.mkdir(parents=True)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def clean(self) -> None:
        """Removes what a process left that is gone, and what nobody has touched for ``STRAY_AGE_S``: processes of other hosts
        and containers cannot be asked after."""
        limit_s = time.time() - STRAY_AGE_S
        with contextlib.suppress(FileNotFoundError, PermissionError):
            for stray in list(self._directory.iterdir()):
                if _is_owner_gone(stray.name) or _newest_change_s(stray) < limit_s:
                    shutil.rmtree(stray, ignore_errors=True)


def process_namespace() -> str:
    """Equal where a process ID means the same process: this boot of this host, this PID namespace; "" where that is unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return hashlib.sha256(f"{boot} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:12]
    except OSError:
        return ""


def _is_owner_gone(name: str) -> bool:
    pid, _, rest = name.partition("-")
    namespace = rest.partition("-")[0]
    if not pid.isdecimal() or int(pid) < 1 or not namespace or namespace != process_namespace():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def _newest_change_s(directory: Path) -> float:
    times = [directory.lstat().st_mtime]
    with contextlib.suppress(OSError):
        times += [entry.lstat().st_mtime for entry in directory.iterdir()]
    return max(times)


@contextlib.contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Failures of the file system as ``StoreError`` that names the file; ``StoreFullError`` when there is no room."""
    try:
        yield
    except OSError as error:
        kind = StoreFullError if error.errno in _FULL else StoreError
        raise kind(f"{error.filename or path}: {error.strerror or error}") from None
