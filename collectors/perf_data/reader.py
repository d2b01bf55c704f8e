"""Reading of perf.data recordings: a header, then samples chunk by chunk.

Two passes: the first finds the records and decodes the side band, so that mappings and names are known for every moment
before the first stack is looked at; the second decodes samples in bounded chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from collectors.perf_data import spec
from collectors.perf_data.attributes import EventAttributes
from collectors.perf_data.byte_source import words_of
from collectors.perf_data.event_selector import EventSelector
from collectors.perf_data.expansion import Progress, silent
from collectors.perf_data.features import Features
from collectors.perf_data.file_kind import FileKind, file_kind, not_a_recording
from collectors.perf_data.file_mode import open_file_mode
from collectors.perf_data.file_wrapping import PlainFile, unwrapped
from collectors.perf_data.record_index import RecordIndex, index_records
from collectors.perf_data.record_stream import RecordStream
from collectors.perf_data.sample_fields import SampleFields, decode_samples
from collectors.perf_data.sample_layout import SampleLayout, trailers
from profiler.model.arrays import BoolColumn, Int16Column, Int64Column, UInt64Column
from profiler.model.quick_dataclass import dataclass

# As many samples as fit a processor's cache with their callchains; of those with stack dumps fewer, since every process that
# reads has such a part of the file mapped.
CHUNK_SAMPLES = 8192
CHUNK_BYTES = 32 << 20
MAX_RECORD_BYTES = 65535


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Chunk:
    """Samples of one layout.  ``position``: byte offset in the file, ascending.  ``event``: row of the recording's
    attributes, -1 for an id that no event has."""

    layout: SampleLayout
    position: Int64Column
    event: Int16Column
    fields: SampleFields

    def rows(self, chosen: BoolColumn) -> Chunk:
        """The samples where ``chosen`` is set."""
        if chosen.all():
            return self
        return Chunk(self.layout, self.position[chosen], self.event[chosen], self.fields.rows(chosen))


@dataclass(frozen=True, slots=True)
class Recording:
    """An opened recording."""

    stream: RecordStream

    @property
    def name(self) -> str:
        return self.stream.source.name

    @property
    def attributes(self) -> tuple[EventAttributes, ...]:
        """One per event, names as perf spelled them."""
        return self.stream.attributes

    @property
    def features(self) -> Features:
        return self.stream.features

    @property
    def has_time(self) -> bool:
        return any(event.sample_type & spec.PERF_SAMPLE_TIME for event in self.attributes)

    def index(self) -> RecordIndex:
        """The first pass; ``FormatError`` for damaged records."""
        stream = self.stream
        return index_records(stream.source, stream.extent, trailers(self.attributes), is_unfinished=stream.is_unfinished)

    def windows(self, index: RecordIndex) -> list[slice]:
        """The samples (rows of ``index.sample_offsets``) that are read together, in the order of the file."""
        offsets = index.sample_offsets
        windows, start = [], 0
        while start < len(offsets):
            limit = int(np.searchsorted(offsets, offsets[start] + (CHUNK_BYTES - MAX_RECORD_BYTES)))
            end = min(start + CHUNK_SAMPLES, max(limit, start + 1))
            windows.append(slice(start, end))
            start = end
        return windows

    def chunks(self, index: RecordIndex, windows: Sequence[slice] | None = None) -> Iterator[Chunk]:
        """The samples of some windows (without: all), chunk by chunk; its arrays are valid as long as they are referenced."""
        selector = EventSelector(self.attributes, self.name)
        for window in self.windows(index) if windows is None else windows:
            yield from self._chunks_between(selector, index.sample_offsets[window], index.end)

    def _chunks_between(self, selector: EventSelector, offsets: Int64Column, data_end: int) -> Iterator[Chunk]:
        first, last = int(offsets[0]), int(offsets[-1])
        view = self.stream.source.window(first, min(last + MAX_RECORD_BYTES, data_end) - first)
        words, starts = _aligned(view, offsets - first)
        event = selector.events(words, starts)
        for layout, rows in selector.rows_by_layout(event):
            chosen: Int64Column | slice = slice(None) if rows is None else rows
            fields = decode_samples(words, starts[chosen], layout)
            yield Chunk(layout, offsets[chosen], event[chosen], fields)


def _aligned(view: memoryview, starts: Int64Column) -> tuple[UInt64Column, Int64Column]:
    """(words, word positions of the records); records at odd offsets are copied together first."""
    if not (starts & 7).any():
        return words_of(view), starts >> 3
    pieces, positions, total = [], [], 0
    for start in starts.tolist():
        size = view[start + 6] | view[start + 7] << 8
        piece = bytes(view[start : start + size]).ljust((size + 7) // 8 * 8, b"\0")
        pieces.append(piece)
        positions.append(total)
        total += len(piece) // 8
    return np.frombuffer(b"".join(pieces), "<u8"), np.array(positions, np.int64)


def open_recording(stream: BinaryIO, name: str, progress: Progress = silent) -> Recording:
    """A recording in any of its containers; ``FormatError`` for anything that is not one."""
    return open_plain(unwrapped(stream, name, progress), progress)


def open_plain(plain: PlainFile, progress: Progress) -> Recording:
    """``open_recording`` for a file whose wrappings are off."""
    kind = file_kind(plain.source)
    if kind is FileKind.PERF_PIPE:
        from collectors.perf_data.pipe_mode import open_pipe_mode

        return Recording(open_pipe_mode(plain.source, plain.is_cut, progress))
    if kind is FileKind.PERF_FILE:
        return Recording(open_file_mode(plain.source, progress))
    raise not_a_recording(plain.source)
