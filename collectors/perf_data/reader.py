"""Reading of perf.data recordings: a header, then samples chunk by chunk.

Two passes: the first finds the records and decodes the side band, so that mappings and names are known for every moment
before the first stack is looked at; the second decodes samples in bounded chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np

from collectors.perf_data import spec
from collectors.perf_data.attributes import EventAttributes
from collectors.perf_data.byte_source import WINDOW_BYTES, ByteSource, words_of
from collectors.perf_data.event_selector import EventSelector
from collectors.perf_data.features import EventDescription, Features, parse_features
from collectors.perf_data.file_header import FileHeader, feature_sections, parse_event_attributes, parse_file_header
from collectors.perf_data.record_index import RecordIndex, index_records
from collectors.perf_data.sample_fields import SampleFields, decode_samples
from collectors.perf_data.sample_layout import SampleLayout, trailers
from profiler.errors import FormatError
from profiler.model.arrays import BoolColumn, Int16Column, Int64Column, UInt64Column

# As many samples as fit a processor's cache with their callchains.
CHUNK_SAMPLES = 16384
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
    """An opened recording.  ``attributes``: one per event, names as perf spelled them."""

    source: ByteSource
    header: FileHeader
    attributes: tuple[EventAttributes, ...]
    features: Features

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def has_time(self) -> bool:
        return any(event.sample_type & spec.PERF_SAMPLE_TIME for event in self.attributes)

    def index(self) -> RecordIndex:
        """The first pass; ``FormatError`` for damaged records."""
        return index_records(self.source, self.header, trailers(self.attributes))

    def chunks(self, index: RecordIndex) -> Iterator[Chunk]:
        """All samples, chunk by chunk; a chunk's arrays are valid as long as they are referenced."""
        selector = EventSelector(self.attributes, self.name)
        offsets = index.sample_offsets
        start = 0
        while start < len(offsets):
            limit = int(np.searchsorted(offsets, offsets[start] + (WINDOW_BYTES - MAX_RECORD_BYTES)))
            end = min(start + CHUNK_SAMPLES, max(limit, start + 1))
            yield from self._chunks_between(selector, offsets[start:end], index.end)
            start = end

    def _chunks_between(self, selector: EventSelector, offsets: Int64Column, data_end: int) -> Iterator[Chunk]:
        first, last = int(offsets[0]), int(offsets[-1])
        view = self.source.window(first, min(last + MAX_RECORD_BYTES, data_end) - first)
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


def open_recording(stream: BinaryIO, name: str) -> Recording:
    """Header, attributes and features of a recording; ``FormatError`` for anything that is not one, or not yet supported."""
    source = ByteSource(stream, name)
    header = parse_file_header(source)
    attributes = parse_event_attributes(source, header)
    if spec.HEADER_COMPRESSED in header.feature_bits:
        raise FormatError(name, "compressed records (perf record -z) are not supported yet; record without -z")
    features = parse_features(source, feature_sections(source, header))
    return Recording(source, header, _named(attributes, features.events), features)


def _named(attributes: Sequence[EventAttributes], described: Sequence[EventDescription]) -> tuple[EventAttributes, ...]:
    """Names from the event descriptions: by ids, else by order when there are as many descriptions as events."""
    by_ids = {event.ids: event.name for event in described if event.ids}
    by_order = [event.name for event in described] if len(described) == len(attributes) else []
    named = []
    for row, event in enumerate(attributes):
        name = by_ids.get(event.ids) or (by_order[row] if by_order else "") or event.name
        named.append(replace(event, name=name))
    return tuple(named)
