"""Persistent cache of symbolization by build ID: source maps, names by the symbol tables, and functions with their readable
names and keys.

Three files of columns per build ID (``column_file``).  A file that is damaged, foreign or of another version is as good as
absent.  Writers replace a file in one step, so readers see the old or the new one, and of several writers the last one wins;
all of them wrote the truth, only not equally much of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from symbolize.column_file import Column, ColumnFormat, decode_columns, encode_columns
from symbolize.dwarf.intervals import Intervals
from symbolize.dwarf.source_map import AnswerTable, FunctionTable, NameTable, NodeTable, SequenceTable, SourceMap
from symbolize.dwarf.strings import StringPool
from symbolize.stored_functions import TEXTS, StoredFunctions
from symbolize.symbol_names import SymbolNames

# Raise it whenever the columns, what the decoder puts into them, or the rules for names and keys change.
FORMAT_VERSION = 4
_MAP_FORMAT = ColumnFormat(
    b"slotscope source map\n",
    FORMAT_VERSION,
    (
        "<i8",  # units left out, skeleton units
        *("<u8", "<i4", "|b1"),  # units: start, owner; is_outlined
        *("<u8", "<i4"),  # covered: start, owner
        *("<i8", "<i4"),  # functions
        *("<u8", "<i4", "<i8", "<i8"),  # sequences
        *("<u8", "<i4", "<i4", "<i4", "<i4"),  # answers
        *("<i4", "<i4", "<i4", "<i4", "<i4"),  # nodes
        *("<i4", "<i4", "|u1"),  # names
        *("<i8", "|u1"),  # strings: start, data
    ),
)
_SYMBOLS_FORMAT = ColumnFormat(b"slotscope symbols\n", FORMAT_VERSION, ("<u8", "<i4", "<i8", "|u1", "<i8"))
_FUNCTIONS_FORMAT = ColumnFormat(b"slotscope name table\n", FORMAT_VERSION, ("<i8", "|u1", "|u1"))
_COUNTS = 2
_LARGEST_SOURCE = 5

Table = TypeVar("Table", Intervals, FunctionTable, SequenceTable, AnswerTable, NodeTable, NameTable)


def default_cache_directory() -> Path:
    """$XDG_CACHE_HOME/slotscope, by default ~/.cache/slotscope."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "slotscope"


class SymbolCache:
    """Answers in ``directory``, which is made when the first one is stored.  No method raises for I/O errors: a cache that
    cannot be read or written only costs time.  Files without build ID are never cached: nothing tells their builds apart."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "symbols"

    def load(self, build_id: bytes) -> SourceMap | None:
        """The map stored for ``build_id``, None when there is none that can be trusted."""
        data = self.read(build_id, ".map")
        return decode_source_map(data) if data else None

    def store(self, build_id: bytes, source_map: SourceMap) -> bool:
        """Whether the map is stored now."""
        return self.write(build_id, ".map", encode_source_map(source_map))

    def load_symbols(self, build_id: bytes) -> SymbolNames | None:
        """The symbols' names stored for ``build_id``, None when there are none that can be trusted."""
        data = self.read(build_id, ".symbols")
        return decode_symbols(data) if data else None

    def store_symbols(self, build_id: bytes, symbols: SymbolNames) -> bool:
        """Whether the names are stored now."""
        return self.write(build_id, ".symbols", encode_symbols(symbols))

    def load_functions(self, build_id: bytes) -> StoredFunctions | None:
        """The functions stored for ``build_id``, None when there are none that can be trusted."""
        data = self.read(build_id, ".names")
        return decode_functions(data) if data else None

    def store_functions(self, build_id: bytes, functions: StoredFunctions) -> bool:
        """Whether the functions are stored now."""
        return self.write(build_id, ".names", encode_functions(functions))

    def read(self, build_id: bytes, suffix: str) -> bytes:
        """Content of one file, empty when there is none."""
        if not build_id:
            return b""
        try:
            return self._path(build_id, suffix).read_bytes()
        except OSError:
            return b""

    def write(self, build_id: bytes, suffix: str, pieces: Sequence[bytes]) -> bool:
        """Replaces one file; whether it is stored now."""
        if not build_id:
            return False
        path = self._path(build_id, suffix)
        temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as stream:
                stream.writelines(pieces)
            os.replace(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            return False
        return True

    def _path(self, build_id: bytes, suffix: str) -> Path:
        name = build_id.hex()
        return self._directory / name[:2] / f"{name[2:] or name}{suffix}"


def encode_functions(functions: StoredFunctions) -> list[bytes]:
    """The file's content in pieces."""
    return encode_columns(_FUNCTIONS_FORMAT, [functions.start, np.frombuffer(functions.data, np.uint8), functions.source])


def decode_functions(data: bytes) -> StoredFunctions | None:
    """The functions in a cache file's content, None when it is damaged or of another version."""
    columns = decode_columns(_FUNCTIONS_FORMAT, data)
    if columns is None:
        return None
    start, texts, source = columns
    is_consistent = len(start) == TEXTS * len(source) + 1 and _are_boundaries(start, len(texts))
    return StoredFunctions(start, texts.data, source) if is_consistent and _within(source, _LARGEST_SOURCE + 1) else None


def encode_symbols(symbols: SymbolNames) -> list[bytes]:
    """The file's content in pieces."""
    data = np.frombuffer(symbols.strings.data, np.uint8)
    return encode_columns(_SYMBOLS_FORMAT, [symbols.address, symbols.name, symbols.strings.start, data, symbols.origin])


def decode_symbols(data: bytes) -> SymbolNames | None:
    """The names in a cache file's content, None when it is damaged or of another version."""
    columns = decode_columns(_SYMBOLS_FORMAT, data)
    if columns is None:
        return None
    address, name, start, texts, origin = columns
    is_consistent = len(address) == len(name) and _are_boundaries(start, len(texts)) and _within(name, len(start) - 1)
    return SymbolNames(address, name, StringPool(texts.data, start), origin) if is_consistent else None


def encode_source_map(source_map: SourceMap) -> list[bytes]:
    """The file's content in pieces."""
    return encode_columns(_MAP_FORMAT, _columns(source_map))


def _columns(source_map: SourceMap) -> list[Column]:
    parts = (*(source_map.functions, source_map.sequences, source_map.answers, source_map.nodes, source_map.names),)
    return [
        np.array([source_map.left_out, source_map.skeletons], np.int64),
        *(source_map.units.start, source_map.units.owner, source_map.is_outlined),
        *(source_map.covered.start, source_map.covered.owner),
        *(getattr(part, field.name) for part in parts for field in fields(part)),
        *(source_map.strings.start, np.frombuffer(source_map.strings.data, np.uint8)),
    ]


def decode_source_map(data: bytes) -> SourceMap | None:
    """The map in a cache file's content, None when it is damaged or of another version."""
    columns = decode_columns(_MAP_FORMAT, data)
    if columns is None or len(columns[0]) != _COUNTS:
        return None
    left_out, skeletons = columns[0].tolist()
    left = iter(columns[1:])

    def table(kind: type[Table]) -> Table:
        return kind(*(next(left) for _ in kind.__slots__))

    source_map = SourceMap(
        units=table(Intervals),
        is_outlined=next(left),
        covered=table(Intervals),
        functions=table(FunctionTable),
        sequences=table(SequenceTable),
        answers=table(AnswerTable),
        nodes=table(NodeTable),
        names=table(NameTable),
        strings=_string_pool(next(left), next(left)),
        left_out=left_out,
        skeletons=skeletons,
    )
    return source_map if _is_consistent(source_map) else None


def _string_pool(start: Column, data: Column) -> StringPool:
    return StringPool(data.data, start)


def _is_consistent(source_map: SourceMap) -> bool:
    """Whether every row number stays inside its table, so that no look-up can fail or run in circles."""
    nodes, answers, names, strings = source_map.nodes, source_map.answers, source_map.names, source_map.strings
    tables = (source_map.units, source_map.covered, source_map.functions, source_map.sequences)
    node_count, string_count, unit_count = len(nodes.parent), len(strings), len(source_map.is_outlined)
    return (
        all(_has_equal_columns(table) for table in (*tables, answers, nodes, names))
        and _are_boundaries(strings.start, len(strings.data))
        and all(_within(column, unit_count) for column in (source_map.units.owner, source_map.functions.unit))
        and _within(source_map.sequences.unit, unit_count)
        and _within(source_map.covered.owner, len(source_map.functions.die))
        and _within(answers.node, node_count)
        and bool(np.all(nodes.parent < np.arange(node_count)))
        and _within(nodes.parent, node_count)
        and _within(nodes.name, len(names.name))
        and all(_within(column, string_count) for column in (nodes.call_file, answers.file, names.linkage_name))
        and _within(names.name, string_count, lowest=0)
        and _within(names.source, _LARGEST_SOURCE + 1)
    )


def _are_boundaries(start: Column, end: int) -> bool:
    """Whether ``start`` divides everything up to ``end`` into pieces."""
    return len(start) > 0 and bool(start[0] == 0 and start[-1] == end and np.all(start[1:] >= start[:-1]))


def _has_equal_columns(table: Any) -> bool:
    return len({len(getattr(table, field.name)) for field in fields(table)}) == 1


def _within(column: Column, count: int, lowest: int = -1) -> bool:
    return not len(column) or bool(column.min() >= lowest and column.max() < count)
