"""Code of one DSO at which stacks end because nothing calls it: by name, by what starts it, or by the ELF entry point."""

from __future__ import annotations

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import BoolColumn, Int64Column, UInt64Column, is_among
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.image import ElfImage
from symbolize.elf.layout import SHT_DYNSYM, SHT_SYMTAB
from symbolize.elf.symbol_records import string_at, symbol_records
from symbolize.unwind.dso_rules import DsoRules
from symbolize.unwind.name_beginnings import LONGEST, rows_beginning
from symbolize.unwind.thread_roots import thread_root_functions

# Functions that nothing calls, and the two of glibc from which the program's and a thread's first function are called: the
# last of a chain of frame pointers, since glibc keeps none.
THREAD_ENTRY_FUNCTIONS = frozenset(
    {
        "_start",
        "_dl_start_user",
        "_dl_start",
        "clone",
        "__clone",
        "__clone3",
        "clone3",
        "__clone_internal",
        "start_thread",
        "__libc_start_call_main",
        "__libc_start_main",
        "__libc_start_main_impl",
    }
)
_BEGINNINGS = sorted({f"{name}\0".encode()[:LONGEST] for name in THREAD_ENTRY_FUNCTIONS})
# The dynamic loader's entry code is assembler without call frame information, 70 bytes in glibc 2.36.
_ENTRY_CODE_BYTES = 256
_SHN_UNDEF = 0
_LAST_ADDRESS = np.uint64(2**64 - 1)


class ThreadEntries:
    """The entries of ``image``, whose rules are ``rules``; what has to be read of the image is read when first needed."""

    def __init__(self, image: ElfImage, rules: DsoRules) -> None:
        self._image = image
        self._rules = rules
        self._roots: Int64Column | None = None
        self._named: _NamedEntries | None = None

    def contain(self, lookup_offset: UInt64Column, has_rules: BoolColumn) -> BoolColumn:
        """Does each place lie in an entry.  ``has_rules``: the place has call frame information."""
        link = self._image.link_addresses(lookup_offset)
        result = np.zeros(len(link), np.bool_)
        result[has_rules] = self._in_roots(link[has_rules])
        result[~has_rules] = self._in_entry_code(link[~has_rules])
        # Names last: the symbol tables of programs are large.
        result[~result] = self._is_named(link[~result])
        return result

    def _in_roots(self, link: UInt64Column) -> BoolColumn:
        if not len(link):
            return np.zeros(0, np.bool_)
        if self._roots is None:
            self._roots = thread_root_functions(self._image, self._rules.all_function_starts)
        if not len(self._roots):
            return np.zeros(len(link), np.bool_)
        result = np.zeros(len(link), np.bool_)
        near = np.flatnonzero(self._rules.may_lie_in(link.view(np.int64), self._roots))
        result[near] = is_among(self._rules.function_starts(link[near].view(np.int64)), self._roots)
        return result

    def _in_entry_code(self, link: UInt64Column) -> BoolColumn:
        entry = self._image.entry_address
        is_near = link - np.uint64(entry) < np.uint64(_ENTRY_CODE_BYTES)
        if is_near.any() and self._rules.function_starts(np.array([entry], np.uint64).view(np.int64))[0] >= 0:
            return np.zeros(len(link), np.bool_)
        return is_near

    def _is_named(self, link: UInt64Column) -> BoolColumn:
        """The table of all symbols is large: it is asked only for what may lie in a symbol with one of these names."""
        result = np.zeros(len(link), np.bool_)
        if not len(link):
            return result
        if self._named is None:
            self._named = _named_entries(self._image)
        candidates = np.flatnonzero(self._named.may_contain(link))
        if not len(candidates):
            return result
        try:
            symbols = self._image.symbol_table()
        except FormatError:
            return result
        rows, inverse = np.unique(symbols.lookup(link[candidates]), return_inverse=True)
        named = np.array([row >= 0 and symbols.name(row) in THREAD_ENTRY_FUNCTIONS for row in rows.tolist()], np.bool_)
        result[candidates] = named[inverse]
        return result


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _NamedEntries:
    """Link addresses (``start``, ``end``) of the symbols with names of entries, of one without a size all that follows.
    ``are_all``: False where more such symbols may be hidden in compressed debug information."""

    start: UInt64Column
    end: UInt64Column
    are_all: bool

    def may_contain(self, link: UInt64Column) -> BoolColumn:
        if not self.are_all:
            return np.ones(len(link), np.bool_)
        result = np.zeros(len(link), np.bool_)
        for start, end in zip(self.start, self.end, strict=True):
            result |= (link >= start) & (link < end)
        return result


def _named_entries(image: ElfImage) -> _NamedEntries:
    """Nearly every library has no such symbol, and then needs no table of its symbols."""
    is_any = False
    starts, ends = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
    for section in image.section_table:
        if section.type in (SHT_SYMTAB, SHT_DYNSYM):
            try:
                records, strings = symbol_records(image, section)
            except FormatError:
                continue
            candidates = rows_beginning(records, strings, _BEGINNINGS).tolist()
            names = {row: string_at(strings, int(records["st_name"][row])) for row in candidates}
            named = records[[row for row, name in names.items() if name in THREAD_ENTRY_FUNCTIONS]]
            is_any |= bool(len(named))
            named = named[named["st_shndx"] != _SHN_UNDEF]
            start, size = named["st_value"].astype(np.uint64), named["st_size"].astype(np.uint64)
            starts.append(start)
            ends.append(np.where(size == 0, _LAST_ADDRESS, start + np.minimum(size, ~start)))
    are_all = not is_any or ".gnu_debugdata" not in image.sections
    return _NamedEntries(np.concatenate(starts), np.concatenate(ends), are_all)
