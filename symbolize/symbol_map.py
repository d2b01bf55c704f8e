"""Addresses of one DSO turned into inline chains: names of the symbol table and of the debug information put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.function import Function, NameSource
from profiler.model.function_table import FunctionTable
from profiler.model.quick_dataclass import dataclass
from profiler.model.symbols import DsoSymbols, InlineChains
from symbolize.dwarf.source_map import SourceMap
from symbolize.source_origin import source_origin
from symbolize.stored_functions import StoredFunctions
from symbolize.symbol_names import SymbolNames

NO_FILE = -1
INLINED = "{inlined}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DsoNames:
    """What is known of one DSO: names by its symbol tables and its debug information, None where it has none."""

    dso_name: str
    symbols: SymbolNames | None
    source_map: SourceMap | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Frames:
    """Frames of all chains, chain by chain, innermost first.  ``node``: the source map's node or -1; ``is_outermost``: the
    last frame of its chain; ``file``: row of the source map's strings, -1 = unknown."""

    start: Int32Column
    node: Int32Column
    is_outermost: np.ndarray[tuple[int], np.dtype[np.bool_]]
    file: Int32Column
    line: Int32Column
    column: Int32Column


class FunctionMemo:
    """Makes functions, each once: demangling and keys cost microseconds, and runs of one program share their names."""

    def __init__(self) -> None:
        # By source, then by linkage name.  (An enumeration's own hash is slow.)
        self._known: tuple[dict[str, Function], ...] = tuple({} for _ in NameSource)
        # Of any source, by linkage name.
        self._named: dict[str, Function] = {}
        self._stored: list[StoredFunctions] = []

    def add(self, functions: StoredFunctions) -> None:
        """Functions made earlier, by the same rules."""
        self._stored.append(functions)

    def function(self, linkage_name: str, source: NameSource) -> Function:
        """``linkage_name`` mangled, or the name to show."""
        known = self._known[source].get(linkage_name)
        if known is None:
            known = self._known[source][linkage_name] = self._make(linkage_name, source)
        return known

    def _make(self, linkage_name: str, source: NameSource) -> Function:
        # Those of the file that is being asked about came last.
        for stored in reversed(self._stored):
            found = stored.find(linkage_name, source)
            if found is not None:
                return found
        named = self._similar(linkage_name)
        if named is None:
            named = self._named[linkage_name] = _maker()(linkage_name, source)
        return Function(named.name, linkage_name, named.key, named.trait_key, source)

    def _similar(self, linkage_name: str) -> Function | None:
        """The function of the same linkage name and another source."""
        named = self._named.get(linkage_name)
        for stored in self._stored:
            named = named or stored.find_similar(linkage_name)
        return named


@cache
def _maker() -> Callable[[str, NameSource], Function]:
    # Their patterns are not needed where a cache has all functions.
    from symbolize.demangle import demangle
    from symbolize.function_key import demangled_key

    def make(linkage_name: str, source: NameSource) -> Function:
        shown = demangle(linkage_name)
        key = demangled_key(linkage_name, shown)
        return Function(shown, linkage_name, key.key, key.trait_key, source)

    return make


def resolve_chains(names: DsoNames, offsets: UInt64Column, link_addresses: UInt64Column, memo: FunctionMemo) -> DsoSymbols:
    """The chains at ``link_addresses``; ``offsets`` are the file offsets as reported, for the names of what has none.

    The outermost frame of a chain is named by the symbol that covers it, inlined ones by their abstract origins.  A chain of an
    address that nothing is known of is one frame ``dso+0xoffset``.
    """
    source_map = names.source_map
    frames = _frames(source_map, link_addresses)
    builder = _FunctionTable(names, memo)
    function = np.full(len(frames.node), -1, np.int32)
    outermost = np.flatnonzero(frames.is_outermost)
    function[outermost] = builder.symbols(link_addresses)
    rest = np.flatnonzero(function < 0)
    function[rest] = builder.described(frames.node[rest], frames.file[rest])
    rest = np.flatnonzero((function < 0) & ~frames.is_outermost)
    function[rest] = builder.nameless(frames.file[rest])
    rest = np.flatnonzero(function < 0)
    chain = np.searchsorted(frames.start, rest, side="right") - 1
    nameless, number = np.unique(offsets[chain], return_inverse=True)
    function[rest] = len(builder.functions) + number
    file_rows = distinct(frames.file[frames.file >= 0])
    file = np.where(frames.file >= 0, np.searchsorted(file_rows, frames.file), NO_FILE).astype(np.int32)
    return DsoSymbols(
        functions=FunctionTable(tuple(builder.functions), (names.dso_name,), np.zeros(len(nameless), np.int32), nameless),
        files=tuple(_text(source_map, row) for row in file_rows.tolist()),
        chains=InlineChains(frames.start, function, file, frames.line, frames.column),
        has_debug_info=_has_debug_info(source_map, link_addresses),
        status="",
    )


def _has_debug_info(source_map: SourceMap | None, addresses: UInt64Column) -> UInt8Column:
    if source_map is None:
        return np.zeros(len(addresses), np.uint8)
    return (source_map.units.lookup(addresses) >= 0).astype(np.uint8)


def _text(source_map: SourceMap | None, row: int) -> str:
    return source_map.strings.text(row) if source_map is not None and row >= 0 else ""


def _frames(source_map: SourceMap | None, addresses: UInt64Column) -> _Frames:
    """All chains at once, one step per level of inlining."""
    count = len(addresses)
    if source_map is None:
        nothing, zero = np.full(count, -1, np.int32), np.zeros(count, np.int32)
        return _Frames(np.arange(count + 1, dtype=np.int32), nothing, np.ones(count, np.bool_), nothing, zero, zero)
    nodes, answers = source_map.nodes, source_map.answers
    node, file = np.full(count, -1, np.int32), np.full(count, NO_FILE, np.int32)
    line, column = np.zeros(count, np.int32), np.zeros(count, np.int32)
    row = source_map.answer_rows(addresses)
    known = row >= 0
    for target, values in ((node, answers.node), (file, answers.file), (line, answers.line), (column, answers.column)):
        target[known] = values[row[known]]
    chain = np.arange(count)
    levels: list[tuple[Int64Column, Int32Column, Int32Column, Int32Column, Int32Column]] = []
    while len(chain):
        levels.append((chain, node, file, line, column))
        inlined = (node >= 0) & (nodes.parent[node] >= 0) if len(nodes.parent) else np.zeros(len(node), np.bool_)
        chain, node = chain[inlined], node[inlined]
        file, line, column = nodes.call_file[node], nodes.call_line[node], nodes.call_column[node]
        node = nodes.parent[node]
    return _in_chain_order(levels, count)


def _in_chain_order(
    levels: Sequence[tuple[Int64Column, Int32Column, Int32Column, Int32Column, Int32Column]], count: int
) -> _Frames:
    depth = np.zeros(count, np.int64)
    for chain, *_ in levels:
        depth[chain] += 1
    start = np.zeros(count + 1, np.int32)
    np.cumsum(depth, out=start[1:])
    node, file, line, column = (np.zeros(int(start[-1]), np.int32) for _ in range(4))
    for level, (chain, *values) in enumerate(levels):
        place = start[chain] + level
        for target, value in zip((node, file, line, column), values, strict=True):
            target[place] = value
    is_outermost = np.zeros(len(node), np.bool_)
    is_outermost[start[1:] - 1] = True
    return _Frames(start, node, is_outermost, file, line, column)


class _FunctionTable:
    """Functions of one answer, each once."""

    def __init__(self, names: DsoNames, memo: FunctionMemo) -> None:
        self.functions: list[Function] = []
        # By identity: the memo makes each once.
        self._rows: dict[int, int] = {}
        self._names = names
        self._memo = memo

    def _row(self, function: Function) -> int:
        row = self._rows.setdefault(id(function), len(self.functions))
        if row == len(self.functions):
            self.functions.append(function)
        return row

    def symbols(self, addresses: UInt64Column) -> Int32Column:
        """Functions named by the symbol tables, -1 where no symbol covers the address."""
        symbols = self._names.symbols
        if symbols is None:
            return np.full(len(addresses), -1, np.int32)
        rows, inverse = np.unique(symbols.rows(addresses), return_inverse=True)
        texts = zip(symbols.strings.texts(rows), (rows >= 0).tolist(), strict=True)
        named = [self._row(self._memo.function(text, NameSource.SYMBOL_TABLE)) if is_named else -1 for text, is_named in texts]
        return np.array(named, np.int32)[inverse]

    def described(self, nodes: Int32Column, files: Int32Column) -> Int32Column:
        """Functions named by the debug information, -1 where it names none."""
        source_map = self._names.source_map
        if source_map is None or not len(source_map.nodes.parent):
            return np.full(len(nodes), -1, np.int32)
        table = source_map.names
        described = np.where(nodes >= 0, source_map.nodes.name[nodes], -1)
        is_partial = (described >= 0) & (_taken(table.source, described) == NameSource.PARTIAL)
        named = np.full(len(table.source) + 1, -1, np.int32)  # the last element is found by row -1
        rows = _used_rows(described[~is_partial], len(table.source))
        named[rows] = self._described(source_map, rows, np.full(len(rows), NO_FILE))
        found: Int32Column = named[described]
        pairs = np.stack([described[is_partial], files[is_partial]], axis=1)
        if len(pairs):
            unique, inverse = np.unique(pairs, axis=0, return_inverse=True)
            found[is_partial] = np.array(self._described(source_map, *unique.T), np.int32)[inverse.reshape(-1)]
        return found

    def _described(self, source_map: SourceMap, rows: Int64Column, files: Int64Column | Int32Column) -> list[int]:
        """Functions of some rows of the name table; ``files`` count for partial names."""
        table, texts = source_map.names, source_map.strings.texts
        linkage_rows = table.linkage_name[rows]
        names = texts(np.where(linkage_rows >= 0, linkage_rows, table.name[rows]))
        sources = tuple(NameSource)
        found = []
        for name, number, linkage_row, file in zip(
            names, table.source[rows].tolist(), linkage_rows.tolist(), files.tolist(), strict=True
        ):
            source = sources[number]
            if source == NameSource.PARTIAL and linkage_row < 0:
                origin = source_origin(_text(source_map, file))
                name = f"{origin}::{name}" if origin else name
            found.append(self._row(self._memo.function(name, source)))
        return found

    def nameless(self, files: Int32Column) -> Int32Column:
        """Inlined calls whose name is in a file that is not there: their source file is all that is known of them."""
        rows, inverse = np.unique(files, return_inverse=True)
        origins = [source_origin(_text(self._names.source_map, row)) for row in rows.tolist()]
        names = [f"{origin}::{INLINED}" if origin else INLINED for origin in origins]
        return np.array([self._row(self._memo.function(name, NameSource.PARTIAL)) for name in names], np.int32)[inverse]


def _used_rows(rows: Int32Column, count: int) -> Int64Column:
    """Which of ``count`` rows are among ``rows``, ascending; -1 is none."""
    is_used = np.zeros(count + 1, np.bool_)
    is_used[rows] = True
    return np.flatnonzero(is_used[:count])


def _taken(column: UInt8Column, rows: Int32Column) -> UInt8Column:
    """``column[rows]``; negative rows take anything."""
    return column[np.maximum(rows, 0)] if len(column) else np.zeros(len(rows), np.uint8)
