"""Function symbols of an ELF file, sorted for look-up by link address."""

from __future__ import annotations

import re

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column
from symbolize.elf.layout import SHT_DYNSYM, SHT_SYMTAB, SectionedFile
from symbolize.elf.mini_debug_info import with_mini_symbols
from symbolize.elf.plt import plt_symbols
from symbolize.elf.symbol_records import SYMBOL_RECORD, SymbolRecords, string_at, symbol_records

_STT_NOTYPE, _STT_FUNC, _STT_GNU_IFUNC = 0, 2, 10
_STB_LOCAL, _STB_WEAK = 0, 2
_SHN_UNDEF, _SHN_ABS, _SHN_COMMON = 0, 0xFFF1, 0xFFF2


class SymbolTable:
    """One row per distinct start address, ascending; made by ``parse_symbol_table``.

    A row covers ``st_size`` bytes; a symbol of size 0 reaches up to the next symbol or the end of its section.  Where symbols
    nest, the innermost that covers an address wins.
    """

    __slots__ = ("_end", "_name_offset", "_parent", "_start", "_strings")

    def __init__(self, start: UInt64Column, end: UInt64Column, name_offset: Int64Column, strings: memoryview) -> None:
        """``name_offset``: byte in ``strings``."""
        self._start = start
        self._end = end
        self._name_offset = name_offset
        self._strings = strings
        self._parent = _enclosing_rows(start, end)

    def __len__(self) -> int:
        return len(self._start)

    def lookup(self, link_addresses: UInt64Column) -> Int32Column:
        """The row whose symbol covers each address, -1 where none does."""
        if not len(self._start):
            return np.full(link_addresses.shape, -1, np.int32)
        row = np.searchsorted(self._start, link_addresses, side="right").astype(np.int32) - np.int32(1)
        pending = np.flatnonzero(row >= 0)
        while len(pending):
            pending = pending[link_addresses[pending] >= self._end[row[pending]]]
            row[pending] = self._parent[row[pending]]
            pending = pending[row[pending] >= 0]
        return row

    def name(self, row: int) -> str:
        """The name as it stands in the file, without a version suffix (``@GLIBC_2.34``)."""
        text = string_at(self._strings, int(self._name_offset[row]))
        head, at, tail = text.partition("@")
        return text if tail == "plt" or not head or not at else head

    def row_named(self, name: str) -> int:
        """The first row of that name, -1 when there is none; quicker than to ask for the name of every row."""
        text, wanted = bytes(self._strings), name.encode()
        places = [found.start() for found in re.finditer(re.escape(wanted), text)]
        rows = np.flatnonzero(np.isin(self._name_offset, np.array(places, np.int64))).tolist()
        return next((row for row in rows if self.name(row) == name), -1)

    def start(self, row: int) -> int:
        """The symbol's link address."""
        return int(self._start[row])

    def end(self, row: int) -> int:
        """The link address behind the symbol."""
        return int(self._end[row])


def parse_symbol_table(image: SectionedFile) -> SymbolTable:
    """The function symbols of ``image``: ``.symtab``, else ``.dynsym`` and ``.gnu_debugdata``; and ``name@plt`` for the
    stubs of its PLT sections.

    Kept are STT_FUNC, STT_GNU_IFUNC and, in executable sections only, STT_NOTYPE; left out are undefined, absolute and common
    symbols, ARM's mapping symbols (``$x``) and local labels (``.L``).  Of several symbols at one address the choice is perf's:
    sized over unsized, typed over untyped, not weak over weak, global over local, fewer leading underscores (those of a
    mangled name do not count), then the longest name, then the first by name.  Raises ``FormatError`` for a damaged table.
    """
    records, strings = _raw_symbols(image)
    chosen = _choose(records[_wanted(image, records, strings)], strings)
    start, size = chosen["st_value"].astype(np.uint64), chosen["st_size"].astype(np.uint64)
    name_offset = chosen["st_name"].astype(np.int64)
    stubs = plt_symbols(image)
    if stubs:
        extra = b"".join(name.encode("utf-8", "backslashreplace") + b"\0" for _, _, name in stubs)
        lengths = [len(name.encode("utf-8", "backslashreplace")) + 1 for _, _, name in stubs]
        offsets = len(strings) + np.concatenate([[0], np.cumsum(lengths)[:-1]])
        start = np.concatenate([start, np.array([address for address, _, _ in stubs], np.uint64)])
        size = np.concatenate([size, np.array([stub_size for _, stub_size, _ in stubs], np.uint64)])
        name_offset = np.concatenate([name_offset, offsets.astype(np.int64)])
        strings = memoryview(bytes(strings) + extra)
        start, first = np.unique(start, return_index=True)
        size, name_offset = size[first], name_offset[first]
    start, end, kept = _ranges(image, start, size)
    return SymbolTable(start, end, name_offset[kept], strings)


def _raw_symbols(image: SectionedFile) -> tuple[SymbolRecords, memoryview]:
    """Records and string table of ``.symtab``, else of ``.dynsym`` and ``.gnu_debugdata``."""
    found: tuple[SymbolRecords, memoryview] = (np.zeros(0, SYMBOL_RECORD), memoryview(b""))
    for wanted_type in (SHT_SYMTAB, SHT_DYNSYM):
        for section in image.section_table:
            if section.type == wanted_type and section.size >= SYMBOL_RECORD.itemsize:
                found = symbol_records(image, section)
                return found if wanted_type == SHT_SYMTAB else with_mini_symbols(image, *found)
    return with_mini_symbols(image, *found)


def _wanted(image: SectionedFile, records: SymbolRecords, strings: memoryview) -> BoolColumn:
    kind = records["st_info"] & 15
    section_index = records["st_shndx"]
    defined = (section_index != _SHN_UNDEF) & (section_index != _SHN_ABS) & (section_index != _SHN_COMMON)
    first, second, third = (_characters(records, strings, position) for position in range(3))
    is_label = (kind == _STT_NOTYPE) & _in_executable_section(image, records["st_value"])
    is_label &= ~((first == ord("$")) & ((third == 0) | (third == ord("."))))
    is_label &= ~((first == ord(".")) & (second == ord("L")))
    wanted: BoolColumn = defined & (first != 0) & ((kind == _STT_FUNC) | (kind == _STT_GNU_IFUNC) | is_label)
    return wanted


def _characters(records: SymbolRecords, strings: memoryview, position: int) -> UInt8Column:
    """The character at ``position`` of every name; 0 where the name lies outside the string table."""
    table = np.frombuffer(strings, np.uint8)
    at = records["st_name"].astype(np.int64) + position
    inside = at < len(table)
    result = np.zeros(len(at), np.uint8)
    result[inside] = table[at[inside]]
    return result


def _in_executable_section(image: SectionedFile, addresses: UInt64Column) -> BoolColumn:
    result = np.zeros(len(addresses), np.bool_)
    for section in image.section_table:
        if section.is_executable:
            result |= addresses - np.uint64(section.link_address) < np.uint64(section.size)
    return result


def _choose(records: SymbolRecords, strings: memoryview) -> SymbolRecords:
    """One record per address, ascending."""
    kind, binding = records["st_info"] & 15, records["st_info"] >> 4
    # The four reasons that need no name as one number, so that sorting settles most aliases; smallest is best.
    rank = (records["st_size"] == 0) * 8 + (kind == _STT_NOTYPE) * 4 + (binding == _STB_WEAK) * 2 + (binding == _STB_LOCAL)
    order = np.lexsort((rank, records["st_value"]))
    records, rank = records[order], rank[order]
    if not len(records):
        return records
    is_first = np.concatenate([[True], records["st_value"][1:] != records["st_value"][:-1]])
    starts = np.flatnonzero(is_first)
    group = np.cumsum(is_first) - 1
    is_tied = rank == rank[starts][group]
    ties = np.bincount(group[is_tied])
    chosen = starts.copy()
    for number in np.flatnonzero(ties > 1).tolist():
        first = int(starts[number])
        names = [string_at(strings, int(offset)) for offset in records["st_name"][first : first + int(ties[number])]]
        chosen[number] = first + min(range(len(names)), key=lambda at: _name_rank(names[at]))
    return records[chosen]


def _name_rank(name: str) -> tuple[int, int, str]:
    """Smallest is best."""
    underscores = 0 if name.startswith(("_Z", "_R")) else len(name) - len(name.lstrip("_"))
    return underscores, -len(name), name


def _ranges(image: SectionedFile, start: UInt64Column, size: UInt64Column) -> tuple[UInt64Column, UInt64Column, Int64Column]:
    """(start, end, rows kept) of the symbols that cover at least a byte; ``start`` ascending and distinct."""
    end = start + np.minimum(size, ~start)
    unsized = np.flatnonzero(size == 0)
    reach = np.maximum.accumulate(end) if len(end) else end
    # A label without a size inside a sized function is a place in that function, not a function.
    inner = unsized[(unsized > 0) & (reach[unsized - 1] > start[unsized])]
    next_start = np.append(start[1:], np.uint64(2**64 - 1))[unsized] if len(start) else start
    end[unsized] = np.minimum(next_start, _section_end(image, start[unsized]))
    end[inner] = start[inner]
    kept = np.flatnonzero(end > start)
    return start[kept], end[kept], kept


def _section_end(image: SectionedFile, addresses: UInt64Column) -> UInt64Column:
    result = addresses.copy()
    for section in image.section_table:
        if section.link_address:
            inside = addresses - np.uint64(section.link_address) < np.uint64(section.size)
            result[inside] = (section.link_address + section.size) % 2**64
    return result


def _enclosing_rows(start: UInt64Column, end: UInt64Column) -> Int32Column:
    """For every row the nearest earlier row that reaches beyond its start, -1 when there is none."""
    parent = np.full(len(start), -1, np.int32)
    if len(start) < 2:
        return parent
    nested = np.flatnonzero(np.maximum.accumulate(end)[:-1] > start[1:]) + 1
    for row in nested.tolist():
        candidate = row - 1
        while candidate >= 0 and end[candidate] <= start[row]:
            candidate = int(parent[candidate])
        parent[row] = candidate
    return parent
