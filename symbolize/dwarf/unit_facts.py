"""What the compilation units of a binary say of themselves: who produced them and how much they describe.

Only the root DIE of a unit and its abbreviations are read, so a unit costs microseconds whatever its size.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.abbreviations import AbbreviationReader
from symbolize.dwarf.constants import DW_TAG_base_type, DW_TAG_formal_parameter, DW_TAG_namespace
from symbolize.dwarf.sections import read_sections
from symbolize.dwarf.unit_root import MALFORMED, read_root
from symbolize.dwarf.units import read_unit_headers
from symbolize.elf.image import ElfImage

_UNIT_LIMIT = 400
_TYPE_TAGS = frozenset({DW_TAG_formal_parameter, DW_TAG_base_type})
_DESCRIBING_TAGS = _TYPE_TAGS | {DW_TAG_namespace}


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """``is_full``: the unit describes types, parameters or namespaces; False for line tables only (``-g1`` of C compilers,
    ``line-tables-only`` of rustc).  Compilers split only what is full (.dwo).  ``has_types``: types or parameters, which rustc
    leaves out with ``debug = 1``.  ``is_split``: its functions are described in another file."""

    directory: str
    producer: str
    is_full: bool
    has_types: bool = False
    is_split: bool = False


def unit_facts(image: ElfImage) -> Iterator[UnitFacts]:
    """Facts of the first compilation units of ``.debug_info``, at most 400, in file order; units that cannot be read are
    passed over."""
    try:
        sections = read_sections(image)
    except FormatError:
        return
    if sections is None:
        return
    abbreviations = AbbreviationReader(sections.abbrev)
    headers, _ = read_unit_headers(sections.info)
    for header in itertools.islice(headers, _UNIT_LIMIT):
        try:
            root = read_root(sections, abbreviations, header)
            tags = {entry.tag for entry in abbreviations.for_forms(header.wide_forms).table(header.abbrev_offset).values()}
            is_full = root.is_skeleton or bool(tags & _DESCRIBING_TAGS)
            facts = UnitFacts(
                root.compilation_directory, root.producer, is_full, bool(tags & _TYPE_TAGS), is_split=root.is_skeleton
            )
        except MALFORMED:
            continue
        yield facts
