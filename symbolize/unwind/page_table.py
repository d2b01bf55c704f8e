"""Rule row numbers by (DSO, file offset), for batches: a directory of pages per DSO and pages made only where code was hit.

One number per code byte answers a look-up with two reads; the directory keeps a 200 MB DSO from costing four times its size.
"""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt64Column, distinct
from profiler.model.quick_dataclass import dataclass
from symbolize.unwind.rule_rows import NO_RULES, NOT_COMPILED

PAGE_BITS = 9
PAGE_BYTES = 1 << PAGE_BITS
_FIRST_PAGES = 8192  # zero pages cost no memory until they are written to
_EMPTY_PAGE, _OUTSIDE_PAGE = 0, 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pages:
    """Pages of one DSO.  ``number``: counted from the first page of its code, ascending.  ``rows``: one per byte of them."""

    number: Int64Column
    rows: Int32Column


class PageTable:
    """Grows with ``add_dso`` and ``fill``.  Page 0 is "not compiled" everywhere, page 1 "no rules" everywhere."""

    def __init__(self) -> None:
        self._pages: Int32Column = np.zeros(_FIRST_PAGES * PAGE_BYTES, np.int32)
        self._pages[PAGE_BYTES : 2 * PAGE_BYTES] = NO_RULES
        self._page_count = 2
        # Entry 0 of the directory serves every address outside all DSOs.
        self._directory: Int32Column = np.full(1, _OUTSIDE_PAGE, np.int32)
        self._directory_start: Int64Column = np.zeros(1, np.int64)
        self._first_page: UInt64Column = np.zeros(1, np.uint64)
        self._directory_pages: UInt64Column = np.zeros(1, np.uint64)
        self._is_known: BoolColumn = np.ones(1, np.bool_)
        self._known_below = 0  # every DSO row below is known

    def unknown_dsos(self, dso: Int32Column) -> list[int]:
        """DSO rows of ``dso`` (-1 allowed) that were not added yet, ascending."""
        highest = int(dso.max(initial=-1))
        if highest < self._known_below:
            return []
        if highest + 2 > len(self._is_known):
            self._grow_dsos(highest + 2)
        unknown = ~self._is_known[dso + 1]
        return [int(row) for row in distinct(dso[unknown])]

    def add_dso(self, dso: int, first_offset: int, end_offset: int) -> None:
        """Cover file offsets ``first_offset`` .. ``end_offset`` of a DSO; an empty range gives "no rules" everywhere."""
        first_page = first_offset >> PAGE_BITS
        pages = max(0, ((end_offset + PAGE_BYTES - 1) >> PAGE_BITS) - first_page)
        self._is_known[dso + 1] = True
        unknown = np.flatnonzero(~self._is_known)
        self._known_below = int(unknown[0]) - 1 if len(unknown) else len(self._is_known) - 1
        self._first_page[dso + 1] = first_page
        self._directory_pages[dso + 1] = pages
        self._directory_start[dso + 1] = len(self._directory)
        self._directory = np.concatenate([self._directory, np.full(pages, _EMPTY_PAGE, np.int32)])

    def rows(self, dso: Int32Column, offset: UInt64Column) -> Int32Column:
        """The rule row at each file offset; ``NOT_COMPILED`` where ``fill`` has not been yet.  Every DSO must be known."""
        known = dso + np.int32(1)
        page = (offset >> np.uint64(PAGE_BITS)) - self._first_page[known]
        inside = page < self._directory_pages[known]
        entry = (self._directory_start[known] + page.view(np.int64)) * inside
        place = self._directory[entry].astype(np.int64) << PAGE_BITS
        place |= (offset & np.uint64(PAGE_BYTES - 1)).view(np.int64)
        found: Int32Column = self._pages[place]
        return found

    def fill(self, dso: int, first_offset: int, rows: Int32Column) -> None:
        """Store the rows of consecutive bytes from ``first_offset`` on; bytes outside the DSO's range are left out."""
        low_limit = int(self._first_page[dso + 1]) << PAGE_BITS
        high_limit = low_limit + (int(self._directory_pages[dso + 1]) << PAGE_BITS)
        position = max(first_offset, low_limit)
        end = min(first_offset + len(rows), high_limit)
        while position < end:
            stop = min(end, ((position >> PAGE_BITS) + 1) << PAGE_BITS)
            place = (self._page_for(dso, position) << PAGE_BITS) + (position & (PAGE_BYTES - 1))
            self._pages[place : place + stop - position] = rows[position - first_offset : stop - first_offset]
            position = stop

    def _page_for(self, dso: int, offset: int) -> int:
        entry = int(self._directory_start[dso + 1]) + (offset >> PAGE_BITS) - int(self._first_page[dso + 1])
        page = int(self._directory[entry])
        if page == _EMPTY_PAGE:
            page = self._directory[entry] = self._new_pages(1)
        return int(page)

    def _new_pages(self, count: int) -> int:
        """The first of so many pages, none of which is in use."""
        first = self._page_count
        self._page_count += count
        if self._page_count * PAGE_BYTES > len(self._pages):
            grown = np.zeros(max(2 * len(self._pages), self._page_count * PAGE_BYTES), np.int32)
            grown[: first * PAGE_BYTES] = self._pages[: first * PAGE_BYTES]
            self._pages = grown
        return first

    def pages(self, dso: int) -> Pages:
        """What was filled of a DSO."""
        directory = self._directory_of(dso)
        number = np.flatnonzero(directory != _EMPTY_PAGE)
        return Pages(number, self._pages.reshape(-1, PAGE_BYTES)[directory[number]].reshape(-1))

    def restore(self, dso: int, pages: Pages) -> None:
        """Put back what ``pages`` gave; rows filled since then stay, and pages behind the DSO's end are left out."""
        directory = self._directory_of(dso)
        number = pages.number[: np.searchsorted(pages.number, len(directory))]
        new = number[directory[number] == _EMPTY_PAGE]
        first = self._new_pages(len(new))
        directory[new] = np.arange(first, first + len(new))
        table, place = self._pages.reshape(-1, PAGE_BYTES), directory[number]
        rows = pages.rows.reshape(-1, PAGE_BYTES)[: len(number)]
        table[place] = np.where(rows == NOT_COMPILED, table[place], rows)

    def places(self, dso: int, offset: UInt64Column) -> tuple[Int64Column, Int64Column]:
        """(number of the DSO's page that holds each file offset, as ``pages`` counts them; byte in the page)."""
        place = offset.view(np.int64)
        return (place >> PAGE_BITS) - int(self._first_page[dso + 1]), place & (PAGE_BYTES - 1)

    def _directory_of(self, dso: int) -> Int32Column:
        """The DSO's part of the directory, as a view."""
        start = int(self._directory_start[dso + 1])
        return self._directory[start : start + int(self._directory_pages[dso + 1])]

    def _grow_dsos(self, count: int) -> None:
        added = max(count, 2 * len(self._is_known)) - len(self._is_known)
        self._is_known = np.concatenate([self._is_known, np.zeros(added, np.bool_)])
        self._directory_start = np.concatenate([self._directory_start, np.zeros(added, np.int64)])
        self._first_page = np.concatenate([self._first_page, np.zeros(added, np.uint64)])
        self._directory_pages = np.concatenate([self._directory_pages, np.zeros(added, np.uint64)])
