"""Adding what was decoded to a source map; maps are values, so each step makes a new one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt64Column, distinct
from profiler.model.function import NameSource
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.function_names import DieName
from symbolize.dwarf.inline_chains import NO_DIE, ChainNodes
from symbolize.dwarf.intervals import NOBODY, Intervals
from symbolize.dwarf.line_program import NO_FILE, LineTable
from symbolize.dwarf.line_sequences import LineSequences
from symbolize.dwarf.source_map import AnswerTable, FunctionTable, NameTable, NodeTable, SequenceTable, SourceMap
from symbolize.dwarf.strings import make_pool
from symbolize.dwarf.unit_outline import UnitOutline

NAMELESS = -1

Table = TypeVar("Table", FunctionTable, SequenceTable, NodeTable, AnswerTable)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutlinedUnit:
    """``outline``, ``sequences``: None when that part is damaged or absent.  ``is_text``: which sequences describe code that
    is in the file.  ``is_skeleton``: its functions are described in another file."""

    row: int
    outline: UnitOutline | None
    sequences: LineSequences | None
    is_text: BoolColumn
    is_damaged: bool
    is_skeleton: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnitAnswers:
    """Answers of one unit for ``addresses``, ascending.  ``node``: the innermost row of ``nodes``, -1 = none.  ``lines`` holds
    at least the rows around them."""

    addresses: UInt64Column
    node: Int32Column
    nodes: ChainNodes | None
    lines: LineTable | None
    file_names: tuple[str, ...]
    is_damaged: bool


def add_outlines(known: SourceMap, outlined: Sequence[OutlinedUnit]) -> SourceMap:
    """``known`` with the functions and sequences of some units."""
    covered, functions, sequences = [known.covered], [known.functions], [known.sequences]
    is_outlined = known.is_outlined.copy()
    function_count = len(known.functions.die)
    for unit in outlined:
        is_outlined[unit.row] = True
        if unit.outline is not None:
            count = len(unit.outline.die)
            covered.append(_shifted(unit.outline.covered, function_count))
            functions.append(FunctionTable(unit.outline.die, np.full(count, unit.row, np.int32)))
            function_count += count
        if unit.sequences is not None:
            found, kept = unit.sequences, unit.is_text
            owner = np.full(int(kept.sum()), unit.row, np.int32)
            sequences.append(SequenceTable(found.address[kept], owner, found.begin[kept], found.end[kept]))
    merged = _concatenated(sequences)
    return replace(
        known,
        is_outlined=is_outlined,
        covered=_merged_intervals(covered),
        functions=_concatenated(functions),
        sequences=_taken(merged, np.argsort(merged.address, kind="stable")),
        left_out=known.left_out + sum(unit.is_damaged for unit in outlined),
        skeletons=known.skeletons + sum(unit.is_skeleton for unit in outlined),
    )


def add_answers(known: SourceMap, units: Sequence[UnitAnswers], names: Mapping[int, DieName]) -> SourceMap:
    """``known`` with the answers of ``units``, whose functions are named by their DIE in ``names``."""
    tables = _Tables(known)
    name_rows = {die: tables.name(name) for die, name in names.items()} | {NO_DIE: NAMELESS}
    answers, nodes = [known.answers], [known.nodes]
    node_count = len(known.nodes.parent)
    for unit in units:
        files = tables.files(unit.file_names, _used_files(unit))
        node = _moved(unit.node, node_count)
        if unit.nodes is not None:
            nodes.append(_unit_nodes(unit.nodes, files, node_count, name_rows))
            node_count += len(unit.nodes.parent)
        answers.append(AnswerTable(unit.addresses, node, *_places(unit, files)))
    merged = _concatenated(answers)
    return replace(
        known,
        answers=_taken(merged, np.argsort(merged.address, kind="stable")),
        nodes=_concatenated(nodes),
        names=tables.names(),
        strings=make_pool(tables.strings),
        left_out=known.left_out + sum(unit.is_damaged for unit in units),
    )


def add_map(known: SourceMap, part: SourceMap) -> SourceMap:
    """``known`` with all that ``part`` knows of other units of the same file."""
    tables = _Tables(known)
    # The last element stands for "none", so that index -1 finds it.
    strings = np.array([*[tables.string(text) for text in part.strings.all_texts()], -1], np.int32)
    columns = (strings[part.names.name], strings[part.names.linkage_name], part.names.source)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    names = np.array([*[tables.name_row(row) for row in rows], NAMELESS], np.int32)
    function_count, node_count = len(known.functions.die), len(known.nodes.parent)
    more_nodes = replace(
        part.nodes,
        parent=_moved(part.nodes.parent, node_count),
        name=names[part.nodes.name],
        call_file=strings[part.nodes.call_file],
    )
    more_answers = replace(part.answers, node=_moved(part.answers.node, node_count), file=strings[part.answers.file])
    sequences = _concatenated([known.sequences, part.sequences])
    answers = _concatenated([known.answers, more_answers])
    return replace(
        known,
        is_outlined=known.is_outlined | part.is_outlined,
        covered=_merged_intervals([known.covered, _shifted(part.covered, function_count)]),
        functions=_concatenated([known.functions, part.functions]),
        sequences=_taken(sequences, np.argsort(sequences.address, kind="stable")),
        answers=_taken(answers, np.argsort(answers.address, kind="stable")),
        nodes=_concatenated([known.nodes, more_nodes]),
        names=tables.names(),
        strings=make_pool(tables.strings),
        left_out=known.left_out + part.left_out,
        skeletons=known.skeletons + part.skeletons,
    )


def _moved(rows: Int32Column, count: int) -> Int32Column:
    """Rows that come behind ``count`` others; -1 stays."""
    return np.where(rows >= 0, rows + np.int32(count), rows)


class _Tables:
    """Strings and names of a map, each held once, while the map grows."""

    def __init__(self, known: SourceMap) -> None:
        pool, table = known.strings, known.names
        self.strings = {text: row for row, text in enumerate(pool.all_texts())}
        rows = zip(table.name.tolist(), table.linkage_name.tolist(), table.source.tolist(), strict=True)
        self._names: dict[tuple[int, int, int], int] = {row: index for index, row in enumerate(rows)}

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def files(self, names: Sequence[str], used: Iterable[int]) -> Int32Column:
        """String row by file number, of those that are ``used``; the last element stands for "no file", so that index -1
        finds it."""
        rows = np.full(len(names) + 1, NO_FILE, np.int32)
        for number in used:
            rows[number] = self.string(names[number])
        return rows

    def name(self, name: DieName) -> int:
        if name.source == NameSource.UNRESOLVED:
            return NAMELESS
        linkage_row = self.string(name.linkage_name) if name.linkage_name else -1
        return self.name_row((self.string(name.name), linkage_row, int(name.source)))

    def name_row(self, name: tuple[int, int, int]) -> int:
        """(string row of the name, of the linkage name or -1, source)."""
        return self._names.setdefault(name, len(self._names))

    def names(self) -> NameTable:
        columns = np.array(list(self._names), np.int32).reshape(-1, 3)
        return NameTable(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].astype(np.uint8))


def _unit_nodes(nodes: ChainNodes, files: Int32Column, first_node: int, name_rows: Mapping[int, int]) -> NodeTable:
    file, line = nodes.call_file, nodes.call_line
    return NodeTable(
        parent=_moved(nodes.parent, first_node),
        name=np.array([name_rows[die] for die in nodes.die.tolist()], np.int32),
        # A call without a line has no place at all.
        call_file=np.where(line > 0, files[np.where(file < len(files) - 1, file, -1)], np.int32(NO_FILE)),
        call_line=line,
        call_column=nodes.call_column,
    )


def _used_files(unit: UnitAnswers) -> list[int]:
    """Numbers of the files in which the addresses and the calls around them are, ascending; a unit may name thousands."""
    used = [unit.nodes.call_file] if unit.nodes is not None else []
    if unit.lines is not None and len(unit.lines.address):
        used.append(unit.lines.file[np.maximum(_line_rows(unit.lines, unit.addresses), 0)])
    numbers = distinct(np.concatenate(used)) if used else np.zeros(0, np.int32)
    return [number for number in numbers.tolist() if 0 <= number < len(unit.file_names)]


def _line_rows(lines: LineTable, addresses: UInt64Column) -> Int64Column:
    """The row that holds for each address, -1 before the first one."""
    return np.searchsorted(lines.address, addresses, side="right") - 1


def _places(unit: UnitAnswers, files: Int32Column) -> tuple[Int32Column, Int32Column, Int32Column]:
    """(file, line, column) of the unit's addresses."""
    count = len(unit.addresses)
    if unit.lines is None or not len(unit.lines.address):
        return np.full(count, NO_FILE, np.int32), np.zeros(count, np.int32), np.zeros(count, np.int32)
    lines = unit.lines
    row = _line_rows(lines, unit.addresses)
    file = np.where(row >= 0, lines.file[row], np.int32(NO_FILE))
    is_known = file != NO_FILE
    zero = np.int32(0)
    return files[file], np.where(is_known, lines.line[row], zero), np.where(is_known, lines.column[row], zero)


def _shifted(intervals: Intervals, first: int) -> Intervals:
    return Intervals(intervals.start, _moved(intervals.owner, first))


def _concatenated(parts: Sequence[Table]) -> Table:
    kind = type(parts[0])
    return kind(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(kind)))


def _taken(table: Table, rows: npt.NDArray[Any]) -> Table:
    kind = type(table)
    return kind(*(getattr(table, field.name)[rows] for field in fields(kind)))


def _merged_intervals(parts: Sequence[Intervals]) -> Intervals:
    """Where one part's code ends at the start of another's, the end comes first and the binary search takes the start."""
    start = np.concatenate([part.start for part in parts])
    owner = np.concatenate([part.owner for part in parts])
    order = np.lexsort([owner != NOBODY, start])
    return Intervals(start[order], owner[order])


def text_sequences(found: LineSequences | None, low: int, high: int) -> BoolColumn:
    """Which sequences begin in ``low`` <= address < ``high``, the bounds of the executable segments, and were not discarded."""
    address: UInt64Column = found.address if found is not None else np.zeros(0, np.uint64)
    inside: BoolColumn = (address > 0) & (address >= low) & (address < high)
    return inside
