"""Adding decoded units and names to a source map; maps are values, so each step makes a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from profiler.model.arrays import Int32Column
from profiler.model.symbols import NameSource
from symbolize.dwarf.function_names import DieName
from symbolize.dwarf.inline_tree import InlineTree
from symbolize.dwarf.intervals import NOBODY, Intervals
from symbolize.dwarf.line_program import NO_FILE, LineTable
from symbolize.dwarf.source_map import (
    NAMELESS_FUNCTION,
    NOT_NAMED_YET,
    FunctionRows,
    LineRows,
    NodeTable,
    SourceMap,
)
from symbolize.dwarf.strings import make_pool


@dataclass(frozen=True, slots=True)
class DecodedUnit:
    """What one unit adds.  ``tree`` or ``lines`` is None when that part is damaged or absent."""

    row: int
    tree: InlineTree | None
    lines: LineTable | None
    is_damaged: bool


class _Strings:
    """Strings of a map, each held once, while the map grows."""

    def __init__(self, known: SourceMap) -> None:
        pool = known.strings
        self.rows = {pool.text(row): row for row in range(len(pool))}

    def row(self, text: str) -> int:
        return self.rows.setdefault(text, len(self.rows))

    def rows_of(self, texts: Sequence[str]) -> Int32Column:
        """String row by file number; the last element stands for "no file", so that index -1 finds it."""
        return np.array([*(self.row(text) for text in texts), NO_FILE], np.int32)


def add_units(known: SourceMap, decoded: Sequence[DecodedUnit]) -> SourceMap:
    """``known`` and the units ``decoded`` in one map."""
    strings = _Strings(known)
    scopes, nodes, lines = [known.scopes], [known.nodes], [known.lines]
    is_decoded = known.is_decoded.copy()
    node_count = len(known.nodes.parent)
    for unit in decoded:
        is_decoded[unit.row] = True
        files = strings.rows_of(unit.lines.file_names if unit.lines else ())
        if unit.tree is not None:
            scopes.append(_shifted(unit.tree.scopes, node_count))
            nodes.append(_unit_nodes(unit.tree, files, node_count))
            node_count += len(unit.tree.parent)
        if unit.lines is not None:
            table = unit.lines
            lines.append(LineRows(table.address, files[table.file], table.line, table.column))
    return replace(
        known,
        is_decoded=is_decoded,
        scopes=_merged_intervals(scopes),
        nodes=_concatenated_nodes(nodes),
        lines=_merged_lines(lines),
        strings=make_pool(strings.rows),
        left_out=known.left_out + sum(unit.is_damaged for unit in decoded),
    )


def add_names(known: SourceMap, nodes: Int32Column, names: Sequence[DieName]) -> SourceMap:
    """``known`` with node ``nodes[i]`` named ``names[i]``."""
    strings = _Strings(known)
    table = known.functions
    rows = zip(table.name.tolist(), table.linkage_name.tolist(), table.source.tolist(), strict=True)
    functions: dict[tuple[int, int, int], int] = {row: index for index, row in enumerate(rows)}
    function = known.nodes.function.copy()
    for node, name in zip(nodes.tolist(), names, strict=True):
        if name.source == NameSource.UNRESOLVED:
            function[node] = NAMELESS_FUNCTION
            continue
        linkage_row = strings.row(name.linkage_name) if name.linkage_name else -1
        function[node] = functions.setdefault((strings.row(name.name), linkage_row, int(name.source)), len(functions))
    columns = np.array(list(functions), np.int32).reshape(-1, 3)
    return replace(
        known,
        nodes=replace(known.nodes, function=function),
        functions=FunctionRows(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].astype(np.uint8)),
        strings=make_pool(strings.rows),
    )


def _unit_nodes(tree: InlineTree, files: Int32Column, first_node: int) -> NodeTable:
    number = np.where(tree.call_file < len(files) - 1, tree.call_file, -1)
    return NodeTable(
        parent=np.where(tree.parent >= 0, tree.parent + first_node, -1).astype(np.int32),
        die=tree.die,
        function=np.where(tree.die >= 0, NOT_NAMED_YET, NAMELESS_FUNCTION).astype(np.int32),
        # A call without a line has no place at all.
        call_file=np.where(tree.call_line > 0, files[number], NO_FILE).astype(np.int32),
        call_line=tree.call_line,
        call_column=tree.call_column,
    )


def _shifted(scopes: Intervals, first_node: int) -> Intervals:
    return Intervals(scopes.start, np.where(scopes.owner >= 0, scopes.owner + first_node, NOBODY).astype(np.int32))


def _concatenated_nodes(parts: Sequence[NodeTable]) -> NodeTable:
    return NodeTable(
        parent=np.concatenate([part.parent for part in parts]),
        die=np.concatenate([part.die for part in parts]),
        function=np.concatenate([part.function for part in parts]),
        call_file=np.concatenate([part.call_file for part in parts]),
        call_line=np.concatenate([part.call_line for part in parts]),
        call_column=np.concatenate([part.call_column for part in parts]),
    )


def _merged_intervals(parts: Sequence[Intervals]) -> Intervals:
    """Where one unit's code ends at the start of another's, the end comes first and the binary search takes the start."""
    start = np.concatenate([part.start for part in parts])
    owner = np.concatenate([part.owner for part in parts])
    order = np.lexsort([owner != NOBODY, start])
    return Intervals(start[order], owner[order])


def _merged_lines(parts: Sequence[LineRows]) -> LineRows:
    """As for intervals, the end of a sequence comes before the start of the next one."""
    address = np.concatenate([part.address for part in parts])
    file = np.concatenate([part.file for part in parts])
    order = np.lexsort([file != NO_FILE, address])
    line = np.concatenate([part.line for part in parts])
    column = np.concatenate([part.column for part in parts])
    return LineRows(address[order], file[order], line[order], column[order])
