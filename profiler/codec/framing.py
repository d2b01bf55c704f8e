"""Framing of the capture container: magic, version, lengths, checksums.  Knows nothing of what is inside.

    offset  size  field (integers little-endian)
    0       8     magic 89 53 4C 43 41 50 0D 0A
    8       4     format version
    12      4     reserved, 0
    16      8     head length h
    24      8     length of the whole file
    32      h     head: UTF-8 JSON
    32+h    32    BLAKE2b-256 of bytes 0 .. 32+h
    ...           sections, each: 8 bytes length, then that many bytes
    end-32  32    BLAKE2b-256 of everything before it

The magic's first byte and line end catch transfers that drop the high bit or rewrite line ends.  The head has a checksum of
its own so that it can be trusted without reading the rest.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

MAGIC = b"\x89SLCAP\r\n"
DIGEST_BYTES = 32
_PREAMBLE = struct.Struct("<8sIIQQ")
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Preamble:
    version: int
    head_bytes: int
    total_bytes: int

    @property
    def sections_start(self) -> int:
        return _PREAMBLE.size + self.head_bytes + DIGEST_BYTES


def frame(version: int, head: bytes, sections: Sequence[bytes]) -> bytes:
    """The whole file."""
    body_bytes = sum(_LENGTH.size + len(section) for section in sections)
    total = _PREAMBLE.size + len(head) + DIGEST_BYTES + body_bytes + DIGEST_BYTES
    front = _PREAMBLE.pack(MAGIC, version, 0, len(head), total) + head
    parts = [front, _digest(front)]
    for section in sections:
        parts += [_LENGTH.pack(len(section)), section]
    body = b"".join(parts)
    return body + _digest(body)


def read_preamble(data: memoryview, name: str) -> Preamble:
    """Checks magic and that the head lies inside the file; the version is for the caller to judge."""
    if len(data) < _PREAMBLE.size or bytes(data[: len(MAGIC)]) != MAGIC:
        what = "empty file" if not len(data) else "not a slotscope capture"
        raise FormatError(name, what, 0)
    _, version, reserved, head_bytes, total_bytes = _PREAMBLE.unpack_from(data)
    if reserved:
        raise FormatError(name, "reserved field is not 0: damaged", 12)
    if head_bytes > len(data) - _PREAMBLE.size - DIGEST_BYTES:
        raise FormatError(name, f"head of {head_bytes} bytes does not fit: truncated or damaged", 16)
    return Preamble(version, head_bytes, total_bytes)


def read_head(data: memoryview, preamble: Preamble, name: str) -> memoryview:
    """The head's bytes, its own checksum verified; needs no byte behind it."""
    end = _PREAMBLE.size + preamble.head_bytes
    if bytes(data[end : end + DIGEST_BYTES]) != _digest(data[:end]):
        raise FormatError(name, "checksum of the head does not match: damaged; record again or take a copy", _PREAMBLE.size)
    return data[_PREAMBLE.size : end]


def read_sections(data: memoryview, preamble: Preamble, name: str) -> list[memoryview]:
    """The sections in file order, as views, after the checksum over the whole file."""
    if preamble.total_bytes != len(data):
        raise FormatError(name, f"{len(data)} bytes, but {preamble.total_bytes} were written: truncated or damaged", 24)
    end = len(data) - DIGEST_BYTES
    position = preamble.sections_start
    if position > end or bytes(data[end:]) != _digest(data[:end]):
        raise FormatError(name, "checksum does not match: damaged; record again or take a copy", max(end, 0))
    sections = []
    while position < end:
        if end - position < _LENGTH.size:
            raise FormatError(name, "section length is cut off", position)
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if length > end - position:
            raise FormatError(name, f"section of {length} bytes does not fit", position)
        sections.append(data[position : position + length])
        position += length
    return sections


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()
