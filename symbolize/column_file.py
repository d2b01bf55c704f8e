"""Columns in one checksummed block of bytes, which is what the files of the symbol cache are.

Layout: magic (24 bytes), format version (u32), CRC-32 of all that follows (u32), elements of each column (i64 each), then the
columns, each padded to 8 bytes, so that every one of them can be viewed where it is.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from profiler.model.quick_dataclass import dataclass

MAGIC_BYTES = 24
_HEADER = struct.Struct(f"<{MAGIC_BYTES}sII")
_ALIGNMENT = 8

Column = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """``magic``: at most 24 bytes.  ``types``: numpy names of the columns' little-endian types, in order."""

    magic: bytes
    version: int
    types: tuple[str, ...]


def encode_columns(form: ColumnFormat, columns: Sequence[Column]) -> list[bytes]:
    """The file's content in pieces."""
    typed = [np.ascontiguousarray(column, kind) for column, kind in zip(columns, form.types, strict=True)]
    pieces = [struct.pack(f"<{len(typed)}q", *[column.size for column in typed])]
    for column in typed:
        pieces += [column.tobytes(), bytes(-column.nbytes % _ALIGNMENT)]
    checksum = 0
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    return [_HEADER.pack(form.magic, form.version, checksum), *pieces]


def decode_columns(form: ColumnFormat, data: bytes) -> list[Column] | None:
    """Views of the columns in ``data``; None when it is damaged, foreign or of another version."""
    sizes_end = _HEADER.size + 8 * len(form.types)
    if len(data) < sizes_end:
        return None
    magic, version, checksum = _HEADER.unpack_from(data)
    if magic != form.magic.ljust(MAGIC_BYTES, b"\0") or version != form.version:
        return None
    if zlib.crc32(memoryview(data)[_HEADER.size :]) != checksum:
        return None
    sizes = struct.unpack_from(f"<{len(form.types)}q", data, _HEADER.size)
    position = sizes_end
    columns: list[Column] = []
    for size, kind in zip(sizes, form.types, strict=True):
        length = size * np.dtype(kind).itemsize
        if size < 0 or position + length > len(data):
            return None
        columns.append(np.frombuffer(data, kind, size, position))
        position += length + (-length % _ALIGNMENT)
    return columns
