"""The source map of a DSO: what its decoded units say about addresses, as plain columns.

It grows unit by unit (``source_map_growth``), is searched for many addresses at once, and is what the cache keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column
from symbolize.dwarf.intervals import Intervals
from symbolize.dwarf.line_program import NO_FILE
from symbolize.dwarf.strings import StringPool, make_pool

NAMELESS_FUNCTION = -1
NOT_NAMED_YET = -2


@dataclass(frozen=True, slots=True)
class NodeTable:
    """Functions and inlined calls of all decoded units.

    ``parent``: a smaller row, -1 = a function.  ``die``: offset in .debug_info of the DIE that names it, -1 = none.
    ``function``: row of the function table, or one of the two constants above: only nodes that were hit are named.
    ``call_file``: row of the strings, -1 = unknown; ``call_line``, ``call_column``: 0 = unknown.
    """

    parent: Int32Column
    die: Int64Column
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

    def nodes_without_name(self, addresses: UInt64Column) -> Int32Column:
        """Rows of the nodes in the chains of ``addresses`` that are not named yet, ascending."""
        found = [np.zeros(0, np.int32)]
        level = np.unique(self.scopes.lookup(addresses))
        level = level[level >= 0]
        while len(level):
            found.append(level[self.nodes.function[level] == NOT_NAMED_YET])
            level = np.unique(self.nodes.parent[level])
            level = level[level >= 0]
        nodes: Int32Column = np.unique(np.concatenate(found))
        return nodes

    def answers(self, addresses: UInt64Column) -> bool:
        """Whether nothing needs to be decoded or named for ``addresses``."""
        return not self.missing_units(addresses) and not len(self.nodes_without_name(addresses))

    def line_rows(self, addresses: UInt64Column) -> Int32Column:
        """Row of ``lines`` for each address, -1 = no source line known."""
        if not len(self.lines.address):
            return np.full(len(addresses), -1, np.int32)
        row = np.searchsorted(self.lines.address, addresses, side="right") - 1
        known = (row >= 0) & (self.lines.file[np.maximum(row, 0)] != NO_FILE)
        found: Int32Column = np.where(known, row, -1).astype(np.int32)
        return found


def empty_source_map(units: Intervals, unit_count: int, left_out: int) -> SourceMap:
    """Nothing decoded yet."""
    i32, i64, u64 = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.uint64)
    return SourceMap(
        units=units,
        is_decoded=np.zeros(unit_count, np.bool_),
        scopes=Intervals(u64, i32),
        nodes=NodeTable(i32, i64, i32, i32, i32, i32),
        lines=LineRows(u64, i32, i32, i32),
        functions=FunctionRows(i32, i32, np.zeros(0, np.uint8)),
        strings=make_pool([]),
        left_out=left_out,
    )
