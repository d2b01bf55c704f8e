"""The functions of a unit that have code: where they are, not yet what is in them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from profiler.model.arrays import Int64Column, distinct
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.abbreviations import Abbreviation
from symbolize.dwarf.constants import DW_TAG_subprogram
from symbolize.dwarf.die_values import scope_values
from symbolize.dwarf.intervals import NOBODY, Intervals
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.ranges import Range
from symbolize.dwarf.scope_ranges import ScopeRows, innermost
from symbolize.dwarf.unit_reader import OpenUnit

NOWHERE = 1 << 60
# Compilers align functions to 16 bytes where they align them.
ALIGNMENT = 16
NO_END = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnitOutline:
    """``die``: offsets in .debug_info of the unit's functions with code.  ``covered``: owner = row of ``die``."""

    die: Int64Column
    covered: Intervals


def read_outline(unit: OpenUnit, covered: Sequence[Range]) -> UnitOutline:
    """``covered``: the address ranges of the unit, ascending.  Raises one of MALFORMED when the unit is damaged.

    Functions stand below the unit and its namespaces, where compilers that write DW_AT_sibling let us step over their bodies.
    Methods of local classes and lambdas stand inside, in the class: when the functions found do not fill the unit's ranges, the
    bodies are searched too.
    """
    outline = _read_functions(unit, _function_positions(unit, steps_over_bodies=True))
    if _fills(outline.covered, covered):
        return outline
    return _read_functions(unit, _function_positions(unit, steps_over_bodies=False))


def _fills(functions: Intervals, covered: Sequence[Range]) -> bool:
    """Whether what the functions leave of the ranges is padding: it ends at an aligned address or with its range."""
    start, end = functions.start, np.append(functions.start[1:], NO_END)
    for low, high in covered:
        first = max(int(np.searchsorted(start, low, side="right")) - 1, 0)
        last = int(np.searchsorted(start, high, side="left"))
        gaps = [(int(start[row]), int(end[row])) for row in range(first, last) if functions.owner[row] == NOBODY]
        if not len(start) or start[first] > low:
            gaps.append((low, int(start[first]) if len(start) else high))
        for gap_low, gap_high in gaps:
            gap_low, gap_high = max(gap_low, low), min(gap_high, high)
            is_padding = gap_high - gap_low < ALIGNMENT and (gap_high % ALIGNMENT == 0 or gap_high == high)
            if gap_low < gap_high and not is_padding:
                return False
    return True


def _read_functions(unit: OpenUnit, positions: list[int]) -> UnitOutline:
    read = [read_unsigned(unit.data, position) for position in positions]
    code, behind_code = np.array(read, np.int64).reshape(-1, 2).T
    codes = distinct(code)
    rows = ScopeRows(
        values=scope_values(unit, code, behind_code),
        entry=np.searchsorted(codes, code),
        entries=[unit.abbreviations[each] for each in codes.tolist()],
    )
    return UnitOutline(np.array(positions, np.int64) + unit.root.header.offset, innermost(unit.root, rows))


def _function_positions(unit: OpenUnit, steps_over_bodies: bool) -> list[int]:
    """Positions of the DIEs of functions with code, by a walk that reads nothing else."""
    data, abbreviations = unit.data, unit.abbreviations
    leaves, parents, jumps = _quick_entries(abbreviations, steps_over_bodies)
    read_offset = struct.Struct("<I").unpack_from
    found: list[int] = []
    position, end = unit.root.header.first_die - unit.root.header.offset, len(data)
    depth, function_depth = 0, NOWHERE
    while position < end:
        die = position
        code = data[position]
        position += 1
        if code >= 0x80:
            code, position = read_unsigned(data, die)
        if code in leaves:
            position += leaves[code]
        elif code in jumps and position < (target := read_offset(data, position + jumps[code])[0]) <= end:
            position = target
        elif code in parents:
            position += parents[code]
            depth += 1
        elif code == 0:
            depth -= 1
            if depth <= function_depth:
                function_depth = NOWHERE
            if depth <= 0:
                break
        else:
            entry = abbreviations[code]
            position = entry.shape.skip(data, position)
            is_function = entry.tag == DW_TAG_subprogram
            if is_function and entry.is_scope:
                found.append(die)
            may_jump = steps_over_bodies if is_function or entry.is_block else function_depth == NOWHERE or entry.is_call_site
            if may_jump and entry.can_jump:
                target = sibling(data, position, entry.shape.sibling_from_end)
                if position <= target <= end:
                    position = target
                    continue
            if is_function and entry.has_children and function_depth == NOWHERE:
                function_depth = depth
            depth += entry.has_children
    return found


Sizes = dict[int, int]


def _quick_entries(abbreviations: dict[int, Abbreviation], steps_over_bodies: bool) -> tuple[Sizes, Sizes, Sizes]:
    """What needs no closer look, by code: size of the attributes of (DIEs without children, DIEs with children to visit), and
    the place of DW_AT_sibling in the attributes of DIEs whose children never matter."""
    leaves: Sizes = {}
    parents: Sizes = {}
    jumps: Sizes = {}
    for code, entry in abbreviations.items():
        size = entry.shape.fixed_size
        is_function = entry.tag == DW_TAG_subprogram
        if size < 0 or (is_function and entry.is_scope):
            continue
        if not entry.has_children:
            leaves[code] = size
        elif entry.can_jump and (steps_over_bodies or entry.is_call_site):
            jumps[code] = size - entry.shape.sibling_from_end
        elif not is_function and not entry.can_jump:
            parents[code] = size
    return leaves, parents, jumps


def sibling(data: bytes, position: int, from_end: int) -> int:
    """DW_AT_sibling of the DIE whose attributes end at ``position``."""
    start = position - from_end
    return int.from_bytes(data[start : start + 4], "little")
