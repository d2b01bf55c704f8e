"""Functions with code and the calls inlined into them: one walk over the DIEs of a unit.

DIEs are only skipped, at a fraction of a microsecond each, except those of functions and inlined calls that have code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column
from symbolize.dwarf.abbreviations import SCOPE_ATTRIBUTES, Abbreviation
from symbolize.dwarf.attributes import Row
from symbolize.dwarf.constants import (
    INDEXED_ADDRESS_FORMS,
    UNIT_REFERENCE_FORMS,
    DW_AT_abstract_origin,
    DW_AT_high_pc,
    DW_AT_low_pc,
    DW_AT_ranges,
    DW_FORM_addr,
    DW_FORM_ref_addr,
    DW_TAG_subprogram,
)
from symbolize.dwarf.intervals import Intervals, paint
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.ranges import Range, RangeReader
from symbolize.dwarf.sections import in_text
from symbolize.dwarf.unit_reader import OpenUnit
from symbolize.dwarf.unit_root import UnitRoot

NO_NODE = -1
NO_DIE = -1
LARGEST_NUMBER = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class InlineTree:
    """Nodes of one unit: functions (``parent`` -1) and inlined calls (``parent``: the node they are inlined into, a smaller
    number).  Equal length columns:

    ``die``: offset in .debug_info of the DIE that names the function, -1 = none.  ``call_file`` (number of the unit's line
    program), ``call_line``, ``call_column``: the place of the call, which belongs to the parent's function; 0 = unknown.
    ``scopes``: the innermost node of every address.
    """

    parent: Int32Column
    die: Int64Column
    call_file: Int32Column
    call_line: Int32Column
    call_column: Int32Column
    scopes: Intervals


@dataclass(frozen=True, slots=True)
class _Found:
    """What the walk collects, one element per node: ``rows`` of SCOPE_ATTRIBUTES (0 = absent), ``dies`` (positions in the
    unit), ``parents``, and ``entry``, the row in ``entries`` of the DIE's abbreviation."""

    rows: list[Row]
    dies: list[int]
    parents: list[int]
    entry: list[int]
    entries: list[Abbreviation]


def read_inline_tree(unit: OpenUnit) -> InlineTree:
    """The tree of one unit.  Raises one of MALFORMED when the unit is damaged."""
    found = _Found([], [], [], [], [entry for entry in unit.abbreviations.values() if entry.is_scope])
    _walk(found, unit)
    rows = np.array(found.rows, np.uint64).reshape(-1, len(SCOPE_ATTRIBUTES))
    entry = np.array(found.entry, np.int64)
    low, high, owner = _covered(unit.root, found.entries, rows, entry)
    inside = in_text(unit.root.sections, low, high)
    call = np.where(rows[:, 4:] <= LARGEST_NUMBER, rows[:, 4:], 0).astype(np.int32)
    return InlineTree(
        parent=np.array(found.parents, np.int32),
        die=_naming_dies(unit.root, found, rows[:, 3], entry),
        call_file=call[:, 0],
        call_line=call[:, 1],
        call_column=call[:, 2],
        scopes=paint(low[inside], high[inside], owner[inside]),
    )


def _walk(found: _Found, unit: OpenUnit) -> None:
    """Visits every DIE whose children or own attributes may matter.  ``around`` holds the node around each open level."""
    data, abbreviations = unit.data, unit.abbreviations
    plain = {
        code: entry.shape.fixed_size
        for code, entry in abbreviations.items()
        if not entry.has_children and not entry.is_scope and entry.shape.fixed_size >= 0
    }
    entry_rows = {code: row for row, code in enumerate(code for code, entry in abbreviations.items() if entry.is_scope)}
    position, end = unit.root.header.first_die - unit.root.header.offset, len(data)
    around: list[int] = []
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
            if not around:
                return
            node = around.pop()
            continue
        entry = abbreviations[code]
        inner = node
        if code in entry_rows:
            row, position = entry.shape.scope_reader(data, position)
            is_function = entry.tag == DW_TAG_subprogram
            if is_function or node != NO_NODE:
                inner = len(found.dies)
                found.rows.append(row)
                found.dies.append(die)
                found.parents.append(NO_NODE if is_function else node)
                found.entry.append(entry_rows[code])
        else:
            position = entry.shape.skip(data, position)
            if entry.tag == DW_TAG_subprogram:
                inner = NO_NODE  # what is inside has no code: not that of the function around
            if entry.can_jump:
                target = _sibling(data, position, entry.shape.sibling_from_end)
                if position <= target <= end:
                    position = target
                    continue
        if entry.has_children:
            around.append(node)
            node = inner


def _sibling(data: bytes, position: int, from_end: int) -> int:
    start = position - from_end
    return int.from_bytes(data[start : start + 4], "little")


def _covered(
    root: UnitRoot, entries: list[Abbreviation], rows: np.ndarray[tuple[int, int], np.dtype[np.uint64]], entry: Int64Column
) -> tuple[UInt64Column, UInt64Column, Int32Column]:
    """(low, high, node) of all address ranges of all nodes, by node."""
    has_list = np.array([DW_AT_ranges in each.shape.forms for each in entries], np.bool_)[entry]
    listed = np.flatnonzero(has_list)
    forms = [each.shape.forms.get(DW_AT_ranges, 0) for each in entries]
    pairs: list[Range] = []
    counts: list[int] = []
    reader = RangeReader(root)
    for value, row in zip(rows[listed, 2].tolist(), entry[listed].tolist(), strict=True):
        ranges = reader.read(forms[row], value)
        counts.append(len(ranges))
        pairs += ranges
    table = np.array(pairs, np.uint64).reshape(-1, 2)
    spans = np.flatnonzero(~has_list)
    low, high = _spans(root, entries, rows[spans], entry[spans])
    owner = np.concatenate([spans, np.repeat(listed, counts)])
    order = np.argsort(owner, kind="stable")
    return (
        np.concatenate([low, table[:, 0]])[order],
        np.concatenate([high, table[:, 1]])[order],
        owner[order].astype(np.int32),
    )


def _spans(
    root: UnitRoot, entries: list[Abbreviation], rows: np.ndarray[tuple[int, int], np.dtype[np.uint64]], entry: Int64Column
) -> tuple[UInt64Column, UInt64Column]:
    """DW_AT_low_pc and DW_AT_high_pc as addresses; a high_pc that is no address by its form is a length."""
    low_forms = [each.shape.forms.get(DW_AT_low_pc, 0) for each in entries]
    high_forms = [each.shape.forms.get(DW_AT_high_pc, 0) for each in entries]
    low, high = rows[:, 0], rows[:, 1]
    for column, forms in ((low, low_forms), (high, high_forms)):
        indexed = np.array([form in INDEXED_ADDRESS_FORMS for form in forms], np.bool_)[entry]
        if np.any(indexed):
            column[indexed] = root.address_table()[column[indexed].astype(np.int64)]
    is_address = [form == DW_FORM_addr or form in INDEXED_ADDRESS_FORMS for form in high_forms]
    return low, np.where(np.array(is_address, np.bool_)[entry], high, low + high)


def _naming_dies(root: UnitRoot, found: _Found, origin: UInt64Column, entry: Int64Column) -> Int64Column:
    """A function is named by its own DIE, an inlined call by its abstract origin, unless that is in another file."""
    unit_offset = root.header.offset
    forms = [each.shape.forms.get(DW_AT_abstract_origin, 0) for each in found.entries]
    in_unit = np.array([form in UNIT_REFERENCE_FORMS for form in forms], np.bool_)[entry]
    in_file = in_unit | np.array([form == DW_FORM_ref_addr for form in forms], np.bool_)[entry]
    is_function = np.array(
        [each.tag == DW_TAG_subprogram or form == 0 for each, form in zip(found.entries, forms, strict=True)]
    )
    target = np.where(in_unit, origin + np.uint64(unit_offset), origin)
    target = np.where(in_file & (target < len(root.sections.info)), target, np.uint64(0)).astype(np.int64)
    own = np.array(found.dies, np.int64) + unit_offset
    named = np.where(is_function.astype(np.bool_)[entry], own, np.where(target > 0, target, NO_DIE))
    return named.astype(np.int64)
