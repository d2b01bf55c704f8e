"""Files that are being received: appended to, durable before it is said so, held by one at a time.

Whoever can write into the directory could put a link where a file is expected: no link is followed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from profiler.errors import StoreError
from profiler.model.quick_dataclass import dataclass
from profiler.service.ingest.upload_error import UploadError, UploadProblem
from profiler.store.scratch import store_errors

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class PartialFile:
    """An open one, locked: ``descriptor`` to read and write.  ``path`` for messages."""

    descriptor: int
    path: Path

    @property
    def size_bytes(self) -> int:
        return os.fstat(self.descriptor).st_size

    def append(self, offset: int, data: bytes) -> None:
        """``data`` is at ``offset``, where the file then ends, durably; the file is as long as before where that fails.
        ``StoreError``, ``StoreFullError``."""
        with store_errors(self.path):
            os.ftruncate(self.descriptor, offset)
            try:
                written = 0
                while written < len(data):
                    written += os.pwrite(self.descriptor, memoryview(data)[written:], offset + written)
                os.fsync(self.descriptor)
            except OSError:
                os.ftruncate(self.descriptor, offset)
                raise

    def read(self, offset: int, size: int) -> bytes:
        """Fewer bytes at the end of the file."""
        with store_errors(self.path):
            return os.pread(self.descriptor, size, offset)


class PartialFiles:
    """The files below ``directory``, by names without a slash."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextlib.contextmanager
    def held(self, name: str) -> Iterator[PartialFile]:
        """The file, made when there is none, for nobody else meanwhile.  ``UploadError`` BUSY: somebody else has it.
        ``StoreError``: a link or no regular file lies there."""
        path = self.directory / name
        with self._opened_directory() as directory, contextlib.ExitStack() as stack:
            with store_errors(path):
                descriptor = _open(name, directory)
                stack.callback(os.close, descriptor)
            _lock(descriptor, path)
            yield PartialFile(descriptor, path)

    def remove(self, name: str) -> None:
        """Silent when there is none."""
        missing = contextlib.suppress(FileNotFoundError)
        with self._opened_directory() as directory, store_errors(self.directory / name), missing:
            os.unlink(name, dir_fd=directory)

    def names(self) -> tuple[str, ...]:
        with self._opened_directory() as directory, store_errors(self.directory):
            return tuple(sorted(os.listdir(directory)))

    def free_bytes(self) -> int:
        """Of the disk."""
        with self._opened_directory() as directory, store_errors(self.directory):
            state = os.statvfs(directory)
            return state.f_bavail * state.f_frsize

    @contextlib.contextmanager
    def _opened_directory(self) -> Iterator[int]:
        with store_errors(self.directory):
            with contextlib.suppress(FileExistsError):
                self.directory.mkdir(mode=0o700)
            descriptor = os.open(self.directory, _DIRECTORY_FLAGS)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _open(name: str, directory: int) -> int:
    try:
        return os.open(name, _FLAGS, dir_fd=directory)
    except FileNotFoundError:
        descriptor = os.open(name, _FLAGS | os.O_CREAT, 0o600, dir_fd=directory)
        os.fsync(directory)
        return descriptor


def _lock(descriptor: int, path: Path) -> None:
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
        raise StoreError(f"{path}: no file of an upload, though it lies in its place: remove it")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UploadError(UploadProblem.BUSY, "this upload is being worked on; try again") from None
    if os.fstat(descriptor).st_nlink == 0:  # removed between opening and locking
        raise UploadError(UploadProblem.BUSY, "this upload was just finished; try again")
