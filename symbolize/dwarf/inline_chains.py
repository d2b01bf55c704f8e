"""Which calls were inlined at some addresses of a function."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from symbolize.dwarf.abbreviations import Abbreviation
from symbolize.dwarf.attributes import Row
from symbolize.dwarf.constants import DW_AT_abstract_origin, DW_TAG_inlined_subroutine, DW_TAG_subprogram
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.ranges import RangeReader, scope_ranges
from symbolize.dwarf.unit_outline import sibling
from symbolize.dwarf.unit_reader import OpenUnit

NO_NODE = -1
NO_DIE = -1
NO_NUMBER = 0
LARGEST_NUMBER = 0x7FFFFFFF


class InlineChains:
    """Nodes of one unit for the addresses asked so far: functions, and calls inlined into them.  Equal length lists:

    ``parent``: the node that a call was inlined into, a smaller number; -1 = a function.  ``die``: offset in .debug_info of the
    DIE that names the function, -1 = none.  ``call``: (file number of the unit's line program, line, column) of the call, which
    is a place in the parent's function; 0 = unknown.  ``node_of``: the innermost node of each address.
    """

    def __init__(self, unit: OpenUnit) -> None:
        self.parent: list[int] = []
        self.die: list[int] = []
        self.call: list[tuple[int, int, int]] = []
        self.node_of: dict[int, int] = {}
        self._unit = unit
        self._ranges = RangeReader(unit.root)

    def add_function(self, die: int, addresses: Sequence[int]) -> None:
        """Looks into the function at offset ``die`` of .debug_info, which covers ``addresses`` (ascending).

        Only calls that cover one of them are entered; other bodies are stepped over where the compiler wrote DW_AT_sibling.
        Functions inside the function, methods of its local classes, are not part of it.  Raises one of MALFORMED.
        """
        unit = self._unit
        data, abbreviations, end = unit.data, unit.abbreviations, len(unit.data)
        entry, position = unit.entry(die - unit.root.header.offset)
        position = entry.shape.skip(data, position)
        node = self._add_node(die, NO_NODE, (NO_NUMBER, NO_NUMBER, NO_NUMBER), addresses)
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
            inner, inner_hits = node, hits
            if hits and entry.is_scope and entry.tag == DW_TAG_inlined_subroutine:
                row, position = entry.shape.scope_reader(data, position)
                inner_hits = self._covered(entry, row, hits)
                if inner_hits:
                    inner = self._add_call(entry, row, start, node, inner_hits)
            else:
                position = entry.shape.skip(data, position)
                if entry.tag == DW_TAG_subprogram:
                    inner_hits = ()
            if entry.has_children:
                if entry.can_jump and not (inner_hits and entry.is_block):
                    target = sibling(data, position, entry.shape.sibling_from_end)
                    if position <= target <= end:
                        position = target
                        continue
                around.append((node, hits))
                node, hits = inner, inner_hits

    def _covered(self, entry: Abbreviation, row: Row, addresses: Sequence[int]) -> Sequence[int]:
        """Those of ``addresses`` that the DIE covers; both ascending."""
        found: list[int] = []
        first, last = addresses[0], addresses[-1]
        for low, high in scope_ranges(self._unit.root, self._ranges, entry.shape.forms, row):
            if low <= last and first < high:
                found += addresses[bisect_left(addresses, low) : bisect_left(addresses, high)]
        return found if len(found) < 2 else sorted(set(found))

    def _add_call(self, entry: Abbreviation, row: Row, start: int, parent: int, addresses: Sequence[int]) -> int:
        root = self._unit.root
        _, _, _, origin, file, line, column = row
        die = root.header.offset + start
        if DW_AT_abstract_origin in entry.shape.forms:
            try:
                die = root.reference(entry.shape.forms[DW_AT_abstract_origin], origin)
            except ValueError:
                die = NO_DIE
        return self._add_node(die, parent, (_number(file), _number(line), _number(column)), addresses)

    def _add_node(self, die: int, parent: int, call: tuple[int, int, int], addresses: Sequence[int]) -> int:
        node = len(self.parent)
        self.parent.append(parent)
        self.die.append(die)
        self.call.append(call)
        for address in addresses:
            self.node_of[address] = node
        return node


def _number(value: int) -> int:
    return value if 0 <= value <= LARGEST_NUMBER else NO_NUMBER
