"""Unwinding rules of all code that a recording touches: by (DSO, file offset), compiled when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt64Column, distinct
from symbolize.elf.image import ElfImage
from symbolize.unwind.dso_rules import DsoRules
from symbolize.unwind.page_table import PageTable
from symbolize.unwind.rule_rows import ENDS_THREAD, HAS_NO_RULES, NO_RULES, NOT_COMPILED, RuleColumns, RuleRow, RuleRows
from symbolize.unwind.stored_rules import KeptRules, RuleStore, StoredRules, file_layout, packed
from symbolize.unwind.thread_entries import ThreadEntries

_SYSCALL = b"\x0f\x05"


class CodeRules:
    """``images``: the ELF image of a DSO row, called once per row, ``None`` when there is none.  ``store``: keeps rules from
    one run to the next."""

    def __init__(self, images: Callable[[int], ElfImage | None], store: RuleStore | None = None) -> None:
        self._image_of = images
        self._store = store
        self._kept: dict[int, KeptRules] = {}
        self._grown: set[int] = set()
        self._images: dict[int, ElfImage | None] = {}
        self._rules: dict[int, DsoRules] = {}
        self._entries: dict[int, ThreadEntries] = {}
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
        missing = np.flatnonzero(rows == NOT_COMPILED)
        if len(missing):
            rows[missing] = self._fetched(dso[missing], lookup_offset[missing])
        return rows

    def _fetched(self, dso: Int32Column, lookup_offset: UInt64Column) -> Int32Column:
        """Rows that are not in the page table: they are kept from an earlier run, or compiled."""
        rows = np.full(len(dso), NOT_COMPILED, np.int32)
        for number in distinct(dso).tolist():
            if number in self._kept:
                chosen = np.flatnonzero(dso == number)
                rows[chosen] = self._kept[number].find(*self._pages.places(number, lookup_offset[chosen]))
        missing = np.flatnonzero(rows == NOT_COMPILED)
        if len(missing):
            self._compile(dso[missing], lookup_offset[missing].astype(np.int64))
            rows[missing] = self._pages.rows(dso[missing], lookup_offset[missing])
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
        """Does nothing call the code there: return address undefined by CFI, or one of the image's ``ThreadEntries``."""
        rows = self.rows(dso, lookup_offset)
        result: BoolColumn = (self.columns().flags[rows] & (ENDS_THREAD | HAS_NO_RULES)) == ENDS_THREAD
        undecided = np.flatnonzero(~result & (dso >= 0))
        for row in distinct(dso[undecided]).tolist():
            selected = undecided[dso[undecided] == row]
            if row in self._entries:
                result[selected] = self._entries[row].contain(lookup_offset[selected], rows[selected] != NO_RULES)
        return result

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
        self._entries[dso] = ThreadEntries(image, self._rules[dso])
        self._pages.add_dso(dso, *self._rules[dso].code_range())
        stored = self._store.load_rules(image.build_id) if self._store is not None and image.build_id else None
        if stored is not None and np.array_equal(stored.layout, file_layout(image)):
            self._kept[dso] = KeptRules(stored, self._rows)

    def keep(self) -> None:
        """Stores the rules of all DSOs of which more were compiled."""
        for dso in sorted(self._grown):
            image = self._image(dso)
            if self._store is not None and image is not None and image.build_id:
                if dso in self._kept:
                    self._pages.restore(dso, self._kept[dso].pages())
                self._store.store_rules(image.build_id, packed(image, self._pages.pages(dso), self._rows))
        self._grown.clear()

    def new_rules(self) -> dict[int, StoredRules]:
        """The rules of all DSOs of which more were compiled, except those that are kept already."""
        images = {dso: self._image(dso) for dso in sorted(self._grown)}
        return {dso: packed(image, self._pages.pages(dso), self._rows) for dso, image in images.items() if image is not None}

    def add_rules(self, rules: Mapping[int, StoredRules]) -> None:
        """Takes over what ``new_rules`` gave for the same images."""
        for dso, stored in rules.items():
            for unknown in self._pages.unknown_dsos(np.array([dso], np.int32)):
                self._add_dso(unknown)
            self._pages.restore(dso, KeptRules(stored, self._rows).pages())
            self._grown.add(dso)

    def _compile(self, dso: Int32Column, lookup_offset: Int64Column) -> None:
        for row in distinct(dso).tolist():
            for first_offset, numbers in self._rules[row].compile(distinct(lookup_offset[dso == row])):
                self._pages.fill(row, first_offset, numbers)
                if len(numbers) > 1 or numbers[0] != NO_RULES:  # a place without rules is asked for alone
                    self._grown.add(row)
