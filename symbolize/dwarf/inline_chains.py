"""Which calls were inlined at some addresses of a function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column, distinct
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.abbreviations import SCOPE_ATTRIBUTES
from symbolize.dwarf.call_cover import CallCover
from symbolize.dwarf.constants import (
    DW_AT_abstract_origin,
    DW_AT_call_column,
    DW_AT_call_file,
    DW_AT_call_line,
    DW_TAG_inlined_subroutine,
    DW_TAG_subprogram,
)
from symbolize.dwarf.die_values import scope_values
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.unit_outline import sibling
from symbolize.dwarf.unit_reader import OpenUnit

NO_NODE = -1
NO_DIE = -1
NO_NUMBER = 0
LARGEST_NUMBER = 0x7FFFFFFF
LARGEST_OFFSET = 1 << 48
ORIGIN, CALL_FILE, CALL_LINE, CALL_COLUMN = (
    SCOPE_ATTRIBUTES.index(each) for each in (DW_AT_abstract_origin, DW_AT_call_file, DW_AT_call_line, DW_AT_call_column)
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChainNodes:
    """Functions, and calls inlined into them.  ``parent``: the node that a call was inlined into, a smaller row; -1 = a
    function.  ``die``: number of the DIE that names the function, -1 = none.  ``call_file`` (number in the unit's line
    program), ``call_line``, ``call_column``: the place of the call, in the parent's function; 0 = unknown."""

    parent: Int32Column
    die: Int64Column
    call_file: Int32Column
    call_line: Int32Column
    call_column: Int32Column


class InlineChains:
    """Nodes of one unit for the addresses asked so far.  ``node_of``: the innermost node of each address."""

    def __init__(self, unit: OpenUnit) -> None:
        self.node_of: dict[int, int] = {}
        self._unit = unit
        self._cover = CallCover(unit)
        self._parent: list[int] = []
        # Of each node: position of its DIE, abbreviation and position of the attributes.
        self._die: list[int] = []
        self._code: list[int] = []
        self._attributes: list[int] = []

    def nodes(self) -> ChainNodes:
        """Raises one of MALFORMED when a call's attributes are outside of the unit."""
        parent, code = np.array(self._parent, np.int32), np.array(self._code, np.int64)
        is_call = parent >= 0
        values = np.zeros((len(parent), len(SCOPE_ATTRIBUTES)), np.uint64)
        values[is_call] = scope_values(self._unit, code[is_call], np.array(self._attributes, np.int64)[is_call])
        die = np.array(self._die, np.int64) + self._unit.root.header.offset
        for each in distinct(code[is_call]).tolist():
            rows = np.flatnonzero((code == each) & is_call)
            die[rows] = self._origins(each, die[rows], values[rows, ORIGIN])
        file, line, column = (_known(values[:, at]) for at in (CALL_FILE, CALL_LINE, CALL_COLUMN))
        return ChainNodes(parent, die, file, line, column)

    def _origins(self, code: int, die: Int64Column, origin: UInt64Column) -> Int64Column:
        """What calls refer to, themselves where they do not; NO_DIE for references to types, and such that no file can hold."""
        forms = self._unit.abbreviations[code].shape.forms
        if DW_AT_abstract_origin not in forms:
            return die
        try:
            first = self._unit.root.reference(forms[DW_AT_abstract_origin], 0)
        except ValueError:
            return np.full(len(die), NO_DIE, np.int64)
        return np.where(origin < LARGEST_OFFSET, origin.astype(np.int64) + first, NO_DIE)

    def add_function(self, die: int, addresses: Sequence[int]) -> None:
        """Looks into the function at offset ``die`` of .debug_info, which covers ``addresses`` (ascending).

        Only calls that cover one of them are entered; other bodies are stepped over where the compiler wrote DW_AT_sibling.
        Functions inside the function, methods of its local classes, are not part of it.  Raises one of MALFORMED.
        """
        unit = self._unit
        data, abbreviations, end = unit.data, unit.abbreviations, len(unit.data)
        position = die - unit.root.header.offset
        code, attributes = read_unsigned(data, position)
        node = self._add_node(NO_NODE, position, code, attributes, addresses)
        entry = abbreviations[code]
        position = entry.shape.skip(data, attributes)
        around: list[tuple[int, Sequence[int]]] = [(NO_NODE, ())] if entry.has_children else []
        hits = addresses
        while around and position < end:
            start = position
            code = data[position]
            position += 1
            if code >= 0x80:
                code, position = read_unsigned(data, start)
            if code == 0:
                node, hits = around.pop()
                continue
            entry = abbreviations[code]
            leaf_bytes = entry.leaf_bytes
            if leaf_bytes >= 0:
                position += leaf_bytes
                continue
            inner, inner_hits = node, hits
            if hits and entry.is_scope and entry.tag == DW_TAG_inlined_subroutine:
                inner_hits = self._cover.covered(code, position, hits)
                if inner_hits:
                    inner = self._add_node(node, start, code, position, inner_hits)
            elif entry.tag == DW_TAG_subprogram:
                inner_hits = ()
            size = entry.shape.fixed_size
            position = position + size if size >= 0 else entry.shape.skip(data, position)
            if entry.has_children:
                if entry.can_jump and not (inner_hits and entry.is_block):
                    target = sibling(data, position, entry.shape.sibling_from_end)
                    if position <= target <= end:
                        position = target
                        continue
                around.append((node, hits))
                node, hits = inner, inner_hits

    def _add_node(self, parent: int, die: int, code: int, attributes: int, addresses: Sequence[int]) -> int:
        node = len(self._parent)
        self._parent.append(parent)
        self._die.append(die)
        self._code.append(code)
        self._attributes.append(attributes)
        for address in addresses:
            self.node_of[address] = node
        return node


def _known(numbers: UInt64Column) -> Int32Column:
    return np.where(numbers <= LARGEST_NUMBER, numbers, NO_NUMBER).astype(np.int32)
