"""The source map of a DSO: what its debug information says about addresses, as plain columns.

It grows with what is asked (``source_map_growth``): first the outlines of the units that are hit (where their functions and
line sequences are), then the answers for the addresses themselves.  It is searched for many addresses at once, and is what
the cache keeps: outlines make new addresses cheap, answers make known ones nearly free.
"""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.intervals import Intervals
from symbolize.dwarf.strings import StringPool, make_pool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionTable:
    """Functions with code of all outlined units.  ``die``: offset in .debug_info.  ``unit``: row of the unit."""

    die: Int64Column
    unit: Int32Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SequenceTable:
    """Line sequences of all outlined units by ``address`` of their first row, ascending.  ``unit``: row of the unit.
    ``begin``, ``end``: positions in its line program."""

    address: UInt64Column
    unit: Int32Column
    begin: Int64Column
    end: Int64Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AnswerTable:
    """Answers for link addresses, ascending by ``address``.  ``node``: the innermost node, -1 = no function.  ``file``: row of
    the strings, -1 = unknown.  ``line``, ``column``: 0 = unknown."""

    address: UInt64Column
    node: Int32Column
    file: Int32Column
    line: Int32Column
    column: Int32Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NodeTable:
    """Functions and inlined calls of the answers.  ``parent``: a smaller row, -1 = a function.  ``name``: row of the name
    table, -1 = nameless.  ``call_file``: row of the strings, -1 = unknown; ``call_line``, ``call_column``: 0 = unknown."""

    parent: Int32Column
    name: Int32Column
    call_file: Int32Column
    call_line: Int32Column
    call_column: Int32Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NameTable:
    """``name``, ``linkage_name``: rows of the strings (-1 = none); ``source``: ``NameSource``."""

    name: Int32Column
    linkage_name: Int32Column
    source: UInt8Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SourceMap:
    """``units``: which unit covers an address; ``is_outlined[unit]``; ``covered``: which function of ``functions`` covers an
    address.  ``left_out``: units that are damaged or of an unsupported kind; ``skeletons``: outlined units whose functions are
    described in another file (.dwo)."""

    units: Intervals
    is_outlined: BoolColumn
    covered: Intervals
    functions: FunctionTable
    sequences: SequenceTable
    answers: AnswerTable
    nodes: NodeTable
    names: NameTable
    strings: StringPool
    left_out: int
    skeletons: int

    def answer_rows(self, addresses: UInt64Column) -> Int64Column:
        """Row of the answer for each address, -1 = not asked yet, or in no unit."""
        known = self.answers.address
        if not len(known):
            return np.full(len(addresses), -1, np.int64)
        row = np.minimum(np.searchsorted(known, addresses), len(known) - 1)
        rows: Int64Column = np.where(known[row] == addresses, row, -1)
        return rows

    def unanswered(self, addresses: UInt64Column) -> UInt64Column:
        """The addresses that are in a unit and have no answer yet, each once, ascending."""
        return distinct(addresses[(self.answer_rows(addresses) < 0) & (self.units.lookup(addresses) >= 0)])

    def units_to_outline(self, addresses: UInt64Column) -> list[int]:
        """Rows of the units that cover ``addresses`` and are not outlined yet, ascending."""
        hit = distinct(self.units.lookup(addresses))
        hit = hit[hit >= 0]
        rows: list[int] = hit[~self.is_outlined[hit]].tolist()
        return rows


def empty_source_map(units: Intervals, unit_count: int, left_out: int) -> SourceMap:
    """Nothing decoded yet."""
    i32, i64, u64 = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.uint64)
    return SourceMap(
        units=units,
        is_outlined=np.zeros(unit_count, np.bool_),
        covered=Intervals(u64, i32),
        functions=FunctionTable(i64, i32),
        sequences=SequenceTable(u64, i32, i64, i64),
        answers=AnswerTable(u64, i32, i32, i32, i32),
        nodes=NodeTable(i32, i32, i32, i32, i32),
        names=NameTable(i32, i32, np.zeros(0, np.uint8)),
        strings=make_pool([]),
        left_out=left_out,
        skeletons=0,
    )
