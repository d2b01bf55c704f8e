"""Unwinding rules of one DSO as they are kept between runs: compiling those of a large program takes longer than unwinding.

Kept is the DSO's part of the page table, run by run.  Places without rules are not kept: a file in which more can be found may
have the same build ID.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, distinct
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.image import ElfImage
from symbolize.unwind.page_table import PAGE_BYTES, Pages
from symbolize.unwind.rule_rows import NO_RULES, NOT_COMPILED, RuleRow, RuleRows

_NOT_NUMBERED = -1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StoredRules:
    """``layout``: of the file in which the offsets hold (``file_layout``).  ``pages``: numbers of the DSO's pages, ascending.

    ``length``, ``rule``: the bytes of all these pages in runs; rule 0 = not compiled yet, i = ``rows[i - 1]``.
    """

    layout: Int64Column
    pages: Int64Column
    length: Int64Column
    rule: Int32Column
    rows: tuple[RuleRow, ...]

    def is_consistent(self) -> bool:
        """Whether every number stays inside its table."""
        return (
            len(self.length) == len(self.rule)
            and bool(np.all(self.length > 0) and np.all(self.rule >= 0) and np.all(self.rule <= len(self.rows)))
            and bool(np.all(self.length <= len(self.pages) * PAGE_BYTES))
            and int(self.length.sum()) == len(self.pages) * PAGE_BYTES
            and bool(np.all(self.pages[:1] >= 0) and np.all(self.pages[1:] > self.pages[:-1]))
        )


class RuleStore(Protocol):
    """Keeps rules by build ID; never raises for what cannot be read or written."""

    def load_rules(self, build_id: bytes) -> StoredRules | None:
        """What was stored, consistent; ``None`` when there is nothing that can be trusted."""

    def store_rules(self, build_id: bytes, rules: StoredRules) -> bool:
        """Whether the rules are stored now."""


def file_layout(image: ElfImage) -> Int64Column:
    """What the meaning of file offsets depends on: a file may be stripped and rearranged under one build ID."""
    numbers = [
        number
        for segment in image.load_segments
        for number in (segment.file_offset, segment.link_address, segment.file_size, int(segment.is_executable))
    ]
    return np.array(numbers, np.uint64).view(np.int64)


def packed(image: ElfImage, pages: Pages, rows: RuleRows) -> StoredRules:
    """The pages of a DSO for storing."""
    numbers = np.where(pages.rows == NO_RULES, NOT_COMPILED, pages.rows)
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    value = numbers[first]
    used = distinct(value[value != NOT_COMPILED])
    return StoredRules(
        layout=file_layout(image),
        pages=pages.number,
        length=np.diff(first, append=len(numbers)).astype(np.int64),
        rule=np.where(value == NOT_COMPILED, 0, np.searchsorted(used, value) + 1).astype(np.int32),
        rows=tuple(rows.row(number) for number in used.tolist()),
    )


class KeptRules:
    """Look-up in ``stored``, with its rules numbered in ``rows``.  Nearly all places are asked for once in a run, so nothing
    is spread out for them."""

    def __init__(self, stored: StoredRules, rows: RuleRows) -> None:
        self._stored = stored
        self._rows = rows
        self._run_end = np.cumsum(stored.length)
        self._numbers: Int32Column = np.full(len(stored.rows) + 1, _NOT_NUMBERED, np.int32)
        self._numbers[0] = NOT_COMPILED

    def find(self, page: Int64Column, byte: Int64Column) -> Int32Column:
        """The rule row at each ``byte`` of a page, ``NOT_COMPILED`` where none was kept."""
        pages = self._stored.pages
        at = np.searchsorted(pages, page)
        is_kept = np.append(pages, -1)[at] == page
        rows = np.full(len(page), NOT_COMPILED, np.int32)
        run = np.searchsorted(self._run_end, (at * PAGE_BYTES + byte)[is_kept], "right")
        rows[is_kept] = self._numbered(self._stored.rule[run])
        return rows

    def pages(self) -> Pages:
        """All that was kept."""
        return Pages(self._stored.pages, np.repeat(self._numbered(self._stored.rule), self._stored.length))

    def _numbered(self, rule: Int32Column) -> Int32Column:
        for number in distinct(rule[self._numbers[rule] == _NOT_NUMBERED]).tolist():
            self._numbers[number] = self._rows.intern(self._stored.rows[number - 1])
        return self._numbers[rule]
