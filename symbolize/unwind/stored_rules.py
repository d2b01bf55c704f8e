"""Unwinding rules of one DSO as they are kept between runs: compiling those of a large program takes longer than unwinding.

Kept is the DSO's part of the page table, run by run.  Places without rules are not kept: a file in which more can be found may
have the same build ID.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, distinct
from symbolize.elf.image import ElfImage
from symbolize.unwind.page_table import PAGE_BYTES, Pages
from symbolize.unwind.rule_rows import NO_RULES, NOT_COMPILED, RuleRow, RuleRows


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


def unpacked(stored: StoredRules, rows: RuleRows) -> Pages:
    """The pages of a DSO, with its rules numbered in ``rows``."""
    numbers = np.array([NOT_COMPILED, *(rows.intern(row) for row in stored.rows)], np.int32)
    return Pages(stored.pages, np.repeat(numbers[stored.rule], stored.length))
