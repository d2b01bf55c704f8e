"""The containers of a recording, written from the format's documentation and sharing nothing with the readers.

Sources: ``perf.data-file-format.txt`` and ``perf.data-directory-format.txt`` in ``tools/perf/Documentation``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import zstandard

from support.perf_data_writer import RecordingWriter, words

PIPE_HEADER = b"PERFILE2" + words(16)


def record(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IHH", kind, 0, 8 + len(payload)) + payload


def attribute_record(content: RecordingWriter, event: int, *, has_ids: bool = True) -> bytes:
    ids = words(*content.ids(event)) if has_ids else b""
    return record(64, content.events[event].encoded() + ids)


def feature_records(content: RecordingWriter) -> bytes:
    """All but the build IDs, which come as records of their own."""
    return b"".join(record(80, words(bit) + data) for bit, data in content.features.items() if bit != 2)


def pipe_mode(content: RecordingWriter) -> bytes:
    """What `perf record -o -` would have written."""
    attributes = b"".join(attribute_record(content, event) for event in range(len(content.events)))
    table = content.features.get(2, b"")
    return PIPE_HEADER + attributes + feature_records(content) + b"".join(content.records) + table


def zstd_pieces(data: bytes, sizes: Iterable[int]) -> list[bytes]:
    """One zstd stream, flushed behind each of the parts that ``data`` is cut into."""
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    pieces, at = [], 0
    for size in [*sizes, len(data)]:
        part = data[at : at + size]
        pieces.append(compressor.compress(part) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        at += len(part)
    return pieces


def compressed_record(piece: bytes, kind: int = 81) -> bytes:
    if kind == 81:
        return record(81, piece)
    padding = bytes(-len(piece) % 8)
    return record(83, words(len(piece)) + piece + padding)


def directory(path: Path, content: RecordingWriter, parts: Sequence[bytes]) -> Path:
    """``content`` is the main file, which holds the side band; ``parts`` hold records."""
    path.mkdir()
    (path / "data").write_bytes(content.build())
    for number, part in enumerate(parts):
        (path / f"data.{number}").write_bytes(part)
    return path
