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
from collectors.perf_data.features import EventDescription, Features, parse_features
from collectors.perf_data.file_header import FileHeader, feature_sections, parse_event_attributes, parse_file_header
from collectors.perf_data.record_index import RecordIndex, index_records
from collectors.perf_data.sample_fields import SampleFields, decode_samples
from collectors.perf_data.sample_layout import SampleLayout, sample_layout, trailers
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


class EventSelector:
    """Which event a sample belongs to: by the id in it."""

    def __init__(self, attributes: Sequence[EventAttributes], name: str) -> None:
        self._layouts = [sample_layout(event) for event in attributes]
        id_words = {layout.id_word for layout in self._layouts}
        if len(id_words) > 1:
            message = "its events place the event id at different positions of a sample, so samples cannot be told apart"
            raise FormatError(name, message)
        self._id_word = id_words.pop() if len(attributes) > 1 else -1
        owner = {number: row for row, event in enumerate(attributes) for number in event.ids}
        # perf writes id 0 for samples of the first event of old recordings.
        owner.setdefault(0, 0)
        self._ids = np.array(sorted(owner), np.uint64)
        self._rows = np.array([owner[number] for number in sorted(owner)], np.int16)

    def events(self, words: UInt64Column, starts: Int64Column) -> Int16Column:
        """Row of the event of each sample; -1 when its id is unknown."""
        if self._id_word < 0:
            return np.zeros(len(starts), np.int16)
        sizes = (words[starts] >> np.uint64(51)).astype(np.int64)
        inside = sizes > self._id_word
        ids = np.where(inside, words[np.where(inside, starts + self._id_word, 0)], np.uint64(0))
        found = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[found] == ids, self._rows[found], -1).astype(np.int16)

    def rows_by_layout(self, event: Int16Column) -> Iterator[tuple[SampleLayout, Int64Column | None]]:
        """Samples grouped by layout; ``None`` = all of them.  Samples of unknown events count as of the first event."""
        distinct = list(dict.fromkeys(self._layouts))
        if len(distinct) == 1:
            yield distinct[0], None
            return
        number = np.array([distinct.index(layout) for layout in self._layouts])[np.maximum(event, 0)]
        for row, layout in enumerate(distinct):
            rows = np.flatnonzero(number == row)
            if len(rows):
                yield layout, rows


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
