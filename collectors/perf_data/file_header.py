"""The file header: what kind of file it is, and where its sections are."""

from __future__ import annotations

import struct

from collectors.perf_data import spec
from collectors.perf_data.attributes import EventAttributes, parse_attributes
from collectors.perf_data.byte_source import ByteSource, Section
from collectors.perf_data.features import USED_FEATURES, FeatureContent
from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

_HEADER = struct.Struct("<8sQQQQQQQQ32s")
_SECTION = struct.Struct("<QQ")
MAX_EVENTS = 65536
MAX_IDS = 1 << 22


@dataclass(frozen=True, slots=True)
class FileHeader:
    """``feature_bits``: the set bits in order; their sections are listed behind ``data``.

    ``is_unfinished``: the recorder did not write the size of the data, which then reaches to the end of the file.
    """

    attribute_bytes: int
    attributes: Section
    data: Section
    feature_bits: tuple[int, ...]
    is_unfinished: bool


def parse_file_header(source: ByteSource) -> FileHeader:
    """Header of a file-mode recording, whose magic has been checked."""
    if source.size < spec.PIPE_HEADER_BYTES:
        raise FormatError(source.name, "the header is cut short", source.size)
    header_bytes = int.from_bytes(source.read(8, 8), "little")
    if header_bytes < spec.FILE_HEADER_BYTES:
        raise FormatError(source.name, f"the header says it has {header_bytes} bytes", 8)
    return _file_mode_header(source)


def _file_mode_header(source: ByteSource) -> FileHeader:
    (_, _, attribute_bytes, attributes_offset, attributes_size, data_offset, data_size, _, _, bitmap) = _HEADER.unpack(
        source.read(0, spec.FILE_HEADER_BYTES)
    )
    attributes = Section(attributes_offset, attributes_size)
    if attributes.end > source.size:
        raise FormatError(source.name, f"the attribute section would end at byte {attributes.end}, beyond the file", 24)
    if data_offset > source.size or data_offset < spec.FILE_HEADER_BYTES:
        raise FormatError(source.name, f"the data section would start at byte {data_offset}, outside the file", 40)
    is_unfinished = data_size == 0 and source.size > data_offset
    data = Section(data_offset, source.size - data_offset if is_unfinished else data_size)
    bits = int.from_bytes(bitmap, "little")
    return FileHeader(
        attribute_bytes=attribute_bytes,
        attributes=attributes,
        data=data,
        feature_bits=tuple(bit for bit in range(spec.FEATURE_BITS) if bits >> bit & 1),
        is_unfinished=is_unfinished or data.end > source.size,
    )


def parse_event_attributes(source: ByteSource, header: FileHeader) -> tuple[EventAttributes, ...]:
    """The attributes of all events with their ids, in file order; at least one."""
    entry_bytes, section = header.attribute_bytes, header.attributes
    if entry_bytes <= _SECTION.size or entry_bytes > 4096 + _SECTION.size:
        raise FormatError(source.name, f"event attributes of {entry_bytes} bytes each", 16)
    count, rest = divmod(section.size, entry_bytes)
    if rest or not 0 < count <= MAX_EVENTS:
        message = f"the attribute section of {section.size} bytes holds no whole number of events of {entry_bytes} bytes"
        raise FormatError(source.name, message, 32)
    return tuple(_event(source, section.offset + row * entry_bytes, entry_bytes) for row in range(count))


def _event(source: ByteSource, offset: int, entry_bytes: int) -> EventAttributes:
    entry = source.read(offset, entry_bytes)
    ids_at = entry_bytes - _SECTION.size
    ids = Section(*_SECTION.unpack_from(entry, ids_at))
    if ids.size % 8 or ids.size // 8 > MAX_IDS or ids.end > source.size:
        raise FormatError(source.name, f"a list of {ids.size} bytes of event ids at byte {ids.offset}", offset + ids_at)
    numbers = struct.unpack(f"<{ids.size // 8}Q", source.read(ids.offset, ids.size))
    return parse_attributes(entry[:ids_at], numbers, source.name, offset)


def feature_contents(source: ByteSource, header: FileHeader) -> dict[int, FeatureContent]:
    """The features that are used; none in a recording that was not finished.  ``FormatError`` beyond the file."""
    if header.is_unfinished:
        return {}
    table = source.read(header.data.end, len(header.feature_bits) * _SECTION.size)
    contents = {}
    for row, bit in enumerate(header.feature_bits):
        section = Section(*_SECTION.unpack_from(table, row * _SECTION.size))
        if section.end > source.size:
            offset = header.data.end + row * _SECTION.size
            raise FormatError(source.name, f"feature section {bit} would end at byte {section.end}, beyond the file", offset)
        if bit in USED_FEATURES:
            contents[bit] = FeatureContent(source.read(section.offset, section.size), section.offset)
    return contents
