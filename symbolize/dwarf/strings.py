"""Many texts in one block of bytes, decoded only when asked for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StringPool:
    """Text i is ``data[start[i]:start[i + 1]]`` in UTF-8; ``start`` is int64[n + 1]."""

    data: bytes | memoryview
    start: Int64Column

    def __len__(self) -> int:
        return len(self.start) - 1

    def text(self, row: int) -> str:
        return bytes(self.data[int(self.start[row]) : int(self.start[row + 1])]).decode("utf-8", "replace")

    def texts(self, rows: Int32Column | Int64Column) -> list[str]:
        """The texts of many rows, "" for -1: quicker than one by one."""
        if not len(self):
            return [""] * len(rows)
        kept = np.maximum(rows, 0)
        bounds = zip(
            self.start[kept].tolist(), np.where(rows >= 0, self.start[kept + 1], self.start[kept]).tolist(), strict=True
        )
        data = memoryview(self.data)
        return [str(data[first:last], "utf-8", "replace") for first, last in bounds]

    def all_texts(self) -> list[str]:
        """The texts in their order."""
        return self.texts(np.arange(len(self)))


def make_pool(texts: Iterable[str]) -> StringPool:
    encoded = [text.encode("utf-8", "replace") for text in texts]
    start = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=start[1:])
    return StringPool(b"".join(encoded), start)
