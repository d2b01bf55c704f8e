"""Where captures lie: a small interface, and the directory that is its default."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from profiler.errors import StoreError
from profiler.model.quick_dataclass import dataclass
from profiler.store.durable_directory import make_directory, sync_directory
from profiler.store.scratch import Scratch, store_errors

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@,-]*(/[A-Za-z0-9_][A-Za-z0-9_.+@,-]*)*")


@dataclass(frozen=True, slots=True)
class BlobEntry:
    """``changed_s``: when it was written, s since 1970."""

    key: str
    changed_s: float


class Blobs(Protocol):
    """Immutable byte strings under keys of the form ``session/name``."""

    def put(self, key: str, data: bytes) -> bool:
        """Stores durably and all at once; False, and nothing stored, when the key is taken."""

    def put_file(self, key: str, source: Path) -> bool:
        """As ``put``, with the content of a file in a ``Scratch`` directory, which it may take away."""

    def get(self, key: str) -> bytes:
        """``StoreError`` when there is none."""

    def has(self, key: str) -> bool: ...

    def where(self, key: str) -> str:
        """The place of a blob, for messages."""

    def remove(self, key: str) -> None:
        """Silent when there is none."""

    def remove_session(self, session: str) -> None:
        """Everything under ``session/``, strays included."""

    def entries(self) -> Iterator[BlobEntry]:
        """Everything there is, in no order; what is removed meanwhile may be missing."""


class DirectoryBlobs:
    """Blobs as files ``<directory>/<session>/<name>``, written under a temporary name first.

    After ``put`` returned True the file survives a power cut; a crash before leaves at most a file in the scratch directory.
    """

    def __init__(self, directory: Path, scratch: Scratch) -> None:
        self._directory = directory
        self._scratch = scratch

    def put(self, key: str, data: bytes) -> bool:
        target = self._path(key)
        with store_errors(target), self._scratch.working_directory() as working:
            temporary = working / "blob"
            with temporary.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            return _publish(temporary, target)

    def put_file(self, key: str, source: Path) -> bool:
        target = self._path(key)
        with store_errors(target):
            with source.open("rb") as stream:
                os.fsync(stream.fileno())
            return _publish(source, target)

    def get(self, key: str) -> bytes:
        path = self._path(key)
        with store_errors(path):
            return path.read_bytes()

    def has(self, key: str) -> bool:
        return self._path(key).is_file()

    def where(self, key: str) -> str:
        return str(self._path(key))

    def remove(self, key: str) -> None:
        path = self._path(key)
        with store_errors(path):
            path.unlink(missing_ok=True)

    def remove_session(self, session: str) -> None:
        path = self._path(session)
        with store_errors(path), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def entries(self) -> Iterator[BlobEntry]:
        with store_errors(self._directory):
            for path in self._directory.glob("*/*"):
                with contextlib.suppress(FileNotFoundError):
                    key = path.relative_to(self._directory).as_posix()
                    if _KEY.fullmatch(key) and path.is_file():
                        yield BlobEntry(key, path.lstat().st_mtime)

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise StoreError(f"{self._directory}: {key!r} is not the name of a capture: the catalog is damaged")
        return self._directory / key


def _publish(temporary: Path, target: Path) -> bool:
    """Gives the finished file its name.  A hard link, unlike a rename, fails when the name is taken; a file system without
    hard links gets the rename."""
    make_directory(target.parent)
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
    sync_directory(target.parent)
    return True
