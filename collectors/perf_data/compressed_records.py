"""Records of `perf record -z`: one zstd stream that runs through many records, and the plain records between them.

Source: ``struct perf_record_compressed`` and ``perf_record_compressed2`` in ``tools/lib/perf/include/perf/event.h``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from collectors.perf_data import spec
from collectors.perf_data.byte_source import ByteSource
from collectors.perf_data.expansion import Expansion
from collectors.perf_data.record_walk import (
    COMPRESSED2_HEADER_BYTES,
    MAX_RECORD_BYTES,
    SINGLE_RECORD_TYPES,
    RecordWalk,
    Run,
    SingleRecord,
)
from profiler.errors import FormatError

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionObj

COMPRESSED_TYPES = frozenset({spec.PERF_RECORD_COMPRESSED, spec.PERF_RECORD_COMPRESSED2})
_BATCH_BYTES = 1 << 20
# Bounds what one step can return: 4 KB of zstd are at most 128 MB.
_STEP_BYTES = 4096


class RecordExpander:
    """Appends plain records to ``out``: those between the compressed ones as they are, and those inside of them.

    A record may begin in one compressed record and end in a later one; it is written when it is whole, behind the plain
    records between the two, as perf itself handles them.
    """

    def __init__(self, source: ByteSource, out: Expansion) -> None:
        self._source = source
        self._out = out
        self._tail = bytearray()
        self._stream: ZstdDecompressionObj | None = None

    def copy(self, run: Run) -> None:
        """Plain records."""
        self.flush()
        self._out.write(self._source.window(run.offset, run.size))
        self._out.consumed_bytes += run.size

    def expand(self, record: SingleRecord) -> None:
        """A compressed record; ``FormatError`` when it is damaged."""
        import zstandard

        self._out.consumed_bytes += record.size
        try:
            for payload in self._payloads(record):
                for at in range(0, len(payload), _STEP_BYTES):
                    self._decompress(bytes(payload[at : at + _STEP_BYTES]))
        except zstandard.ZstdError as error:
            raise FormatError(self._source.name, f"damaged compressed record ({error})", record.offset) from error

    def _decompress(self, step: bytes) -> None:
        """Another frame may follow the end of one."""
        import zstandard

        while step:
            if self._stream is None or self._stream.eof:
                self._stream = zstandard.ZstdDecompressor().decompressobj()
            self._tail += self._stream.decompress(step)
            step = self._stream.unused_data if self._stream.eof else b""
            if len(self._tail) >= _BATCH_BYTES:
                self.flush()

    def flush(self) -> None:
        """Writes the whole records that were decompressed so far."""
        with memoryview(self._tail) as view:
            whole = _whole_records_bytes(view)
            if len(view) - whole >= spec.RECORD_HEADER_BYTES and view[whole + 6] | view[whole + 7] << 8 < 8:
                size = view[whole + 6] | view[whole + 7] << 8
                raise FormatError(self._out.name, f"record header with size {size}", self._out.size + whole)
            self._out.write(view[:whole])
        del self._tail[:whole]

    @property
    def is_cut(self) -> bool:
        """Whether a record has begun that did not end."""
        return bool(self._tail)

    def _payloads(self, record: SingleRecord) -> Iterator[memoryview]:
        content = self._source.window(record.offset, record.size)
        if record.type == spec.PERF_RECORD_COMPRESSED:
            yield content[spec.RECORD_HEADER_BYTES :]
            return
        whole = COMPRESSED2_HEADER_BYTES + int.from_bytes(content[8:COMPRESSED2_HEADER_BYTES], "little")
        if whole > record.size:
            room = max(0, record.size - COMPRESSED2_HEADER_BYTES)
            raise self._wrong_size(record, f"says it holds {whole - COMPRESSED2_HEADER_BYTES} bytes and has room for {room}")
        at, size = 0, min(whole, MAX_RECORD_BYTES)
        while True:
            yield content[at + COMPRESSED2_HEADER_BYTES : at + size]
            at += size
            if at == whole:
                return
            # A record that stands for several: those behind the first have their own sizes, and nothing in data_size.
            kind, size = int.from_bytes(content[at : at + 4], "little"), int.from_bytes(content[at + 6 : at + 8], "little")
            if kind != spec.PERF_RECORD_COMPRESSED2 or not COMPRESSED2_HEADER_BYTES <= size <= whole - at:
                raise self._wrong_size(record, f"of {whole} bytes is not made of smaller ones")

    def _wrong_size(self, record: SingleRecord, what: str) -> FormatError:
        way_out = "record without -z, or with another version of perf"
        return FormatError(self._source.name, f"compressed record {what}: {way_out}", record.offset)


def _whole_records_bytes(view: memoryview) -> int:
    """Bytes of the whole records at the start of the view."""
    at, end = 0, len(view)
    while at + 8 <= end:
        size = view[at + 6] | view[at + 7] << 8
        if size < spec.RECORD_HEADER_BYTES or at + size > end:
            break
        at += size
    return at


def append_records(walk: RecordWalk, source: ByteSource, out: Expansion) -> tuple[list[SingleRecord], bool]:
    """Appends the records of ``walk`` to ``out`` as plain ones.

    -> (records that were left out, whether the compressed stream ends inside a record).
    """
    expander = RecordExpander(source, out)
    left_out = []
    for piece in walk:
        if isinstance(piece, Run):
            expander.copy(piece)
        elif piece.type in COMPRESSED_TYPES:
            expander.expand(piece)
        elif piece.type in SINGLE_RECORD_TYPES:
            left_out.append(piece)
        else:
            expander.copy(Run(piece.offset, piece.size))
    expander.flush()
    return left_out, expander.is_cut
