"""One page of a long list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from profiler.model.quick_dataclass import dataclass

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class PageOf(Generic[Row]):
    """``number`` counts from 1; ``first``: the place of the first row in the whole list, from 1, 0 = the list is empty."""

    rows: tuple[Row, ...]
    number: int
    pages: int
    first: int
    total: int

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1 if self.rows else 0


def page_of(rows: Sequence[Row], number: int, size: int) -> PageOf[Row]:
    """A number outside the list gives the nearest page."""
    pages = max(1, -(-len(rows) // size))
    chosen = min(max(1, number), pages)
    begin = (chosen - 1) * size
    return PageOf(tuple(rows[begin : begin + size]), chosen, pages, begin + 1 if rows else 0, len(rows))
