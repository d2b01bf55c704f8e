"""The symbols of .gnu_debugdata: an xz-compressed ELF file inside a stripped one, with the functions that .dynsym lacks
(GDB manual, "MiniDebugInfo")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.layout import SHT_NOBITS, SHT_SYMTAB, Section, SectionedFile, read_layout
from symbolize.elf.symbol_records import SymbolRecords, symbol_records

_SECTION = ".gnu_debugdata"
_LARGEST_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class _InnerFile:
    name: str
    data: memoryview
    machine: int
    section_table: tuple[Section, ...]
    sections: Mapping[str, Section] = field(default_factory=dict)


def with_mini_symbols(image: SectionedFile, records: SymbolRecords, strings: memoryview) -> tuple[SymbolRecords, memoryview]:
    """``records`` and their ``strings`` with those of .gnu_debugdata behind them.  What is damaged counts as absent."""
    section = image.sections.get(_SECTION)
    if section is None or section.type == SHT_NOBITS:
        return records, strings
    plain = _decompressed(image.data[section.file_offset : section.file_offset + section.size])
    try:
        layout = read_layout(memoryview(plain), f"{image.name}:{_SECTION}")
        inner = _InnerFile(image.name, memoryview(plain), layout.machine, layout.sections)
        table = next((each for each in layout.sections if each.type == SHT_SYMTAB), None)
        if table is None:
            return records, strings
        more, more_strings = symbol_records(inner, table)
    except FormatError:
        return records, strings
    more = more.copy()
    more["st_name"] += np.uint32(len(strings))
    return np.concatenate([records, more]), memoryview(bytes(strings) + bytes(more_strings))


def _decompressed(packed: memoryview) -> bytes:
    """Empty when it is damaged or unreasonably large."""
    import lzma

    decoder = lzma.LZMADecompressor()
    try:
        plain = decoder.decompress(packed, _LARGEST_BYTES)
    except lzma.LZMAError:
        return b""
    return plain if decoder.eof else b""
