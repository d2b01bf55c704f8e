"""Frames as the walks find them, one level of the stacks at a time, and their assembly into stacks."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column
from profiler.model.quick_dataclass import dataclass
from symbolize.unwind.code_sites import CodeSites
from symbolize.unwind.stacks import EndReason
from symbolize.unwind.unwound_stacks import UnwoundStacks


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Level:
    """The frames at one depth (0 = innermost); columns of equal length, at most one frame per sample.

    ``code``: twice the site, plus one for a return address.
    """

    depth: int
    sample: Int64Column
    code: Int32Column

    def without(self, is_void: BoolColumn) -> Level:
        kept = ~is_void[self.sample]
        return Level(self.depth, self.sample[kept], self.code[kept])


class StackLevels:
    """All levels of ``sample_count`` samples and how each stack ended (before anything is said: ``NO_REGISTERS``)."""

    def __init__(self, sample_count: int) -> None:
        self._sample_count = sample_count
        self._levels: list[Level] = []
        self._end_reason: UInt8Column = np.full(sample_count, EndReason.NO_REGISTERS, np.uint8)

    def add(self, level: Level) -> None:
        self._levels.append(level)

    def end(self, samples: Int64Column, reason: EndReason | UInt8Column) -> None:
        self._end_reason[samples] = reason

    def void(self, samples: Int64Column) -> None:
        """Forget the frames of ``samples``, which will be unwound in another way."""
        is_void = np.zeros(self._sample_count, np.bool_)
        is_void[samples] = True
        self._levels = [level.without(is_void) for level in self._levels]

    def stacks(self, sites: CodeSites) -> UnwoundStacks:
        """All frames sample by sample; ``sites`` are those of the levels' codes."""
        depth = np.zeros(self._sample_count, np.int64)
        for level in self._levels:
            depth[level.sample] += 1
        frame_start = np.concatenate([np.zeros(1, np.int64), np.cumsum(depth)])
        code = np.empty(int(frame_start[-1]), np.int32)
        for level in self._levels:
            code[frame_start[level.sample] + level.depth] = level.code
        return UnwoundStacks(code=code, sites=sites, frame_start=frame_start, end_reason=self._end_reason)
