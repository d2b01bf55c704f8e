"""Windows of a recording: bounded views of a file, whatever its size.

A regular file is mapped window by window; a stream in memory is used as it is.
"""

from __future__ import annotations

import io
import mmap
import os
import stat
import weakref
from io import RawIOBase
from typing import BinaryIO

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import UInt64Column
from profiler.model.quick_dataclass import dataclass

# Large enough that numpy steps over the samples of one window outweigh their fixed cost, small enough to stay far below
# the memory that the result needs.
WINDOW_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the file."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


class ByteSource:
    """Random access to ``size`` bytes; ``name`` is used in messages, and says what their offsets count.

    Windows share the pages of the file and are released with the last array that views them.  ``is_owner``: the stream is
    closed with the source.
    """

    def __init__(self, stream: BinaryIO | RawIOBase, name: str, *, is_owner: bool = False) -> None:
        self.name = name
        self._stream = stream  # keeps the descriptor open
        if is_owner:
            weakref.finalize(self, stream.close)
        self._descriptor = _regular_file(stream)
        self._content = memoryview(b"")
        if self._descriptor is None:
            self._content = memoryview(stream.read() or b"")
            self.size = len(self._content)
        else:
            self.size = os.fstat(self._descriptor).st_size
        self._latest: tuple[int, memoryview] = (0, memoryview(b""))

    def read(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes; ``FormatError`` when the file is shorter."""
        if length > self.size or offset > self.size - length:
            raise FormatError(self.name, f"the file ends before the {length} bytes that should be here", offset)
        if self._descriptor is None:
            return bytes(self._content[offset : offset + length])
        return os.pread(self._descriptor, length, offset)

    def window(self, offset: int, length: int) -> memoryview:
        """Bytes ``offset`` .. ``offset + length``, fewer at the end of the file."""
        length = max(0, min(length, self.size - offset))
        if self._descriptor is None:
            return self._content[offset : offset + length]
        start, view = self._latest
        if not (start <= offset and offset + length <= start + len(view)):
            start, view = self._map(offset, length)
            self._latest = (start, view)
        return view[offset - start : offset - start + length]

    def _map(self, offset: int, length: int) -> tuple[int, memoryview]:
        if not length or self._descriptor is None:
            return offset, memoryview(b"")
        start = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        mapped = mmap.mmap(self._descriptor, offset + length - start, prot=mmap.PROT_READ, offset=start)
        return start, memoryview(mapped)


def words_of(window: memoryview) -> UInt64Column:
    """The whole 8-byte words of a window that starts 8-byte aligned in memory; copied when it does not."""
    count = len(window) // 8
    words = np.frombuffer(window, "<u8", count)
    return words if words.flags.aligned else words.copy()


def _regular_file(stream: BinaryIO | RawIOBase) -> int | None:
    try:
        descriptor = stream.fileno()
    except (OSError, io.UnsupportedOperation, AttributeError):
        return None
    return descriptor if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
