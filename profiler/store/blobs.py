"""Where captures lie: a small interface, and the directory that is its default."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from profiler.errors import StoreError

STRAY_AGE_S = 24 * 3600.0
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@,-]*(/[A-Za-z0-9_][A-Za-z0-9_.+@,-]*)*")


class Blobs(Protocol):
    """Immutable byte strings under keys of the form ``session/name``."""

    def put(self, key: str, data: bytes) -> bool:
        """Stores durably and all at once; False, and nothing stored, when the key is taken."""

    def get(self, key: str) -> bytes:
        """``StoreError`` when there is none."""

    def remove(self, key: str) -> None:
        """Silent when there is none."""

    def remove_session(self, session: str) -> None:
        """Everything under ``session/``, strays included."""


class DirectoryBlobs:
    """Blobs as files ``captures/<session>/<name>`` of a directory, written under a temporary name first.

    After ``put`` returned True the file survives a power cut; a crash before leaves at most a file in ``tmp``, which a later
    ``clean`` removes by age.
    """

    def __init__(self, directory: Path) -> None:
        self._captures = directory / "captures"
        self._temporary = directory / "tmp"

    def path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise StoreError(f"{self._captures}: {key!r} is not the name of a capture: the catalog is damaged")
        return self._captures / key

    def put(self, key: str, data: bytes) -> bool:
        target = self.path(key)
        with _store_errors(target), self.working_directory() as working:
            temporary = working / "capture"
            with temporary.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            return _publish(temporary, target)

    def put_file(self, key: str, source: Path) -> bool:
        """Moves a file of the same file system in, as ``put`` does."""
        target = self.path(key)
        with _store_errors(target):
            with source.open("rb") as stream:
                os.fsync(stream.fileno())
            return _publish(source, target)

    def get(self, key: str) -> bytes:
        path = self.path(key)
        with _store_errors(path):
            return path.read_bytes()

    def remove(self, key: str) -> None:
        path = self.path(key)
        with _store_errors(path):
            path.unlink(missing_ok=True)

    def remove_session(self, session: str) -> None:
        path = self.path(session)
        with _store_errors(path), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    @contextlib.contextmanager
    def working_directory(self) -> Iterator[Path]:
        """A fresh directory on the store's file system, removed at the end."""
        directory = self._temporary / f"{os.getpid()}-{secrets.token_hex(4)}"
        with _store_errors(directory):
            directory.mkdir(parents=True)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def clean(self, now_s: float | None = None) -> None:
        """Removes what crashed recorders left in ``tmp`` more than a day ago."""
        limit = (time.time() if now_s is None else now_s) - STRAY_AGE_S
        with contextlib.suppress(FileNotFoundError, PermissionError):
            for stray in list(self._temporary.iterdir()):
                if _newest_change_s(stray) < limit:
                    shutil.rmtree(stray, ignore_errors=True)


def _newest_change_s(directory: Path) -> float:
    times = [directory.lstat().st_mtime]
    with contextlib.suppress(OSError):
        times += [entry.lstat().st_mtime for entry in directory.iterdir()]
    return max(times)


def _publish(temporary: Path, target: Path) -> bool:
    """Gives the finished file its name.  A hard link, unlike a rename, fails when the name is taken; a file system without
    hard links gets the rename."""
    if not target.parent.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        _sync_directory(target.parent.parent)
    try:
        os.link(temporary, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        if target.exists():
            return False
        os.replace(temporary, target)
    temporary.unlink(missing_ok=True)
    _sync_directory(target.parent)
    return True


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror or error}") from None
