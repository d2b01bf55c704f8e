"""What the compilation units of a binary say of themselves: who produced them and how much they describe.

Only the first DIE of a unit and its abbreviations are read (DWARF 2 to 5, section 7.5), so a unit costs microseconds whatever
its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from profiler.errors import FormatError
from symbolize.elf.dwarf_encoding import sleb128, uleb128
from symbolize.elf.image import ElfImage

_UNIT_LIMIT = 400

_DESCRIBING_TAGS = frozenset({0x05, 0x24, 0x39})  # formal_parameter, base_type, namespace
_DW_AT_COMP_DIR, _DW_AT_PRODUCER, _DW_AT_NAME = 0x1B, 0x25, 0x03
_DW_FORM_IMPLICIT_CONST = 0x21
_DW_UT_TYPE_KINDS = (2, 6)

# Forms of a fixed size; addresses and offsets as in a 32-bit DWARF unit of a 64-bit machine.
_FIXED_FORMS = {0x01: 8, 0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x0E: 4, 0x10: 4, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8} | {
    0x17: 4,
    0x19: 0,
    0x1C: 4,
    0x1D: 4,
    0x1E: 16,
    0x1F: 4,
    0x20: 8,
    0x21: 0,
    0x24: 8,
    0x25: 1,
    0x26: 2,
    0x27: 3,
    0x28: 4,
    0x29: 1,
    0x2A: 2,
    0x2B: 3,
    0x2C: 4,
    0x1F20: 4,
    0x1F21: 4,
}
_LEB_FORMS = frozenset({0x0F, 0x0D, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02})
_BLOCK_FORMS = {0x0A: 1, 0x03: 2, 0x04: 4}
_DW_FORM_STRING, _DW_FORM_STRP, _DW_FORM_LINE_STRP = 0x08, 0x0E, 0x1F
_STRX_FORMS = {0x1A: 0, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4}
_UNINTERPRETED_BLOCKS = frozenset({0x09, 0x18})  # block, exprloc


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """``is_full``: the unit describes types, parameters or namespaces; False for line tables only (``-g1`` of C compilers,
    ``line-tables-only`` of rustc)."""

    name: str
    directory: str
    producer: str
    is_full: bool


@dataclass(frozen=True, slots=True)
class _Sections:
    info: memoryview
    abbreviations: memoryview
    strings: memoryview
    line_strings: memoryview
    string_offsets: memoryview


_Abbreviation = tuple[int, tuple[tuple[int, int], ...]]  # tag, (attribute, form)


def unit_facts(image: ElfImage) -> Iterator[UnitFacts]:
    """Facts of the first compilation units of ``.debug_info``, at most 400, in file order; units that cannot be read are
    passed over."""
    try:
        contents = [
            image.section_bytes(name) or memoryview(b"")
            for name in (".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_str_offsets")
        ]
    except FormatError:
        return
    sections = _Sections(*contents)
    position = 0
    for _ in range(_UNIT_LIMIT):
        if position + 12 > len(sections.info):
            return
        length = int.from_bytes(sections.info[position : position + 4], "little")
        end = position + 4 + length
        if length >= 0xFFFFFFF0 or end > len(sections.info):
            return  # 64-bit DWARF does not occur in practice; damage ends the list
        try:
            facts = _unit(sections, position)
        except (IndexError, ValueError):
            facts = None
        if facts is not None:
            yield facts
        position = end


def _unit(sections: _Sections, position: int) -> UnitFacts | None:
    info = sections.info
    version = int.from_bytes(info[position + 4 : position + 6], "little")
    if version >= 5:
        kind = info[position + 6]
        if kind in _DW_UT_TYPE_KINDS:
            return None
        table = int.from_bytes(info[position + 8 : position + 12], "little")
        position += 20 if kind in (4, 5) else 12  # skeleton and split units carry an identifier
    else:
        table = int.from_bytes(info[position + 6 : position + 10], "little")
        position += 11
    abbreviations = _abbreviations(sections.abbreviations, table)
    code, position = uleb128(info, position)
    _, attributes = abbreviations.get(code, (0, ()))
    texts = _texts(sections, position, attributes)
    return UnitFacts(
        name=texts.get(_DW_AT_NAME, ""),
        directory=texts.get(_DW_AT_COMP_DIR, ""),
        producer=texts.get(_DW_AT_PRODUCER, ""),
        is_full=any(tag in _DESCRIBING_TAGS for tag, _ in abbreviations.values()),
    )


def _abbreviations(data: memoryview, position: int) -> dict[int, _Abbreviation]:
    """Abbreviation table at ``position``, by code.  Raises ``ValueError`` where codes repeat, ``IndexError`` at the end."""
    table: dict[int, _Abbreviation] = {}
    while True:
        code, position = uleb128(data, position)
        if code == 0:
            return table
        if code in table:
            raise ValueError("abbreviation codes repeat")
        tag, position = uleb128(data, position)
        position += 1  # has children
        attributes: list[tuple[int, int]] = []
        while True:
            attribute, position = uleb128(data, position)
            form, position = uleb128(data, position)
            if form == _DW_FORM_IMPLICIT_CONST:
                _, position = sleb128(data, position)
            if attribute == 0 and form == 0:
                break
            attributes.append((attribute, form))
        table[code] = (tag, tuple(attributes))


def _texts(sections: _Sections, position: int, attributes: tuple[tuple[int, int], ...]) -> dict[int, str]:
    """The attributes of one DIE that are strings."""
    info = sections.info
    texts: dict[int, str] = {}
    for attribute, form in attributes:
        if form == _DW_FORM_STRING:
            text, position = _string(info, position)
            texts[attribute] = text
            continue
        end = _form_end(info, position, form)
        if form in (_DW_FORM_STRP, _DW_FORM_LINE_STRP):
            table = sections.strings if form == _DW_FORM_STRP else sections.line_strings
            texts[attribute], _ = _string(table, int.from_bytes(info[position:end], "little"))
        elif form in _STRX_FORMS:
            index = uleb128(info, position)[0] if form == 0x1A else int.from_bytes(info[position:end], "little")
            at = 8 + 4 * index  # the table of the first unit: right for one unit, and only wrong names otherwise
            offset = int.from_bytes(sections.string_offsets[at : at + 4], "little")
            texts[attribute], _ = _string(sections.strings, offset)
        position = end
    return texts


def _form_end(info: memoryview, position: int, form: int) -> int:
    if form in _FIXED_FORMS:
        return position + _FIXED_FORMS[form]
    if form in _LEB_FORMS:
        return uleb128(info, position)[1]
    if form in _BLOCK_FORMS:
        width = _BLOCK_FORMS[form]
        return position + width + int.from_bytes(info[position : position + width], "little")
    if form in _UNINTERPRETED_BLOCKS:
        size, position = uleb128(info, position)
        return position + size
    raise ValueError(f"form {form:#x}")


def _string(data: memoryview, position: int) -> tuple[str, int]:
    """(zero-terminated string, position behind it)."""
    end = position
    while end < len(data) and data[end]:
        end += 1
    return bytes(data[position:end]).decode("utf-8", "backslashreplace"), end + 1
