"""The naming rule for DIEs: linkage name, else the name qualified through the DIE's parents, else the bare name.

Source: DWARF 5, sections 3.3.8.1 (abstract origins), 2.13 (specifications).
"""

from __future__ import annotations

from profiler.model.function import NameSource
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.constants import (
    FLAT_LANGUAGES,
    DW_AT_abstract_origin,
    DW_AT_artificial,
    DW_AT_decl_file,
    DW_AT_linkage_name,
    DW_AT_MIPS_linkage_name,
    DW_AT_name,
    DW_AT_specification,
    DW_FORM_strp,
    DW_TAG_class_type,
    DW_TAG_enumeration_type,
    DW_TAG_module,
    DW_TAG_namespace,
    DW_TAG_structure_type,
    DW_TAG_subprogram,
    DW_TAG_union_type,
)
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.unit_outline import sibling
from symbolize.dwarf.unit_reader import OpenUnit, UnitReader
from symbolize.dwarf.unit_root import MALFORMED

# References from one DIE to the next that a name may take; more are a loop.
LONGEST_REFERENCE_CHAIN = 16
ANONYMOUS_NAMESPACE = "(anonymous namespace)"
ANONYMOUS_TYPE = "{unnamed}"
# Names that are looked up one by one in a unit, before all of its scopes are noted.
WALKS_BEFORE_ALL = 16
LINE_TABLES_ONLY_OPTION = " -g1"
NAMED_SCOPES = frozenset(
    {
        DW_TAG_namespace,
        DW_TAG_module,
        DW_TAG_class_type,
        DW_TAG_structure_type,
        DW_TAG_union_type,
        DW_TAG_enumeration_type,
        DW_TAG_subprogram,
    }
)


@dataclass(frozen=True, slots=True)
class DieName:
    """``name``: qualified as far as known.  ``linkage_name`` "" when there is none.  ``source``: LINKAGE_NAME, QUALIFIED,
    PARTIAL, or UNRESOLVED with an empty name."""

    name: str
    linkage_name: str
    source: NameSource


NAMELESS = DieName("", "", NameSource.UNRESOLVED)


class FunctionNames:
    """Names of DIEs anywhere in .debug_info; with LTO an inlined function is described in another unit than its caller."""

    def __init__(self, reader: UnitReader) -> None:
        self._reader = reader
        self._names: dict[int, DieName] = {}
        self._texts: dict[int, str] = {}
        self._parents: dict[int, dict[int, int]] = {}
        self._walks: dict[int, int] = {}

    def name(self, die: int) -> DieName:
        """Name of the function at offset ``die`` of .debug_info; NAMELESS when it has none or cannot be read."""
        found = self._names.get(die)
        if found is None:
            try:
                found = self._read_name(die)
            except MALFORMED:
                found = NAMELESS
            self._names[die] = found
        return found

    def _read_name(self, die: int) -> DieName:
        bare = ""
        is_declared = is_artificial = False
        for _ in range(LONGEST_REFERENCE_CHAIN):
            row = self._reader.row_of(die)
            unit = self._reader.open(row)
            entry, position = unit.entry(die - unit.root.header.offset)
            found = entry.shape.read_name(unit.data, position)
            linkage_name, old_linkage_name, name, origin, specification = found
            forms = entry.shape.forms
            if not bare and DW_AT_name in forms:
                bare = self._text(unit, forms[DW_AT_name], name)
            mangled = self._text(unit, forms[DW_AT_linkage_name], linkage_name) if DW_AT_linkage_name in forms else ""
            if not mangled and DW_AT_MIPS_linkage_name in forms:
                mangled = self._text(unit, forms[DW_AT_MIPS_linkage_name], old_linkage_name)
            if mangled:
                return DieName(bare or mangled, mangled, NameSource.LINKAGE_NAME)
            is_declared = is_declared or DW_AT_decl_file in forms
            is_artificial = is_artificial or DW_AT_artificial in forms
            if DW_AT_abstract_origin in forms:
                die = unit.root.reference(forms[DW_AT_abstract_origin], origin)
            elif DW_AT_specification in forms:
                die = unit.root.reference(forms[DW_AT_specification], specification)
            else:
                break
        if not bare:
            return NAMELESS
        if unit.root.language in FLAT_LANGUAGES:
            return DieName(bare, "", NameSource.QUALIFIED)
        # Line tables only: no declaration, or the compiler says so.
        if not is_artificial and (not is_declared or LINE_TABLES_ONLY_OPTION in unit.root.producer):
            return DieName(bare, "", NameSource.PARTIAL)
        return DieName("::".join([*self._scope_names(row, unit, die), bare]), "", NameSource.QUALIFIED)

    def _text(self, unit: OpenUnit, form: int, value: int) -> str:
        """A string attribute.  Units of one file share most texts of its .debug_str."""
        if form != DW_FORM_strp or unit.root.sections is not self._reader.sections:
            return unit.root.string(form, value, unit.data).decode("utf-8", "replace")
        found = self._texts.get(value)
        if found is None:
            found = self._texts[value] = unit.root.string(form, value, unit.data).decode("utf-8", "replace")
        return found

    def _scope_names(self, row: int, unit: OpenUnit, die: int) -> list[str]:
        """Names of the namespaces, types and functions around a DIE, outermost first."""
        names: list[str] = []
        for position in self._scopes(row, unit, die - unit.root.header.offset):
            entry, _ = unit.entry(position)
            if entry.tag in NAMED_SCOPES:
                name = self._scope_name(unit.root.header.offset + position)
                names.append(name or (ANONYMOUS_NAMESPACE if entry.tag == DW_TAG_namespace else ANONYMOUS_TYPE))
        return names

    def _scopes(self, row: int, unit: OpenUnit, target: int) -> list[int]:
        """Positions of the DIEs around the one at ``target``, outermost first.

        Most units are asked for few such names, where their compiler wrote DW_AT_sibling a walk that looks for one DIE reads
        next to nothing; after some of them all are noted.
        """
        self._walks[row] = self._walks.get(row, 0) + 1
        if row not in self._parents and self._walks[row] <= WALKS_BEFORE_ALL:
            return _find_scopes(unit, target)
        if row not in self._parents:
            self._parents[row] = _find_parents(unit)
        parents = self._parents[row]
        scopes: list[int] = []
        position = parents.get(target, 0)
        while position in parents:
            scopes.append(position)
            position = parents[position]
        return scopes[::-1]

    def _scope_name(self, die: int) -> str:
        """Bare name of a namespace, type or function, through the DIEs that it refers to; "" = none."""
        for _ in range(LONGEST_REFERENCE_CHAIN):
            unit = self._reader.open(self._reader.row_of(die))
            entry, behind_code = unit.entry(die - unit.root.header.offset)
            forms = entry.shape.forms
            _, _, name, origin, specification = entry.shape.read_name(unit.data, behind_code)
            if DW_AT_name in forms:
                return self._text(unit, forms[DW_AT_name], name)
            attribute, value = (DW_AT_abstract_origin, origin) if origin else (DW_AT_specification, specification)
            if not value:
                return ""
            die = unit.root.reference(forms[attribute], value)
        return ""


def _find_scopes(unit: OpenUnit, target: int) -> list[int]:
    """Positions of the DIEs around the one at ``target``, outermost first, empty when there is none there.  What DW_AT_sibling
    tells to lie before the target is passed over."""
    data = unit.data
    position = unit.root.header.first_die - unit.root.header.offset
    around: list[int] = []
    while position < target:
        die = position
        code, position = read_unsigned(data, position)
        if code == 0:
            if not around:
                break
            around.pop()
            continue
        entry = unit.abbreviations[code]
        position = entry.shape.skip(data, position)
        if not entry.has_children:
            continue
        if entry.shape.sibling_from_end:
            behind = sibling(data, position, entry.shape.sibling_from_end)
            if position <= behind <= target:
                position = behind
                continue
        around.append(die)
    return around if position == target else []


def _find_parents(unit: OpenUnit) -> dict[int, int]:
    """{position of a DIE: position of the DIE around it} of the scopes and of all DIEs with children, by a walk over the
    whole unit.  The root DIE's parent is 0, which is no DIE."""
    data = unit.data
    parents: dict[int, int] = {}
    position, end = unit.root.header.first_die - unit.root.header.offset, len(data)
    around: list[int] = []
    parent = 0
    while position < end:
        die = position
        code, position = read_unsigned(data, position)
        if code == 0:
            if not around:
                break
            parent = around.pop()
            continue
        entry = unit.abbreviations[code]
        position = entry.shape.skip(data, position)
        if entry.has_children or entry.tag in NAMED_SCOPES:
            parents[die] = parent
        if entry.has_children:
            around.append(parent)
            parent = die
    return parents
