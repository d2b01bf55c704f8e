"""Abbreviations (DWARF 5, section 7.5.3): how the attributes of a DIE are laid out, prepared for skipping them fast.

Compilers repeat the same abbreviations in the tables of all units, so each distinct one is made once and shared, and so is
everything derived from its attribute list.
"""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.attributes import AttributeSpec, Row, RowReader, Skipper, row_reader, skipper, with_wide_forms
from symbolize.dwarf.constants import (
    FIXED_FORM_SIZES,
    WIDE_FORM,
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
    DW_TAG_catch_block,
    DW_TAG_class_type,
    DW_TAG_enumeration_type,
    DW_TAG_GNU_call_site,
    DW_TAG_inlined_subroutine,
    DW_TAG_lexical_block,
    DW_TAG_structure_type,
    DW_TAG_subprogram,
    DW_TAG_subroutine_type,
    DW_TAG_try_block,
    DW_TAG_union_type,
)
from symbolize.dwarf.leb128 import read_signed, read_unsigned

CALL_SITE_TAGS = frozenset({DW_TAG_call_site, DW_TAG_GNU_call_site})
BLOCK_TAGS = frozenset({DW_TAG_inlined_subroutine, DW_TAG_lexical_block, DW_TAG_try_block, DW_TAG_catch_block})
STEPPED_OVER_TAGS = frozenset(
    {
        DW_TAG_array_type,
        DW_TAG_class_type,
        DW_TAG_enumeration_type,
        DW_TAG_structure_type,
        DW_TAG_subprogram,
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


class Shape:
    """One attribute list.

    ``fixed_size``: bytes of all attributes, -1 when it varies; ``skip(data, position)`` gives the position behind them.
    ``sibling_from_end``: bytes from a DW_FORM_ref4 DW_AT_sibling to the end, 0 = no such.  ``forms``: {attribute: form}.
    ``scope_reader`` and ``read_name`` read the values of SCOPE_ATTRIBUTES and NAME_ATTRIBUTES.
    """

    __slots__ = ("_name_reader", "_scope_reader", "fixed_size", "forms", "has_code", "sibling_from_end", "skip", "specs")

    def __init__(self, specs: tuple[AttributeSpec, ...], skipper: Skipper) -> None:
        self.specs = specs
        self.fixed_size, self.skip = skipper
        self.forms = {attribute: form & ~WIDE_FORM for attribute, form, _ in specs}
        self.sibling_from_end = _sibling_from_end(specs) if DW_AT_sibling in self.forms else 0
        self.has_code = DW_AT_ranges in self.forms or (DW_AT_low_pc in self.forms and DW_AT_high_pc in self.forms)
        # Few lists are ever read, so readers are made on demand.
        self._scope_reader: RowReader | None = None
        self._name_reader: RowReader | None = None

    @property
    def scope_reader(self) -> RowReader:
        if self._scope_reader is None:
            self._scope_reader = row_reader(self.specs, SCOPE_ATTRIBUTES)
        return self._scope_reader

    def read_name(self, data: bytes, position: int) -> Row:
        if self._name_reader is None:
            self._name_reader = row_reader(self.specs, NAME_ATTRIBUTES)
        return self._name_reader(data, position)[0]


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """``is_scope``: a function or inlined call with code.  ``is_block``: a part of a function's code, which may hold inlined
    calls.  ``can_jump``: a type, call site, function or block whose children can be passed over by DW_AT_sibling.
    ``leaf_bytes``: of the attributes of a DIE without children and code, -1 when that varies or it is no such DIE."""

    tag: int
    has_children: bool
    is_scope: bool
    can_jump: bool
    is_call_site: bool
    is_block: bool
    leaf_bytes: int
    shape: Shape


class AbbreviationReader:
    """Reads tables of .debug_abbrev on demand and keeps them.

    ``wide``: the forms that take 8 bytes instead of 4 in the units that use the tables (``UnitHeader.wide_forms``).
    """

    def __init__(self, section: bytes, wide: frozenset[int] = frozenset()) -> None:
        self._section = section
        self._wide = wide
        self._others: dict[frozenset[int], AbbreviationReader] = {}
        self._tables: dict[int, dict[int, Abbreviation]] = {}
        self._abbreviations: dict[bytes, Abbreviation] = {}
        self._shapes: dict[bytes, Shape] = {}
        self._skippers: dict[tuple[int, ...], Skipper] = {}

    def for_forms(self, wide: frozenset[int]) -> AbbreviationReader:
        """The reader of the same section for other ``wide`` forms."""
        if wide == self._wide:
            return self
        if wide not in self._others:
            self._others[wide] = AbbreviationReader(self._section, wide)
        return self._others[wide]

    def table(self, offset: int) -> dict[int, Abbreviation]:
        """All abbreviations of the table at ``offset`` by code.  IndexError or ValueError when it is damaged."""
        known = self._tables.get(offset)
        if known is not None:
            return known
        section, made = self._section, self._abbreviations
        entries: dict[int, Abbreviation] = {}
        code, start, end = _next(section, offset)
        while code:
            encoded = section[start:end]
            entry = made.get(encoded)
            if entry is None:
                entry = made[encoded] = self._make(encoded)
            entries.setdefault(code, entry)
            code, start, end = _next(section, end)
        self._tables[offset] = entries
        return entries

    def entry(self, offset: int, code: int) -> Abbreviation:
        """One abbreviation without reading the rest of the table; KeyError when the table does not have it."""
        known = self._tables.get(offset)
        if known is not None:
            return known[code]
        section = self._section
        found, start, end = _next(section, offset)
        while found != code:
            if not found:
                raise KeyError(code)
            found, start, end = _next(section, end)
        return self._make(section[start:end])

    def _make(self, encoded: bytes) -> Abbreviation:
        """``encoded``: an abbreviation without its code."""
        tag, position = read_unsigned(encoded, 0)
        has_children = encoded[position] == 1
        attributes = encoded[position + 1 :]
        shape = self._shapes.get(attributes)
        if shape is None:
            shape = self._shapes[attributes] = self._make_shape(attributes)
        is_scope = tag in (DW_TAG_subprogram, DW_TAG_inlined_subroutine) and shape.has_code
        is_call_site = tag in CALL_SITE_TAGS
        is_block = tag in BLOCK_TAGS
        can_jump = has_children and shape.sibling_from_end > 0 and (is_call_site or is_block or tag in STEPPED_OVER_TAGS)
        leaf_bytes = -1 if has_children or is_scope else shape.fixed_size
        return Abbreviation(tag, has_children, is_scope, can_jump, is_call_site, is_block, leaf_bytes, shape)

    def _make_shape(self, encoded: bytes) -> Shape:
        specs, _ = _parse_list(encoded, 0)
        if self._wide:
            specs = with_wide_forms(specs, self._wide)
        forms = tuple([form for _, form, _ in specs])
        found = self._skippers.get(forms)
        if found is None:
            found = self._skippers[forms] = skipper(specs)
        return Shape(specs, found)


def _next(section: bytes, position: int) -> tuple[int, int, int]:
    """(code, position behind it, position behind the abbreviation) of the one at ``position``; code 0 ends the table."""
    code = section[position]
    start = position + 1
    if code >= 0x80:
        code, start = read_unsigned(section, position)
    if code == 0:
        return 0, start, start
    # The tag, and one byte that says whether there are children.
    attributes = start + 2 if section[start] < 0x80 else read_unsigned(section, start)[1] + 1
    return code, start, _list_end(section, attributes)


def _list_end(section: bytes, position: int) -> int:
    """Position behind the terminating pair of zeros."""
    end = section.find(b"\0\0", position)
    if end < 0:
        raise IndexError("abbreviation without end")
    if end > position and section[end - 1] == DW_FORM_implicit_const:
        # The first zero may be the constant: read the list properly.
        return _parse_list(section, position)[1]
    return end + 2


def _parse_list(data: bytes, position: int) -> tuple[tuple[AttributeSpec, ...], int]:
    specs: list[AttributeSpec] = []
    while True:
        attribute, form = data[position], data[position + 1]
        if attribute < 0x80 and form < 0x80:
            position += 2
        else:
            attribute, position = read_unsigned(data, position)
            form, position = read_unsigned(data, position)
        constant = 0
        if form == DW_FORM_implicit_const:
            constant, position = read_signed(data, position)
        if attribute == 0 and form == 0:
            return tuple(specs), position
        specs.append((attribute, form, constant))


def _sibling_from_end(specs: tuple[AttributeSpec, ...]) -> int:
    distance = 0
    for attribute, form, _ in reversed(specs):
        size = FIXED_FORM_SIZES.get(form)
        if size is None:
            return 0
        distance += size
        if attribute == DW_AT_sibling:
            return distance if form == DW_FORM_ref4 else 0
    return 0
