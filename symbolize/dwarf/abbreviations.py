"""Abbreviations (DWARF 5, section 7.5.3): how the attributes of a DIE are laid out, prepared for skipping them fast.

Compilers repeat the same attribute lists in the tables of all units, so everything derived from a list is made once per
distinct list and shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from symbolize.dwarf.attributes import AttributeSpec, RowReader, row_reader, skipper
from symbolize.dwarf.constants import (
    FIXED_FORM_SIZES,
    DW_AT_abstract_origin,
    DW_AT_call_column,
    DW_AT_call_file,
    DW_AT_call_line,
    DW_AT_high_pc,
    DW_AT_linkage_name,
    DW_AT_low_pc,
    DW_AT_MIPS_linkage_name,
    DW_AT_name,
    DW_AT_ranges,
    DW_AT_sibling,
    DW_AT_specification,
    DW_FORM_implicit_const,
    DW_FORM_ref4,
    DW_TAG_array_type,
    DW_TAG_call_site,
    DW_TAG_class_type,
    DW_TAG_enumeration_type,
    DW_TAG_GNU_call_site,
    DW_TAG_inlined_subroutine,
    DW_TAG_structure_type,
    DW_TAG_subprogram,
    DW_TAG_subroutine_type,
    DW_TAG_union_type,
)
from symbolize.dwarf.leb128 import read_signed, read_unsigned

# DIEs whose children hold no code of their own in the output of compilers that write DW_AT_sibling.
CODELESS_TAGS = frozenset(
    {
        DW_TAG_array_type,
        DW_TAG_call_site,
        DW_TAG_class_type,
        DW_TAG_enumeration_type,
        DW_TAG_GNU_call_site,
        DW_TAG_structure_type,
        DW_TAG_subroutine_type,
        DW_TAG_union_type,
    }
)
# What the inline tree needs of a function or an inlined call, and what a name is made of.
SCOPE_ATTRIBUTES = (
    DW_AT_low_pc,
    DW_AT_high_pc,
    DW_AT_ranges,
    DW_AT_abstract_origin,
    DW_AT_call_file,
    DW_AT_call_line,
    DW_AT_call_column,
)
NAME_ATTRIBUTES = (
    DW_AT_linkage_name,
    DW_AT_MIPS_linkage_name,
    DW_AT_name,
    DW_AT_abstract_origin,
    DW_AT_specification,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """One attribute list.  ``fixed_size``: bytes of all attributes, -1 when it varies; ``skip(data, position)`` gives the
    position behind them.  ``sibling_from_end``: bytes from a DW_FORM_ref4 DW_AT_sibling to the end, 0 = no such.
    ``forms``: {attribute: form}.  ``read_scope``, ``read_name``: values of SCOPE_ATTRIBUTES, NAME_ATTRIBUTES."""

    specs: tuple[AttributeSpec, ...]
    fixed_size: int
    skip: Callable[[bytes, int], int]
    sibling_from_end: int
    has_code: bool
    forms: dict[int, int]
    read_scope: RowReader
    read_name: RowReader


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """``is_scope``: a function or inlined call with code.  ``can_jump``: its children may be passed over by DW_AT_sibling."""

    tag: int
    has_children: bool
    is_scope: bool
    can_jump: bool
    shape: Shape


class AbbreviationReader:
    """Reads tables of .debug_abbrev on demand and keeps them."""

    def __init__(self, section: bytes) -> None:
        self._section = section
        self._tables: dict[int, dict[int, Abbreviation]] = {}
        self._shapes: dict[bytes, Shape] = {}

    def table(self, offset: int) -> dict[int, Abbreviation]:
        """All abbreviations of the table at ``offset`` by code.  IndexError or ValueError when it is damaged."""
        known = self._tables.get(offset)
        if known is not None:
            return known
        entries: dict[int, Abbreviation] = {}
        position = offset
        while True:
            code, entry, position = self._entry(position)
            if entry is None:
                break
            entries.setdefault(code, entry)
        self._tables[offset] = entries
        return entries

    def entry(self, offset: int, code: int) -> Abbreviation:
        """One abbreviation without reading the rest of the table; KeyError when the table does not have it."""
        known = self._tables.get(offset)
        if known is not None:
            return known[code]
        position = offset
        while True:
            found, entry, position = self._entry(position)
            if entry is None:
                raise KeyError(code)
            if found == code:
                return entry

    def _entry(self, position: int) -> tuple[int, Abbreviation | None, int]:
        section = self._section
        code, position = read_unsigned(section, position)
        if code == 0:
            return 0, None, position
        tag, position = read_unsigned(section, position)
        has_children = section[position] == 1
        position += 1
        end = _list_end(section, position)
        encoded = section[position:end]
        shape = self._shapes.get(encoded)
        if shape is None:
            shape = self._shapes[encoded] = _make_shape(encoded)
        is_function = tag in (DW_TAG_subprogram, DW_TAG_inlined_subroutine)
        is_scope = is_function and shape.has_code
        can_jump = has_children and shape.sibling_from_end > 0 and (tag in CODELESS_TAGS or (is_function and not is_scope))
        return code, Abbreviation(tag, has_children, is_scope, can_jump, shape), end


def _list_end(section: bytes, position: int) -> int:
    """Position behind the terminating pair of zeros."""
    end = section.find(b"\0\0", position)
    if end < 0:
        raise IndexError("abbreviation without end")
    if section.find(DW_FORM_implicit_const, position, end + 1) < 0:
        return end + 2
    # A constant may itself be zero bytes: read the list properly.
    return _parse_list(section, position)[1]


def _parse_list(data: bytes, position: int) -> tuple[tuple[AttributeSpec, ...], int]:
    specs: list[AttributeSpec] = []
    while True:
        attribute, position = read_unsigned(data, position)
        form, position = read_unsigned(data, position)
        constant = 0
        if form == DW_FORM_implicit_const:
            constant, position = read_signed(data, position)
        if attribute == 0 and form == 0:
            return tuple(specs), position
        specs.append(AttributeSpec(attribute, form, constant))


def _make_shape(encoded: bytes) -> Shape:
    specs, _ = _parse_list(encoded, 0)
    fixed_size, skip = skipper(specs)
    attributes = {spec.attribute for spec in specs}
    return Shape(
        specs=specs,
        fixed_size=fixed_size,
        skip=skip,
        sibling_from_end=_sibling_from_end(specs),
        has_code=DW_AT_ranges in attributes or {DW_AT_low_pc, DW_AT_high_pc} <= attributes,
        forms={spec.attribute: spec.form for spec in specs},
        read_scope=row_reader(specs, SCOPE_ATTRIBUTES),
        read_name=row_reader(specs, NAME_ATTRIBUTES),
    )


def _sibling_from_end(specs: tuple[AttributeSpec, ...]) -> int:
    distance = 0
    for spec in reversed(specs):
        size = FIXED_FORM_SIZES.get(spec.form)
        if size is None:
            return 0
        distance += size
        if spec.attribute == DW_AT_sibling:
            return distance if spec.form == DW_FORM_ref4 else 0
    return 0
