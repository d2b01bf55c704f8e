"""Persistent cache of source maps by build ID.

One file per build ID: magic, format version, CRC-32 of what follows, a table of column sizes, the columns.  A file that is
damaged, foreign or of another version is as good as absent.  Writers replace the file in one step, so readers see the old or
the new one, and of several writers the last one wins; every one of their maps is right, only not equally large.
"""

from __future__ import annotations

import os
import struct
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from symbolize.dwarf.intervals import Intervals
from symbolize.dwarf.source_map import FunctionRows, LineRows, NodeTable, SourceMap
from symbolize.dwarf.strings import StringPool

_MAGIC = b"slotscope source map\n"
# Raise it whenever the columns or what the decoder puts into them changes.
FORMAT_VERSION = 1
_HEADER = struct.Struct(f"<{len(_MAGIC)}sIIq")  # magic, version, CRC-32, units left out
_COLUMN_TYPES: tuple[str, ...] = (
    *("<u8", "<i4", "|b1"),  # units: start, owner; is_decoded
    *("<u8", "<i4"),  # scopes: start, owner
    *("<i4", "<i8", "<i4", "<i4", "<i4", "<i4"),  # nodes
    *("<u8", "<i4", "<i4", "<i4"),  # lines
    *("<i4", "<i4", "|u1"),  # functions
    *("<i8", "|u1"),  # strings: start, data
)
_SIZES = struct.Struct(f"<{len(_COLUMN_TYPES)}q")
_ALIGNMENT = 8
_LARGEST_SOURCE = 5

Column = npt.NDArray[Any]


def default_cache_directory() -> Path:
    """$XDG_CACHE_HOME/slotscope, by default ~/.cache/slotscope."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "slotscope"


class SymbolCache:
    """Source maps in ``directory``, which is made when the first one is stored.  No method raises for I/O errors: a cache that
    cannot be read or written only costs time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "symbols"

    def load(self, build_id: bytes) -> SourceMap | None:
        """The map stored for ``build_id``, None when there is none that can be trusted."""
        if not build_id:
            return None
        try:
            data = self._path(build_id).read_bytes()
        except OSError:
            return None
        return decode_source_map(data)

    def store(self, build_id: bytes, source_map: SourceMap) -> bool:
        """Whether the map is stored now.  Files without build ID are never cached: nothing tells their builds apart."""
        if not build_id:
            return False
        path = self._path(build_id)
        temporary = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix=path.name, suffix=".tmp", dir=path.parent)
            with os.fdopen(descriptor, "wb") as stream:
                stream.writelines(encode_source_map(source_map))
            os.replace(temporary, path)
        except OSError:
            if temporary:
                Path(temporary).unlink(missing_ok=True)
            return False
        return True

    def _path(self, build_id: bytes) -> Path:
        name = build_id.hex()
        return self._directory / name[:2] / f"{name[2:] or name}.map"


def encode_source_map(source_map: SourceMap) -> list[bytes]:
    """The cache file's content in pieces."""
    columns = [np.ascontiguousarray(column, kind) for column, kind in zip(_columns(source_map), _COLUMN_TYPES, strict=True)]
    pieces = [_SIZES.pack(*[column.size for column in columns])]
    for column in columns:
        pieces += [column.tobytes(), bytes(-column.nbytes % _ALIGNMENT)]
    checksum = 0
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    return [_HEADER.pack(_MAGIC, FORMAT_VERSION, checksum, source_map.left_out), *pieces]


def _columns(source_map: SourceMap) -> list[Column]:
    nodes, lines, functions = source_map.nodes, source_map.lines, source_map.functions
    return [
        *(source_map.units.start, source_map.units.owner, source_map.is_decoded),
        *(source_map.scopes.start, source_map.scopes.owner),
        *(nodes.parent, nodes.die, nodes.function, nodes.call_file, nodes.call_line, nodes.call_column),
        *(lines.address, lines.file, lines.line, lines.column),
        *(functions.name, functions.linkage_name, functions.source),
        *(source_map.strings.start, np.frombuffer(source_map.strings.data, np.uint8)),
    ]


def decode_source_map(data: bytes) -> SourceMap | None:
    """The map in a cache file's content, None when it is damaged or of another version."""
    if len(data) < _HEADER.size + _SIZES.size:
        return None
    magic, version, checksum, left_out = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != FORMAT_VERSION:
        return None
    body = memoryview(data)[_HEADER.size :]
    if zlib.crc32(body) != checksum:
        return None
    columns = _read_columns(body)
    if columns is None:
        return None
    units, unit_owner, decoded, scopes, scope_owner, *rest = columns
    strings = StringPool(rest[14].data, rest[13])
    source_map = SourceMap(
        units=Intervals(units, unit_owner),
        is_decoded=decoded,
        scopes=Intervals(scopes, scope_owner),
        nodes=NodeTable(*rest[:6]),
        lines=LineRows(*rest[6:10]),
        functions=FunctionRows(*rest[10:13]),
        strings=strings,
        left_out=left_out,
    )
    return source_map if _is_consistent(source_map) else None


def _read_columns(body: memoryview) -> list[Column] | None:
    sizes = _SIZES.unpack_from(body)
    position = _SIZES.size
    columns: list[Column] = []
    for size, kind in zip(sizes, _COLUMN_TYPES, strict=True):
        length = size * np.dtype(kind).itemsize
        if size < 0 or position + length > len(body):
            return None
        columns.append(np.frombuffer(body, kind, size, position))
        position += length + (-length % _ALIGNMENT)
    return columns


def _is_consistent(source_map: SourceMap) -> bool:
    """Whether every row number stays inside its table, so that no look-up can fail or run in circles."""
    nodes, lines, functions, strings = source_map.nodes, source_map.lines, source_map.functions, source_map.strings
    node_count, string_count = len(nodes.parent), len(strings)
    start = strings.start
    equal_lengths: Sequence[tuple[Column, ...]] = (
        (source_map.units.start, source_map.units.owner),
        (source_map.scopes.start, source_map.scopes.owner),
        (nodes.parent, nodes.die, nodes.function, nodes.call_file, nodes.call_line, nodes.call_column),
        (lines.address, lines.file, lines.line, lines.column),
        (functions.name, functions.linkage_name, functions.source),
    )
    return (
        all(len({len(column) for column in columns}) == 1 for columns in equal_lengths)
        and len(start) > 0
        and bool(start[0] == 0 and start[-1] == len(strings.data) and np.all(start[1:] >= start[:-1]))
        and _within(source_map.units.owner, len(source_map.is_decoded))
        and _within(source_map.scopes.owner, node_count)
        and bool(np.all(nodes.parent < np.arange(node_count)))
        and _within(nodes.parent, node_count)
        and _within(nodes.function, len(functions.name), lowest=-2)
        and all(_within(column, string_count) for column in (nodes.call_file, lines.file, functions.linkage_name))
        and _within(functions.name, string_count, lowest=0)
        and _within(functions.source, _LARGEST_SOURCE + 1)
    )


def _within(column: Column, count: int, lowest: int = -1) -> bool:
    return not len(column) or bool(column.min() >= lowest and column.max() < count)
