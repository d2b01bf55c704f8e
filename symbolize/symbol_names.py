"""What the symbol tables of a DSO say about some addresses, kept so that the tables need not be parsed again.

A table is parsed as a whole, which takes longer than all the look-ups of most profiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column, distinct
from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.strings import StringPool, make_pool
from symbolize.elf.image import ElfImage
from symbolize.elf.layout import SHT_DYNSYM, SHT_SYMTAB
from symbolize.elf.symbol_table import SymbolTable

NO_NAME = -1
_SYMBOL_SECTIONS = (SHT_SYMTAB, SHT_DYNSYM)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SymbolNames:
    """``address``: link addresses that were asked for, ascending, each once.  ``name``: row of ``strings``, -1 = no symbol
    covers the address.  ``origin``: which tables were asked (``tables_origin``)."""

    address: UInt64Column
    name: Int32Column
    strings: StringPool
    origin: Int64Column

    def rows(self, addresses: UInt64Column) -> Int32Column:
        """Row of ``strings`` for each address, -1 = no symbol, or not asked."""
        if not len(self.address):
            return np.full(len(addresses), NO_NAME, np.int32)
        place = np.minimum(np.searchsorted(self.address, addresses), len(self.address) - 1)
        rows: Int32Column = np.where(self.address[place] == addresses, self.name[place], np.int32(NO_NAME))
        return rows

    def unasked(self, addresses: UInt64Column) -> UInt64Column:
        """The addresses that were not asked for, each once, ascending."""
        if not len(self.address):
            return distinct(addresses)
        place = np.minimum(np.searchsorted(self.address, addresses), len(self.address) - 1)
        return distinct(addresses[self.address[place] != addresses])


def no_symbol_names(origin: Int64Column) -> SymbolNames:
    """Nothing asked yet."""
    return SymbolNames(np.zeros(0, np.uint64), np.zeros(0, np.int32), make_pool([]), origin)


def tables_origin(images: Iterable[ElfImage]) -> Int64Column:
    """Numbers that differ when the files that share a build ID do not have the same symbols: one of them may be stripped.

    For each file its size, and where its symbol sections and their strings are.
    """
    numbers: list[int] = []
    for image in images:
        numbers.append(len(image.data))
        for section in image.section_table:
            if section.type in _SYMBOL_SECTIONS and section.link < len(image.section_table):
                strings = image.section_table[section.link]
                numbers += [section.type, section.file_offset, section.size, strings.file_offset, strings.size]
    return np.array([number & 0x7FFF_FFFF_FFFF_FFFF for number in numbers], np.int64)


def add_symbol_names(known: SymbolNames, tables: Sequence[SymbolTable], addresses: UInt64Column) -> SymbolNames:
    """``known`` with the names of ``addresses``, which it does not have yet: ascending, each once.  Tables are asked in order,
    the first that covers an address names it."""
    texts = {text: row for row, text in enumerate(known.strings.all_texts())}
    found = np.full(len(addresses), NO_NAME, np.int32)
    for table in tables:
        places = np.flatnonzero(found < 0)
        symbol = table.lookup(addresses[places])
        symbols, inverse = np.unique(symbol, return_inverse=True)
        names = [table.name(row) if row >= 0 else "" for row in symbols.tolist()]
        rows = [texts.setdefault(name, len(texts)) if name else NO_NAME for name in names]
        found[places] = np.array(rows, np.int32)[inverse]
    address, name = np.concatenate([known.address, addresses]), np.concatenate([known.name, found])
    order = np.argsort(address, kind="stable")
    return replace(known, address=address[order], name=name[order], strings=make_pool(texts))
