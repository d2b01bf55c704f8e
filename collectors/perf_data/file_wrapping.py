"""Files that are no plain file: streams that can be read once, and files that are compressed as a whole."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

from collectors.perf_data.byte_source import ByteSource
from collectors.perf_data.expansion import Expansion, Progress
from collectors.perf_data.file_kind import WRAPPINGS, FileKind, file_kind
from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

_COPY_BYTES = 1 << 20
# What one step of a decompressor may return is bounded by what it is given: 4 KB of zstd are at most 128 MB.
_STEP_BYTES = 4096
_XZ_MEMORY_BYTES = 256 << 20
_MOST_WRAPPINGS = 3


@dataclass(frozen=True, slots=True)
class PlainFile:
    """The content of a file without its wrappings; ``is_cut``: a wrapping ended in the middle."""

    source: ByteSource
    is_cut: bool


class _Decompressor(Protocol):
    """What zlib, lzma and zstandard agree on."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def unwrapped(stream: BinaryIO, name: str, progress: Progress) -> PlainFile:
    """``stream`` as bytes at random access.  ``FormatError`` for damaged or hostile compression."""
    plain = PlainFile(_random_access(stream, name, progress), is_cut=False)
    for _ in range(_MOST_WRAPPINGS):
        kind = file_kind(plain.source)
        if kind not in WRAPPINGS:
            return plain
        inner = _decompressed(plain.source, kind, name, progress)
        plain = PlainFile(inner.source, plain.is_cut or inner.is_cut)
    if file_kind(plain.source) in WRAPPINGS:
        raise FormatError(name, f"compressed more than {_MOST_WRAPPINGS} times")
    return plain


def _random_access(stream: BinaryIO, name: str, progress: Progress) -> ByteSource:
    if not _is_read_once(stream):
        return ByteSource(stream, name)
    out = Expansion(name, "", progress)
    try:
        while piece := stream.read(_COPY_BYTES):
            out.consumed_bytes += len(piece)
            out.write(piece)
    except BaseException:
        out.close()
        raise
    return out.finish()


def _is_read_once(stream: BinaryIO) -> bool:
    """Pipes, terminals, sockets and devices; not files and what lies in memory."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, io.UnsupportedOperation, AttributeError):
        return False


def _decompressed(source: ByteSource, kind: FileKind, name: str, progress: Progress) -> PlainFile:
    method = _method(kind)
    out = Expansion(name, "decompressed", progress)
    steps = _Steps(source, kind, method.new)
    try:
        for piece in steps:
            out.consumed_bytes = steps.position
            out.write(piece)
    except FormatError:
        out.close()
        raise
    except method.errors as error:
        out.close()
        message = f"its {kind.name.lower()} data cannot be decompressed ({error})"
        raise FormatError(source.name, message, steps.position) from error
    return PlainFile(out.finish(), steps.is_cut)


@dataclass(frozen=True, slots=True)
class _Method:
    """How a kind of compression is undone, and what fails when it is damaged."""

    new: Callable[[], _Decompressor]
    errors: type[Exception]


def _method(kind: FileKind) -> _Method:
    if kind is FileKind.GZIP:
        import zlib

        return _Method(lambda: zlib.decompressobj(wbits=16 + zlib.MAX_WBITS), zlib.error)
    if kind is FileKind.XZ:
        import lzma

        return _Method(lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES), lzma.LZMAError)
    import zstandard

    return _Method(lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError)


class _Steps:
    """Decompresses member by member, step by step.  ``position``: byte that is read next; ``is_cut``: the last member ends
    in the middle."""

    def __init__(self, source: ByteSource, kind: FileKind, new_decompressor: Callable[[], _Decompressor]) -> None:
        self._source = source
        self._kind = kind
        self._new = new_decompressor
        self.position = 0
        self.is_cut = False

    def __iter__(self) -> Iterator[bytes]:
        decompressor = self._new()
        while self.position < self._source.size:
            step = bytes(self._source.window(self.position, _STEP_BYTES))
            piece = decompressor.decompress(step)
            self.position += len(step) - len(decompressor.unused_data)
            if piece:
                yield piece
            if decompressor.eof:
                if not self._has_member():
                    return
                decompressor = self._new()
        self.is_cut = not decompressor.eof

    def _has_member(self) -> bool:
        """Whether one more begins here; padding and what else lies behind the last member is not looked at."""
        rest = bytes(self._source.window(self.position, 8))
        return file_kind(ByteSource(io.BytesIO(rest), self._source.name)) is self._kind
