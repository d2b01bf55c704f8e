"""Temporary directories of a store, on its own file system, and what crashed processes left in them."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import StoreError

STRAY_AGE_S = 24 * 3600.0


class Scratch:
    """Temporary directories below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextlib.contextmanager
    def working_directory(self) -> Iterator[Path]:
        """A fresh directory, removed at the end."""
        directory = self._directory / f"{os.getpid()}-{secrets.token_hex(4)}"
        with store_errors(directory):
            directory.mkdir(parents=True)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def clean(self) -> None:
        """Removes what nobody has touched for ``STRAY_AGE_S``: its process was killed."""
        limit_s = time.time() - STRAY_AGE_S
        with contextlib.suppress(FileNotFoundError, PermissionError):
            for stray in list(self._directory.iterdir()):
                if _newest_change_s(stray) < limit_s:
                    shutil.rmtree(stray, ignore_errors=True)


def _newest_change_s(directory: Path) -> float:
    times = [directory.lstat().st_mtime]
    with contextlib.suppress(OSError):
        times += [entry.lstat().st_mtime for entry in directory.iterdir()]
    return max(times)


@contextlib.contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Failures of the file system as ``StoreError`` that names the file."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror or error}") from None
