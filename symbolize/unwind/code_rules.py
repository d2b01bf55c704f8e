"""Unwinding rules of all code that a recording touches: by (DSO, file offset), compiled when first asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from profiler.errors import FormatError
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt64Column, distinct
from symbolize.elf.image import ElfImage
from symbolize.elf.symbol_table import SymbolTable
from symbolize.unwind.dso_rules import DsoRules
from symbolize.unwind.page_table import PageTable
from symbolize.unwind.rule_rows import ENDS_THREAD, HAS_NO_RULES, NO_RULES, NOT_COMPILED, RuleColumns, RuleRow, RuleRows

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
# The dynamic loader's entry code is assembler without call frame information, 70 bytes in glibc 2.36.
_ENTRY_CODE_BYTES = 256
_FUNCTION_ALIGNMENT = 16
_LIBC_START = "__libc_start_main"
_SYSCALL = b"\x0f\x05"


class CodeRules:
    """``images``: the ELF image of a DSO row, called once per row, ``None`` when there is none."""

    def __init__(self, images: Callable[[int], ElfImage | None]) -> None:
        self._image_of = images
        self._images: dict[int, ElfImage | None] = {}
        self._symbols: dict[int, SymbolTable | None] = {}
        self._rules: dict[int, DsoRules] = {}
        self._libc_starts: dict[int, int] = {}
        self._rows = RuleRows()
        self._pages = PageTable()

    def columns(self) -> RuleColumns:
        return self._rows.columns()

    def row(self, number: int) -> RuleRow:
        return self._rows.row(number)

    def rows(self, dso: Int32Column, lookup_offset: UInt64Column) -> Int32Column:
        """The rule row in force at each look-up offset, ``NO_RULES`` where there is none (``dso`` -1 included)."""
        for unknown in self._pages.unknown_dsos(dso):
            self._add_dso(unknown)
        rows = self._pages.rows(dso, lookup_offset)
        missing = rows == NOT_COMPILED
        if missing.any():
            self._compile(dso[missing], lookup_offset[missing].astype(np.int64))
            rows = self._pages.rows(dso, lookup_offset)
        return rows

    def rows_at_exact_address(self, dso: Int32Column, offset: UInt64Column) -> Int32Column:
        """As ``rows``, for frames that are not callers: a thread that is in a system call stands behind its ``syscall``
        instruction, which may be the last one that rules cover (that of the signal trampoline is)."""
        rows = self.rows(dso, offset)
        without = np.flatnonzero((rows == NO_RULES) & (dso >= 0))
        if len(without):
            without = without[self._follows_system_call(dso[without], offset[without])]
            rows[without] = self.rows(dso[without], offset[without] - np.uint64(1))
        return rows

    def _follows_system_call(self, dso: Int32Column, offset: UInt64Column) -> BoolColumn:
        result = np.zeros(len(dso), np.bool_)
        for at, (row, end) in enumerate(zip(dso.tolist(), offset.tolist(), strict=True)):
            image = self._image(row)
            result[at] = image is not None and end >= 2 and bytes(image.data[end - 2 : end]) == _SYSCALL
        return result

    def uses_frame_pointer(self, dso: Int32Column, lookup_offset: UInt64Column) -> BoolColumn:
        """Is the CFA there computed from RBP; False where there is no rule."""
        rows = self.rows_at_exact_address(dso, lookup_offset)
        result: BoolColumn = self.columns().uses_frame_pointer[rows]
        return result

    def is_thread_entry(self, dso: Int32Column, lookup_offset: UInt64Column) -> BoolColumn:
        """Does nothing call the code there: return address undefined by CFI, a function known as a thread's entry, or the
        image's entry code without CFI."""
        rows = self.rows(dso, lookup_offset)
        result: BoolColumn = (self.columns().flags[rows] & (ENDS_THREAD | HAS_NO_RULES)) == ENDS_THREAD
        undecided = np.flatnonzero(~result & (dso >= 0))
        for row in distinct(dso[undecided]).tolist():
            selected = undecided[dso[undecided] == row]
            result[selected] = self._is_entry_function(row, lookup_offset[selected], rows[selected] == NO_RULES)
        return result

    def _is_entry_function(self, dso: int, lookup_offset: UInt64Column, has_no_rules: BoolColumn) -> BoolColumn:
        image = self._image(dso)
        if image is None:
            return np.zeros(len(lookup_offset), np.bool_)
        link = image.link_addresses(lookup_offset)
        result = np.zeros(len(link), np.bool_)
        if has_no_rules.any() and self._entry_has_no_rules(dso, image):
            result |= has_no_rules & (link - np.uint64(image.entry_address) < np.uint64(_ENTRY_CODE_BYTES))
        symbols = self._symbol_table(dso, image)
        if symbols is not None:
            result |= self._calls_main(dso, image, link)
            found = symbols.lookup(link)
            rows, inverse = np.unique(found, return_inverse=True)
            named = np.array([row >= 0 and symbols.name(row) in THREAD_ENTRY_FUNCTIONS for row in rows.tolist()], np.bool_)
            result |= named[inverse]
        return result

    def _calls_main(self, dso: int, image: ElfImage, link: UInt64Column) -> BoolColumn:
        """``__libc_start_call_main`` of a stripped glibc: the local function just before the exported one that calls it."""
        start = self._libc_start(dso, image)
        if start < 0 or dso not in self._rules:
            return np.zeros(len(link), np.bool_)
        ends = self._rules[dso].function_ends(link.view(np.int64))
        result: BoolColumn = (ends >= 0) & (
            (ends + _FUNCTION_ALIGNMENT - 1) // _FUNCTION_ALIGNMENT == start // _FUNCTION_ALIGNMENT
        )
        return result

    def _libc_start(self, dso: int, image: ElfImage) -> int:
        """Link address of glibc's ``__libc_start_main``, -1 in other images."""
        if dso not in self._libc_starts:
            symbols = self._symbol_table(dso, image)
            is_libc = image.name.rsplit("/", 1)[-1].startswith(("libc.so", "libc-"))
            row = symbols.row_named(_LIBC_START) if symbols is not None and is_libc else -1
            self._libc_starts[dso] = symbols.start(row) if symbols is not None and row >= 0 else -1
        return self._libc_starts[dso]

    def _entry_has_no_rules(self, dso: int, image: ElfImage) -> bool:
        entry = image.file_offsets(np.array([image.entry_address], np.uint64))
        return bool(self.rows(np.array([dso], np.int32), entry)[0] == NO_RULES)

    def _symbol_table(self, dso: int, image: ElfImage) -> SymbolTable | None:
        if dso not in self._symbols:
            try:
                self._symbols[dso] = image.symbol_table()
            except FormatError:
                self._symbols[dso] = None
        return self._symbols[dso]

    def _image(self, dso: int) -> ElfImage | None:
        if dso not in self._images:
            self._images[dso] = self._image_of(dso)
        return self._images[dso]

    def _add_dso(self, dso: int) -> None:
        image = self._image(dso)
        if image is None:
            self._pages.add_dso(dso, 0, 0)
            return
        self._rules[dso] = DsoRules(image, self._rows)
        self._pages.add_dso(dso, *self._rules[dso].code_range())

    def _compile(self, dso: Int32Column, lookup_offset: Int64Column) -> None:
        for row in distinct(dso).tolist():
            for first_offset, numbers in self._rules[row].compile(distinct(lookup_offset[dso == row])):
                self._pages.fill(row, first_offset, numbers)
