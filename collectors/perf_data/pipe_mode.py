"""Recordings written to a pipe (`perf record -o -`): what a file has in its header and sections arrives as records.

Source: ``tools/perf/Documentation/perf.data-file-format.txt``, "Pipe-mode data", and the records of
``tools/lib/perf/include/perf/event.h``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from collectors.perf_data import spec
from collectors.perf_data.attributes import PERF_ATTR_SIZE_VER0, EventAttributes, parse_attributes
from collectors.perf_data.byte_source import ByteSource, Section
from collectors.perf_data.compressed_records import append_records
from collectors.perf_data.expansion import Expansion, Progress
from collectors.perf_data.features import EventDescription, FeatureContent, Features, parse_features
from collectors.perf_data.file_header import MAX_EVENTS
from collectors.perf_data.record_stream import RecordStream, named_events
from collectors.perf_data.record_walk import RecordWalk, SingleRecord
from collectors.perf_data.tracing_data import tracepoint_names
from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

_EVENT_UPDATE_NAME = 2


def open_pipe_mode(source: ByteSource, is_cut: bool, progress: Progress) -> RecordStream:
    """``FormatError`` where a record has an impossible size, and when no event is described.

    A stream that ends inside a record, or ``is_cut`` by a wrapping that did, is unfinished.
    """
    out = Expansion(source.name, "as plain records", progress)
    try:
        walk = RecordWalk(source, Section(spec.PIPE_HEADER_BYTES, source.size - spec.PIPE_HEADER_BYTES))
        left_out, is_record_cut = append_records(walk, source, out)
        if walk.is_damaged:
            raise walk.complaint()
        meta = _MetaRecords(source, left_out)
        attributes, features = meta.attributes(), meta.features()
        records = out.finish()
    except BaseException:
        out.close()
        raise
    events = named_events(attributes, features.events or meta.event_names(attributes))
    is_unfinished = is_cut or is_record_cut or not walk.is_complete
    return RecordStream(records, Section(0, records.size), is_unfinished, events, features)


@dataclass(frozen=True, slots=True)
class _MetaRecords:
    """The records that stand for a file's header and sections."""

    source: ByteSource
    records: Sequence[SingleRecord]

    def attributes(self) -> tuple[EventAttributes, ...]:
        found = [self._event(record) for record in self._of(spec.PERF_RECORD_HEADER_ATTR)]
        if not found:
            raise FormatError(self.source.name, "a recording of the pipe mode that describes no event: it is cut short")
        if len(found) > MAX_EVENTS:
            raise FormatError(self.source.name, f"{len(found)} events described, at most {MAX_EVENTS} expected")
        return tuple(found)

    def _event(self, record: SingleRecord) -> EventAttributes:
        """``struct perf_record_header_attr``: the attribute, as long as it says, then the ids."""
        content = self._content(record)
        attribute_bytes = int.from_bytes(content[4:8], "little") or PERF_ATTR_SIZE_VER0
        id_bytes = len(content) - attribute_bytes
        if id_bytes < 0 or id_bytes % 8:
            message = f"event attribute of {attribute_bytes} bytes with its ids in a record of {record.size}"
            raise FormatError(self.source.name, message, record.offset)
        ids = struct.unpack(f"<{id_bytes // 8}Q", content[attribute_bytes:])
        at = record.offset + spec.RECORD_HEADER_BYTES
        return parse_attributes(content[:attribute_bytes], ids, self.source.name, at)

    def features(self) -> Features:
        """Feature records hold what a file's sections hold; the build-ID table comes row by row in records of its own."""
        contents = {}
        for record in self._of(spec.PERF_RECORD_HEADER_FEATURE):
            content = self._content(record)
            if len(content) > 8:
                number = int.from_bytes(content[:8], "little")
                contents[number] = FeatureContent(content[8:], record.offset + 16)
        rows = self._of(spec.PERF_RECORD_HEADER_BUILD_ID)
        if rows:
            table = b"".join(self.source.read(record.offset, record.size) for record in rows)
            contents[spec.HEADER_BUILD_ID] = FeatureContent(table, rows[0].offset)
        return parse_features(self.source.name, contents)

    def event_names(self, attributes: Sequence[EventAttributes]) -> tuple[EventDescription, ...]:
        """Names where no feature record has them: by id, and of old perfs by config."""
        by_id, by_config, tracepoints = {}, {}, self._tracepoints()
        for record in self._of(spec.PERF_RECORD_EVENT_UPDATE):
            content = self._content(record)
            if int.from_bytes(content[:8], "little") == _EVENT_UPDATE_NAME:
                by_id[int.from_bytes(content[8:16], "little")] = _text(content[16:])
        for record in self._of(spec.PERF_RECORD_HEADER_EVENT_TYPE):
            content = self._content(record)
            by_config[int.from_bytes(content[:8], "little")] = _text(content[8:])
        described = []
        for event in attributes:
            traced = tracepoints.get(event.config, "") if event.type == spec.PERF_TYPE_TRACEPOINT else ""
            named = next((by_id[number] for number in event.ids if number in by_id), "")
            described.append(EventDescription(named or traced or by_config.get(event.config, ""), event.ids))
        return tuple(described)

    def _tracepoints(self) -> dict[int, str]:
        """What is known of the kernel's trace events lies behind its record."""
        names: dict[int, str] = {}
        for record in self._of(spec.PERF_RECORD_HEADER_TRACING_DATA):
            at = record.offset + record.size
            content = FeatureContent(self.source.read(at, record.payload_bytes), at)
            names |= tracepoint_names(content, self.source.name)
        return names

    def _of(self, kind: int) -> list[SingleRecord]:
        return [record for record in self.records if record.type == kind]

    def _content(self, record: SingleRecord) -> bytes:
        at = spec.RECORD_HEADER_BYTES
        return self.source.read(record.offset + at, record.size - at)


def _text(content: bytes) -> str:
    return content.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
