"""A file that grows out of a smaller one: temporary, without a name on disk, and bounded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from collectors.perf_data.byte_source import ByteSource
from profiler.errors import FormatError

# Stack dumps of a small loop compress to a four-hundredth; what grows far more than that was made to fill disks.
LARGEST_GROWTH = 5000
ALWAYS_ALLOWED_BYTES = 1 << 30
# Room that is left for everybody else on the file system.
RESERVED_BYTES = 256 << 20
_CHECK_EVERY_BYTES = 32 << 20

Progress = Callable[[str], None]


def silent(_message: str) -> None:
    """No progress is shown."""


class Expansion:
    """What the file ``name`` turns out to hold.  ``what`` says what the offsets of error messages count, "decompressed"
    for example; "" when they are those of the file.

    ``FormatError`` when it outgrows its bounds or the disk.
    """

    def __init__(self, name: str, what: str, progress: Progress = silent) -> None:
        # Not needed for plain files, and takes milliseconds of every report.
        import tempfile

        self.name = f"{name}, {what}" if what else name
        self.size = 0
        self.consumed_bytes = 0  # of the smaller file; kept up to date by whoever reads it
        self._original = name
        self._progress = progress
        self._directory = _directory()
        self._next_check = _CHECK_EVERY_BYTES
        try:
            # Without a buffer: what is written comes in large pieces, and is read through the descriptor.
            self._stream = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._no_room(error) from error

    def write(self, piece: bytes | memoryview) -> int:
        """Appends all of ``piece``."""
        self.size += len(piece)
        if self.size >= self._next_check:
            self._check()
        try:
            written = 0
            while written < len(piece):
                written += self._stream.write(memoryview(piece)[written:])
        except OSError as error:
            raise self._no_room(error) from error
        return len(piece)

    def finish(self) -> ByteSource:
        """What was written, for reading; the file goes with it."""
        return ByteSource(self._stream, self.name, is_owner=True)

    def close(self) -> None:
        """Gives the file up."""
        self._stream.close()

    def _check(self) -> None:
        self._next_check = self.size + _CHECK_EVERY_BYTES
        if self.size > max(ALWAYS_ALLOWED_BYTES, LARGEST_GROWTH * self.consumed_bytes):
            message = f"its first {self.consumed_bytes} bytes expand to more than {self.size >> 20} MB, as no recording does"
            raise FormatError(self._original, f"{message}; decompress it by other means if it is to be trusted")
        room = os.fstatvfs(self._stream.fileno())
        free = room.f_bavail * room.f_frsize
        if free < RESERVED_BYTES:
            message = f"it expands to more than {self.size >> 20} MB, and {self._directory} has only {free >> 20} MB left"
            raise FormatError(self._original, f"{message}; set TMPDIR to a directory with more room")
        self._progress(f"reading {self._original}: {self.size >> 20} MB expanded")

    def _no_room(self, error: OSError) -> FormatError:
        reason = f"cannot be expanded into {self._directory}: {error.strerror or error}"
        return FormatError(self._original, f"{reason}; set TMPDIR to a directory with room")


def _directory() -> Path:
    """Large files are for /var/tmp: /tmp is often kept in memory.  TMPDIR has the first word."""
    import tempfile

    lasting = Path("/var/tmp")
    if os.environ.get("TMPDIR") or not os.access(lasting, os.W_OK):
        return Path(tempfile.gettempdir())
    return lasting
