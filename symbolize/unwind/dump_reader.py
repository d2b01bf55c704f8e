"""Reads of 8-byte words from stack dumps, many at once."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, Int64Column, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.unwind.registers import RSP, WORD_BYTES
from symbolize.unwind.stacks import StackDumps


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DumpReader:
    """The dumps of some samples.

    ``start``: index in ``words`` of each dump's first word.  ``bottom``: its runtime address (RSP at the sample).  ``limit``:
    a word is readable at distances from ``bottom`` below this.
    """

    words: UInt64Column
    start: Int64Column
    bottom: UInt64Column
    limit: UInt64Column

    def select(self, rows: Int64Column) -> DumpReader:
        return DumpReader(self.words, self.start[rows], self.bottom[rows], self.limit[rows])

    def read(self, address: UInt64Column) -> tuple[UInt64Column, BoolColumn]:
        """(word at each address, was the whole word in the dump); unreadable words are 0."""
        distance = address - self.bottom
        readable = distance < self.limit
        index = self.start + (distance >> np.uint64(3)).view(np.int64)
        all_readable = bool(readable.all())
        if not all_readable:
            index *= readable  # an index that is always inside
        value: UInt64Column = self.words[index] if len(self.words) else np.zeros(len(index), np.uint64)
        if int(np.bitwise_or.reduce(distance, initial=0)) & 7:
            value = self._unaligned(value, index, distance & np.uint64(7))
        if not all_readable:
            value *= readable
        return value, readable

    def _unaligned(self, low: UInt64Column, index: Int64Column, shift: UInt64Column) -> UInt64Column:
        """Code written in assembler may leave RSP off an 8-byte boundary: a word then lies in two words of the dump."""
        bits = shift * np.uint64(8)
        high = self.words[np.minimum(index + 1, len(self.words) - 1)] if len(self.words) else low
        joined = (low >> bits) | (high << (np.uint64(64) - np.maximum(bits, np.uint64(1))))
        return np.where(bits == 0, low, joined)


def open_dumps(dumps: StackDumps, samples: Int64Column) -> DumpReader:
    """The dumps of ``samples``.  What a damaged recording claims beyond ``dumps.words`` is not readable."""
    start = dumps.dump_start[samples]
    inside = (start >= 0) & (start <= len(dumps.words))
    stored = (len(dumps.words) - start) * WORD_BYTES
    size = np.where(inside, np.minimum(dumps.dump_bytes[samples], stored), 0)
    limit = np.maximum(size - (WORD_BYTES - 1), 0).astype(np.uint64)
    return DumpReader(dumps.words, np.where(inside, start, 0), dumps.registers[samples, RSP], limit)
