"""The source map of a DSO: what its decoded units say about addresses, as plain columns.

It grows unit by unit, is searched for many addresses at once, and is what the cache keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, UInt8Column, UInt64Column
from profiler.model.symbols import NameSource
from symbolize.dwarf.function_names import DieName
from symbolize.dwarf.inline_tree import InlineTree
from symbolize.dwarf.intervals import NOBODY, Intervals
from symbolize.dwarf.line_program import NO_FILE, LineTable
from symbolize.dwarf.strings import StringPool, make_pool


@dataclass(frozen=True, slots=True)
class NodeTable:
    """Functions and inlined calls of all decoded units.  ``parent``: a smaller row, -1 = a function.  ``function``: row of
    the function table, -1 = nameless.  ``call_file``: row of the strings, -1 = unknown; ``call_line``, ``call_column``:
    0 = unknown."""

    parent: Int32Column
    function: Int32Column
    call_file: Int32Column
    call_line: Int32Column
    call_column: Int32Column


@dataclass(frozen=True, slots=True)
class LineRows:
    """As ``LineTable``, with ``file`` a row of the strings."""

    address: UInt64Column
    file: Int32Column
    line: Int32Column
    column: Int32Column


@dataclass(frozen=True, slots=True)
class FunctionRows:
    """``name``, ``linkage_name``: rows of the strings (-1 = none); ``source``: ``NameSource``."""

    name: Int32Column
    linkage_name: Int32Column
    source: UInt8Column


@dataclass(frozen=True, slots=True)
class SourceMap:
    """``units``: which unit covers an address; ``is_decoded[unit]``; ``scopes``: the innermost node of an address.
    ``left_out``: units that are damaged or of an unsupported kind."""

    units: Intervals
    is_decoded: BoolColumn
    scopes: Intervals
    nodes: NodeTable
    lines: LineRows
    functions: FunctionRows
    strings: StringPool
    left_out: int

    def missing_units(self, addresses: UInt64Column) -> list[int]:
        """Rows of the units that cover ``addresses`` and are not decoded yet, ascending."""
        hit = np.unique(self.units.lookup(addresses))
        hit = hit[hit >= 0]
        return [int(row) for row in hit[~self.is_decoded[hit]]]

    def line_rows(self, addresses: UInt64Column) -> Int32Column:
        """Row of ``lines`` for each address, -1 = no source line known."""
        if not len(self.lines.address):
            return np.full(len(addresses), -1, np.int32)
        row = np.searchsorted(self.lines.address, addresses, side="right") - 1
        known = (row >= 0) & (self.lines.file[np.maximum(row, 0)] != NO_FILE)
        found: Int32Column = np.where(known, row, -1).astype(np.int32)
        return found


@dataclass(frozen=True, slots=True)
class DecodedUnit:
    """What one unit adds.  ``tree`` or ``lines`` is None when that part is damaged or absent; ``names[i]`` names node i."""

    row: int
    tree: InlineTree | None
    names: Sequence[DieName]
    lines: LineTable | None
    is_damaged: bool


def empty_source_map(units: Intervals, unit_count: int, left_out: int) -> SourceMap:
    """Nothing decoded yet."""
    i32, u64 = np.zeros(0, np.int32), np.zeros(0, np.uint64)
    return SourceMap(
        units=units,
        is_decoded=np.zeros(unit_count, np.bool_),
        scopes=Intervals(u64, i32),
        nodes=NodeTable(i32, i32, i32, i32, i32),
        lines=LineRows(u64, i32, i32, i32),
        functions=FunctionRows(i32, i32, np.zeros(0, np.uint8)),
        strings=make_pool([]),
        left_out=left_out,
    )


def extend_source_map(known: SourceMap, decoded: Sequence[DecodedUnit]) -> SourceMap:
    """``known`` and the units ``decoded`` in one map."""
    tables = _Tables(known)
    scopes, nodes, lines = [known.scopes], [known.nodes], [known.lines]
    is_decoded = known.is_decoded.copy()
    node_count = len(known.nodes.parent)
    for unit in decoded:
        is_decoded[unit.row] = True
        files = tables.files(unit.lines.file_names if unit.lines else ())
        if unit.tree is not None:
            scopes.append(_shifted(unit.tree.scopes, node_count))
            nodes.append(_unit_nodes(unit.tree, unit.names, files, tables, node_count))
            node_count += len(unit.tree.parent)
        if unit.lines is not None:
            table = unit.lines
            lines.append(LineRows(table.address, files[table.file], table.line, table.column))
    return SourceMap(
        units=known.units,
        is_decoded=is_decoded,
        scopes=_merged_intervals(scopes),
        nodes=NodeTable(
            parent=np.concatenate([part.parent for part in nodes]),
            function=np.concatenate([part.function for part in nodes]),
            call_file=np.concatenate([part.call_file for part in nodes]),
            call_line=np.concatenate([part.call_line for part in nodes]),
            call_column=np.concatenate([part.call_column for part in nodes]),
        ),
        lines=_merged_lines(lines),
        functions=tables.functions(),
        strings=make_pool(tables.strings),
        left_out=known.left_out + sum(unit.is_damaged for unit in decoded),
    )


class _Tables:
    """Strings and functions while a map grows, each held once."""

    def __init__(self, known: SourceMap) -> None:
        pool, functions = known.strings, known.functions
        self.strings = {pool.text(row): row for row in range(len(pool))}
        rows = zip(functions.name.tolist(), functions.linkage_name.tolist(), functions.source.tolist(), strict=True)
        self._functions: dict[tuple[int, int, int], int] = {row: index for index, row in enumerate(rows)}

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def files(self, names: Sequence[str]) -> Int32Column:
        """String row by file number; the last element stands for "no file", so that index -1 finds it."""
        return np.array([*(self.string(name) for name in names), NO_FILE], np.int32)

    def function(self, name: DieName) -> int:
        if name.source == NameSource.UNRESOLVED:
            return -1
        row = (self.string(name.name), self.string(name.linkage_name) if name.linkage_name else -1, int(name.source))
        return self._functions.setdefault(row, len(self._functions))

    def functions(self) -> FunctionRows:
        table = np.array(list(self._functions), np.int32).reshape(-1, 3)
        return FunctionRows(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].astype(np.uint8))


def _unit_nodes(tree: InlineTree, names: Sequence[DieName], files: Int32Column, tables: _Tables, first_node: int) -> NodeTable:
    number = tree.call_file
    number = np.where((number >= 0) & (number < len(files) - 1), number, -1)
    # A call without a line has no place at all.
    return NodeTable(
        parent=np.where(tree.parent >= 0, tree.parent + first_node, -1).astype(np.int32),
        function=np.array([tables.function(name) for name in names], np.int32),
        call_file=np.where(tree.call_line > 0, files[number], NO_FILE).astype(np.int32),
        call_line=tree.call_line,
        call_column=tree.call_column,
    )


def _shifted(scopes: Intervals, first_node: int) -> Intervals:
    return Intervals(scopes.start, np.where(scopes.owner >= 0, scopes.owner + first_node, NOBODY).astype(np.int32))


def _merged_intervals(parts: list[Intervals]) -> Intervals:
    """Where one unit's code ends at the start of another's, the end comes first and the binary search takes the start."""
    start = np.concatenate([part.start for part in parts])
    owner = np.concatenate([part.owner for part in parts])
    order = np.lexsort([owner != NOBODY, start])
    return Intervals(start[order], owner[order])


def _merged_lines(parts: list[LineRows]) -> LineRows:
    address = np.concatenate([part.address for part in parts])
    file = np.concatenate([part.file for part in parts])
    order = np.lexsort([file != NO_FILE, address])
    line = np.concatenate([part.line for part in parts])
    column = np.concatenate([part.column for part in parts])
    return LineRows(address[order], file[order], line[order], column[order])
