"""Frames as the walks find them, one level of the stacks at a time, and their assembly into stacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column
from symbolize.unwind.stacks import EndReason, UnwoundStacks


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Level:
    """The frames at one depth (0 = innermost); columns of equal length, at most one frame per sample."""

    depth: int
    sample: Int64Column
    dso: Int32Column
    offset: UInt64Column
    is_return_address: BoolColumn

    def without(self, is_void: BoolColumn) -> Level:
        kept = ~is_void[self.sample]
        return Level(self.depth, self.sample[kept], self.dso[kept], self.offset[kept], self.is_return_address[kept])


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

    def stacks(self) -> UnwoundStacks:
        depth = np.zeros(self._sample_count, np.int64)
        for level in self._levels:
            depth[level.sample] += 1
        frame_start = np.concatenate([np.zeros(1, np.int64), np.cumsum(depth)])
        count = int(frame_start[-1])
        dso, offset = np.empty(count, np.int32), np.empty(count, np.uint64)
        is_return_address = np.empty(count, np.bool_)
        for level in self._levels:
            place = frame_start[level.sample] + level.depth
            dso[place], offset[place], is_return_address[place] = level.dso, level.offset, level.is_return_address
        return UnwoundStacks(
            sample=np.repeat(np.arange(self._sample_count, dtype=np.int32), depth),
            dso=dso,
            offset=offset,
            is_return_address=is_return_address,
            frame_start=frame_start,
            end_reason=self._end_reason,
        )
