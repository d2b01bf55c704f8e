"""Samples of all chunks, gathered and put in order."""

from __future__ import annotations

from dataclasses import field, fields, replace

import numpy as np

from profiler.model.arrays import Int16Column, Int32Column, Int64Column, UInt8Column, UInt64Column
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SampleColumns:
    """One row per sample.  ``order``: what sorts samples (time, or the position where no time was recorded).
    ``position``: byte offset in the recording.  ``thread``: number of its (pid, tid).  ``node``: of the stack builder."""

    order: UInt64Column
    position: Int64Column
    time_ns: UInt64Column
    thread: Int32Column
    cpu: Int16Column
    event: Int16Column
    node: Int32Column
    weight: Int64Column
    state: UInt8Column

    def rows(self, chosen: Int64Column) -> SampleColumns:
        return SampleColumns(*(getattr(self, column.name)[chosen] for column in fields(self)))

    def with_counters(self, event: Int16Column, weight: Int64Column) -> SampleColumns:
        return replace(self, event=event, weight=weight)


_DTYPES = (np.uint64, np.int64, np.uint64, np.int32, np.int16, np.int16, np.int32, np.int64, np.uint8)


@dataclass(slots=True)
class SampleCollector:
    """Keeps the columns of each chunk until all are there."""

    pieces: list[SampleColumns] = field(default_factory=list)

    def add(self, piece: SampleColumns) -> None:
        self.pieces.append(piece)

    def columns(self) -> SampleColumns:
        """All samples as they were added."""
        names = [column.name for column in fields(SampleColumns)]
        if not self.pieces:
            return SampleColumns(*(np.zeros(0, dtype) for dtype in _DTYPES))  # type: ignore[arg-type]
        columns = SampleColumns(*(np.concatenate([getattr(piece, name) for piece in self.pieces]) for name in names))
        self.pieces.clear()
        return columns

    def sorted_columns(self) -> SampleColumns:
        """All samples by (order, position)."""
        columns = self.columns()
        if (columns.position[1:] < columns.position[:-1]).any():
            return columns.rows(np.lexsort((columns.position, columns.order)))
        return columns.rows(np.argsort(columns.order, kind="stable"))
