"""What comes out of the unwinder."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.unwind.code_sites import CodeSites


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnwoundStacks:
    """m frames of n samples, grouped by sample in the order given, leaf first within a sample.

    ``code``: int32[m], twice the row of ``sites``, plus one for a return address.  ``frame_start``: int64[n + 1].
    ``end_reason``: ``EndReason`` per sample.
    """

    code: Int32Column
    sites: CodeSites
    frame_start: Int64Column
    end_reason: UInt8Column

    @property
    def sample(self) -> Int32Column:
        """The sample of each frame."""
        return np.repeat(np.arange(len(self.end_reason), dtype=np.int32), np.diff(self.frame_start))

    @property
    def dso(self) -> Int32Column:
        """-1 = unmapped."""
        dso: Int32Column = self.sites.dso[self.code >> 1]
        return dso

    @property
    def offset(self) -> UInt64Column:
        """File offset as recorded (of a caller: that of the return address itself), the runtime address where unmapped."""
        offset: UInt64Column = self.sites.offset[self.code >> 1]
        return offset

    @property
    def is_return_address(self) -> BoolColumn:
        """False for the innermost frame, for a frame interrupted by a signal and for the signal trampoline."""
        return (self.code & 1).astype(np.bool_)
