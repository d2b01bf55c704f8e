"""Recordings in files, as `perf record -o FILE` writes them."""

from __future__ import annotations

from collectors.perf_data import spec
from collectors.perf_data.byte_source import ByteSource, Section
from collectors.perf_data.expansion import Expansion, Progress
from collectors.perf_data.features import parse_features
from collectors.perf_data.file_header import FileHeader, feature_contents, parse_event_attributes, parse_file_header
from collectors.perf_data.record_stream import RecordStream, named_events
from collectors.perf_data.record_walk import RecordWalk, Run
from profiler.errors import FormatError


def open_file_mode(source: ByteSource, progress: Progress) -> RecordStream:
    """``FormatError`` for a damaged header, and for the main file of a directory, which holds no samples."""
    header = parse_file_header(source)
    stream = file_records(source, header)
    if spec.HEADER_DIR_FORMAT in header.feature_bits:
        raise FormatError(source.name, "part of a recording in several files (perf record --threads): name their directory")
    return _expanded(stream, progress) if _is_compressed(stream, header) else stream


def file_records(source: ByteSource, header: FileHeader) -> RecordStream:
    """The records of a file as they are, compressed ones among them."""
    attributes = parse_event_attributes(source, header)
    features = parse_features(source.name, feature_contents(source, header))
    return RecordStream(source, header.data, header.is_unfinished, named_events(attributes, features.events), features)


def _is_compressed(stream: RecordStream, header: FileHeader) -> bool:
    """An unfinished file has no feature section that says so."""
    if spec.HEADER_COMPRESSED in header.feature_bits:
        return True
    if not stream.is_unfinished:
        return False
    from collectors.perf_data.compressed_records import COMPRESSED_TYPES

    walk = RecordWalk(stream.source, stream.extent)
    return any(not isinstance(piece, Run) and piece.type in COMPRESSED_TYPES for piece in walk)


def _expanded(stream: RecordStream, progress: Progress) -> RecordStream:
    from collectors.perf_data.compressed_records import append_records

    out = Expansion(stream.source.name, "as plain records", progress)
    try:
        walk = RecordWalk(stream.source, stream.extent)
        _, is_cut = append_records(walk, stream.source, out)
        if not walk.is_complete and not stream.is_unfinished:
            raise walk.complaint()
        records = out.finish()
    except BaseException:
        out.close()
        raise
    return RecordStream(records, Section(0, records.size), stream.is_unfinished or is_cut, stream.attributes, stream.features)
