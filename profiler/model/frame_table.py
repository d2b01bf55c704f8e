"""Frames: places in code, one row per distinct (DSO, offset, kind of address, mode)."""

from __future__ import annotations

from enum import IntEnum

from profiler.model.arrays import BoolColumn, Int32Column, UInt8Column, UInt64Column
from profiler.model.quick_dataclass import dataclass


class CpuMode(IntEnum):
    """Who ran the code; the values are slotscope's own."""

    USER = 0
    KERNEL = 1
    GUEST = 2


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrameTable:
    """Equal length columns.

    ``dso``: row of the DSO table.  ``offset``: file offset for FILE and VDSO, line number for SOURCE, runtime address
    otherwise (see ``DsoKind``), always as recorded.  ``is_return_address``: True for a caller frame, whose look-up address is
    one less; False for the innermost frame, the innermost user frame below a kernel stack, and a frame interrupted by a signal.
    ``mode``: ``CpuMode``.  ``symbol``: string index of a name known only at capture (kernel, vDSO, JIT, imported text),
    -1 = none.
    """

    dso: Int32Column
    offset: UInt64Column
    is_return_address: BoolColumn
    mode: UInt8Column
    symbol: Int32Column

    def __len__(self) -> int:
        return len(self.dso)


def lookup_offsets(offset: UInt64Column, is_return_address: BoolColumn) -> UInt64Column:
    """The address to look up: a return address points behind the call, so one byte before it (the only place for this)."""
    return offset - is_return_address.astype(offset.dtype)
