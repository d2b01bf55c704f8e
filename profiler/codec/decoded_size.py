"""How much memory an Arrow IPC stream would take when it is decoded, read from its headers before anything is decompressed.

A stream is a sequence of messages: FF FF FF FF, 4 bytes length of the metadata (0 = end), the metadata (a flatbuffer of the
table ``Message``), the body.  In a compressed record batch every buffer of the body begins with its decompressed length, 8
bytes; -1 means that it is stored as it is.  Arrow allocates that much for the buffer and refuses one that turns out otherwise.
"""

from __future__ import annotations

import struct

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

_CONTINUATION = 0xFFFFFFFF
# Streams of older versions can hide in free metadata that they are compressed.
_VERSION_5 = 4
_SCHEMA, _RECORD_BATCH = 1, 3
# Numbers of fields in Arrow's Message.fbs.
_MESSAGE_VERSION, _MESSAGE_KIND, _MESSAGE_HEADER, _MESSAGE_BODY_BYTES = 0, 1, 2, 3
_BATCH_BUFFERS, _BATCH_COMPRESSION = 2, 3


def decoded_bytes(stream: memoryview, name: str) -> int:
    """Sum of the decompressed sizes of all buffers in ``stream``; ``name`` stands in messages.

    ``FormatError``: not a stream of one schema and of record batches, or cut off.
    """
    try:
        return sum(_batch_bytes(metadata, body) for metadata, body in _messages(stream))
    except (struct.error, IndexError, ValueError) as error:
        raise FormatError(name, f"Arrow stream cannot be read ({error}): damaged") from None


def _messages(stream: memoryview) -> list[tuple[memoryview, memoryview]]:
    """(metadata, body) of every message."""
    found: list[tuple[memoryview, memoryview]] = []
    position = 0
    while position < len(stream):
        marker, metadata_bytes = struct.unpack_from("<Ii", stream, position)
        position += 8
        if marker != _CONTINUATION:
            raise ValueError("a message does not begin as one")
        if metadata_bytes == 0:
            break
        metadata = _slice(stream, position, metadata_bytes)
        position += metadata_bytes
        message = _root(metadata)
        if message.number(_MESSAGE_VERSION, "<h") != _VERSION_5:
            raise ValueError("metadata of another version than 5")
        body_bytes = message.number(_MESSAGE_BODY_BYTES, "<q")
        found.append((metadata, _slice(stream, position, body_bytes)))
        position += body_bytes
    return found


def _batch_bytes(metadata: memoryview, body: memoryview) -> int:
    message = _root(metadata)
    kind = message.number(_MESSAGE_KIND, "<B")
    if kind == _SCHEMA:
        return 0
    batch = message.table(_MESSAGE_HEADER)
    if kind != _RECORD_BATCH or batch is None:
        raise ValueError(f"message of kind {kind}")
    if batch.table(_BATCH_COMPRESSION) is None:
        return len(body)
    return sum(_buffer_bytes(_slice(body, offset, size)) for offset, size in batch.pairs(_BATCH_BUFFERS))


def _buffer_bytes(buffer: memoryview) -> int:
    if not len(buffer):
        return 0
    (size,) = struct.unpack_from("<q", buffer)
    if size < -1:
        raise ValueError(f"buffer of {size} bytes")
    return len(buffer) - 8 if size == -1 else int(size)


def _slice(data: memoryview, start: int, size: int) -> memoryview:
    if start < 0 or size < 0 or size > len(data) - start:
        raise ValueError(f"{size} bytes at {start} do not fit")
    return data[start : start + size]


def _root(buffer: memoryview) -> _FlatTable:
    (position,) = struct.unpack_from("<I", buffer)
    return _FlatTable(buffer, position)


@dataclass(frozen=True, slots=True)
class _FlatTable:
    """A table of a flatbuffer: at ``position`` the distance back to the table of field offsets."""

    buffer: memoryview
    position: int

    def number(self, field: int, form: str) -> int:
        """0 when the field is absent."""
        at = self._place(field)
        return int(self._read(form, at)) if at else 0

    def table(self, field: int) -> _FlatTable | None:
        at = self._place(field)
        return _FlatTable(self.buffer, at + self._read("<I", at)) if at else None

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """A vector of structs of two 64-bit numbers."""
        at = self._place(field)
        if not at:
            return []
        start = at + self._read("<I", at)
        content = _slice(self.buffer, start + 4, 16 * self._read("<I", start))
        return list(struct.iter_unpack("<qq", content))

    def _place(self, field: int) -> int:
        """Where the field's value lies, 0 = absent."""
        offsets = self.position - self._read("<i", self.position)
        slot = 4 + 2 * field
        if slot + 2 > self._read("<H", offsets):
            return 0
        distance = self._read("<H", offsets + slot)
        return self.position + distance if distance else 0

    def _read(self, form: str, at: int) -> int:
        if at < 0:
            raise ValueError("an offset leads before the beginning")
        (value,) = struct.unpack_from(form, self.buffer, at)
        return int(value)
