"""Records back to back, walked by their sizes: runs that can be copied as they are, and single records that cannot.

Pieces end where a record ends, so that every consumer sees whole records only.
"""

from __future__ import annotations

from collections.abc import Iterator

from collectors.perf_data import spec
from collectors.perf_data.byte_source import WINDOW_BYTES, ByteSource, Section
from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

# What a copy of plain records leaves out: meta records of the pipe mode, which may have any size, compressed records, and
# records that are followed by a payload which their size does not count.
SINGLE_RECORD_TYPES = frozenset(
    {
        spec.PERF_RECORD_HEADER_ATTR,
        spec.PERF_RECORD_HEADER_EVENT_TYPE,
        spec.PERF_RECORD_HEADER_TRACING_DATA,
        spec.PERF_RECORD_HEADER_BUILD_ID,
        spec.PERF_RECORD_AUXTRACE,
        spec.PERF_RECORD_EVENT_UPDATE,
        spec.PERF_RECORD_HEADER_FEATURE,
        spec.PERF_RECORD_COMPRESSED,
        spec.PERF_RECORD_COMPRESSED2,
    }
)
# struct perf_record_compressed2: a record's header, and data_size.
COMPRESSED2_HEADER_BYTES = 16
MAX_RECORD_BYTES = 0xFFFF


@dataclass(frozen=True, slots=True)
class Run:
    """Whole records of other types than ``SINGLE_RECORD_TYPES``, back to back."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class SingleRecord:
    """One record; ``payload_bytes`` follow it, not counted in ``size``."""

    offset: int
    type: int
    size: int
    payload_bytes: int

    @property
    def end(self) -> int:
        return self.offset + self.size + self.payload_bytes


class RecordWalk:
    """Iterates over the records of ``extent``; afterwards ``position`` is the first byte that belongs to no whole record."""

    def __init__(self, source: ByteSource, extent: Section) -> None:
        self._source = source
        self.end = min(extent.end, source.size)
        self.position = extent.offset

    def __iter__(self) -> Iterator[Run | SingleRecord]:
        while self.position < self.end:
            base = self.position
            view = self._source.window(base, min(WINDOW_BYTES, self.end - base))
            yield from self._pieces(view, base)
            if self.position == base:
                return

    def _pieces(self, view: memoryview, base: int) -> Iterator[Run | SingleRecord]:
        """All pieces that begin in the view; ``position`` moves along."""
        while 0 <= self.position - base < len(view):
            rest = view[self.position - base :]
            piece = self._run(rest) or self._single(rest)
            if piece is None:
                return
            self.position = piece.offset + piece.size if isinstance(piece, Run) else piece.end
            yield piece

    def _run(self, view: memoryview) -> Run | None:
        size = _plain_prefix(view)
        return Run(self.position, size) if size else None

    def _single(self, view: memoryview) -> SingleRecord | None:
        if len(view) < spec.RECORD_HEADER_BYTES:
            return None
        kind, size = int.from_bytes(view[:4], "little"), view[6] | view[7] << 8
        if kind == spec.PERF_RECORD_COMPRESSED2:
            size = _compressed2_bytes(view, size)
        if not spec.RECORD_HEADER_BYTES <= size <= len(view):
            return None
        record = SingleRecord(self.position, kind, size, _payload_bytes(kind, view[:size]))
        return record if record.end <= self.end else None

    @property
    def is_complete(self) -> bool:
        """Whether the records fill the extent."""
        return self.position == self.end

    def complaint(self) -> FormatError:
        """Why no record begins at ``position``."""
        return FormatError(self._source.name, no_record_message(self._source, self.position, self.end), self.position)

    @property
    def is_damaged(self) -> bool:
        """Whether what follows the last whole record is no beginning of one."""
        if self.end - self.position < spec.RECORD_HEADER_BYTES:
            return False
        header = self._source.read(self.position, spec.RECORD_HEADER_BYTES)
        is_overflow = int.from_bytes(header[:4], "little") == spec.PERF_RECORD_COMPRESSED2
        return int.from_bytes(header[6:], "little") < spec.RECORD_HEADER_BYTES and not is_overflow


def _compressed2_bytes(view: memoryview, size: int) -> int:
    """The real size of a compressed record.

    perf 6.16 and some later versions put the size of all that one turn compressed, rounded up to whole words, into the 16 bits
    of the first record's header; what did not fit there is in ``data_size``.  They then write no padding.
    """
    whole = COMPRESSED2_HEADER_BYTES + int.from_bytes(view[8:COMPRESSED2_HEADER_BYTES], "little")
    rounded = (whole + 7) // 8 * 8
    return whole if rounded > MAX_RECORD_BYTES and size == rounded & MAX_RECORD_BYTES else size


def _plain_prefix(view: memoryview) -> int:
    """Bytes of the whole records at the start of the view that can be copied as they are."""
    halves = view[: len(view) // 8 * 8].cast("H")  # the type is the first of a header's four, the size the last
    at, limit, end = 0, len(halves) - 3, len(halves)
    while at < limit:
        size = halves[at + 3]
        if size & 7 or not size or (halves[at] in SINGLE_RECORD_TYPES and not halves[at + 1]):
            break
        following = at + (size >> 1)
        if following > end:
            break
        at = following
    return 2 * at


def _payload_bytes(kind: int, record: memoryview) -> int:
    """``size`` of ``struct perf_record_header_tracing_data`` and ``struct perf_record_auxtrace``."""
    if kind == spec.PERF_RECORD_HEADER_TRACING_DATA and len(record) >= 12:
        return int.from_bytes(record[8:12], "little")
    if kind == spec.PERF_RECORD_AUXTRACE and len(record) >= 16:
        return int.from_bytes(record[8:16], "little")
    return 0


def no_record_message(source: ByteSource, position: int, end: int) -> str:
    """Why no whole record begins at ``position`` of records that end at ``end``."""
    if end - position < spec.RECORD_HEADER_BYTES:
        return f"{end - position} bytes behind the last record"
    size = int.from_bytes(source.read(position + 6, 2), "little")
    if size < spec.RECORD_HEADER_BYTES:
        return f"record header with size {size}"
    return f"record of {size} bytes reaches beyond the data section, which ends at byte {end}"
