"""Functions with code and the calls inlined into them: one walk over the DIEs of a unit.

DIEs are only skipped, at a fraction of a microsecond each, except those of functions and inlined calls that have code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column
from symbolize.dwarf.abbreviations import Abbreviation
from symbolize.dwarf.attributes import Row
from symbolize.dwarf.constants import DW_AT_abstract_origin, DW_AT_high_pc, DW_AT_low_pc, DW_AT_ranges, DW_TAG_subprogram
from symbolize.dwarf.intervals import Intervals, paint
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.ranges import RangeReader, high_address
from symbolize.dwarf.sections import in_text
from symbolize.dwarf.unit_reader import OpenUnit
from symbolize.dwarf.unit_root import UnitRoot

NO_NODE = -1
NO_NUMBER = 0
LARGEST_NUMBER = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class InlineTree:
    """Nodes of one unit: functions (``parent`` -1) and inlined calls (``parent``: the node they are inlined into, a smaller
    number).  Equal length columns:

    ``die``: offset in .debug_info of the DIE that names the function.  ``call_file`` (number of the unit's line program),
    ``call_line``, ``call_column``: the place of the call, which belongs to the parent's function; 0 = unknown.
    ``scopes``: the innermost node of every address.
    """

    parent: Int32Column
    die: Int64Column
    call_file: Int32Column
    call_line: Int32Column
    call_column: Int32Column
    scopes: Intervals


class _Nodes:
    """Columns of an inline tree while the walk fills them."""

    def __init__(self, root: UnitRoot) -> None:
        self.root = root
        self.ranges = RangeReader(root)
        self.parent: list[int] = []
        self.die: list[int] = []
        self.call: list[tuple[int, int, int]] = []
        self.low: list[int] = []
        self.high: list[int] = []
        self.owner: list[int] = []

    def add(self, abbreviation: Abbreviation, row: Row, die: int, parent: int) -> int:
        """Number of the new node, or ``parent`` when this is no node: an inlined call outside of any code."""
        is_function = abbreviation.tag == DW_TAG_subprogram
        if not is_function and parent == NO_NODE:
            return NO_NODE
        low, high, ranges, origin, call_file, call_line, call_column = row
        node = len(self.parent)
        forms = abbreviation.shape.forms
        if ranges is not None:
            for start, end in self.ranges.read(forms[DW_AT_ranges], ranges):
                self._cover(start, end, node)
        elif low is not None and high is not None:
            start = self.root.address(forms[DW_AT_low_pc], low)
            self._cover(start, high_address(start, forms[DW_AT_high_pc], high, self.root), node)
        if not is_function and origin is not None:
            die = self.root.reference(forms[DW_AT_abstract_origin], origin)
        self.parent.append(NO_NODE if is_function else parent)
        self.die.append(die)
        self.call.append((_number(call_file), _number(call_line), _number(call_column)))
        return node

    def _cover(self, low: int, high: int, node: int) -> None:
        self.low.append(low)
        self.high.append(high)
        self.owner.append(node)


def _number(value: int | None) -> int:
    return value if value is not None and 0 <= value <= LARGEST_NUMBER else NO_NUMBER


def read_inline_tree(unit: OpenUnit) -> InlineTree:
    """The tree of one unit.  Raises one of MALFORMED when the unit is damaged."""
    root = unit.root
    nodes = _Nodes(root)
    _walk(nodes, root, unit.data, unit.abbreviations)
    low, high = np.array(nodes.low, np.uint64), np.array(nodes.high, np.uint64)
    owner = np.array(nodes.owner, np.int32)
    inside = in_text(root.sections, low, high)
    call = np.array(nodes.call, np.int32).reshape(-1, 3)
    return InlineTree(
        parent=np.array(nodes.parent, np.int32),
        die=np.array(nodes.die, np.int64),
        call_file=call[:, 0],
        call_line=call[:, 1],
        call_column=call[:, 2],
        scopes=paint(low[inside], high[inside], owner[inside]),
    )


def _walk(nodes: _Nodes, root: UnitRoot, data: bytes, abbreviations: dict[int, Abbreviation]) -> None:
    """Visits every DIE whose children or own attributes may matter.  ``enclosing`` holds the node around each open level."""
    plain = {
        code: entry.shape.fixed_size
        for code, entry in abbreviations.items()
        if not entry.has_children and not entry.is_scope and entry.shape.fixed_size >= 0
    }
    unit_offset = root.header.offset
    position, end = root.header.first_die - unit_offset, len(data)
    enclosing: list[int] = []
    node = NO_NODE
    while position < end:
        die = position
        code = data[position]
        position += 1
        if code >= 0x80:
            code, position = read_unsigned(data, die)
        if code in plain:
            position += plain[code]
            continue
        if code == 0:
            if not enclosing:
                return
            node = enclosing.pop()
            continue
        entry = abbreviations[code]
        shape = entry.shape
        if entry.is_scope:
            row, position = shape.read_scope(data, position)
            found = nodes.add(entry, row, unit_offset + die, node)
        else:
            position = shape.skip(data, position)
            # The body of a function without code of its own is not code of the function around it.
            found = NO_NODE if entry.tag == DW_TAG_subprogram else node
            if entry.can_jump:
                target = _sibling(data, position, shape.sibling_from_end)
                if position <= target <= end:
                    position = target
                    continue
        if entry.has_children:
            enclosing.append(node)
            node = found


def _sibling(data: bytes, position: int, from_end: int) -> int:
    start = position - from_end
    return int.from_bytes(data[start : start + 4], "little")
