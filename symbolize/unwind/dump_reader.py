"""Reads of 8-byte words from stack dumps, many at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.model.arrays import BoolColumn, Int64Column, UInt64Column
from symbolize.unwind.registers import WORD_BYTES


@dataclass(frozen=True, slots=True)
class DumpReader:
    """The dumps of some samples: ``bottom`` is the runtime address of each dump's first byte (RSP at the sample)."""

    words: UInt64Column
    start: Int64Column
    size_bytes: Int64Column
    bottom: UInt64Column

    def select(self, rows: Int64Column | BoolColumn) -> DumpReader:
        return DumpReader(self.words, self.start[rows], self.size_bytes[rows], self.bottom[rows])

    def read(self, address: UInt64Column) -> tuple[UInt64Column, BoolColumn]:
        """(word at each address, was the whole word in the dump); unreadable words are 0."""
        distance = (address - self.bottom).view(np.int64)
        readable = (distance >= 0) & (distance <= self.size_bytes - WORD_BYTES)
        index = self.start + (distance >> 3)
        index *= readable  # an index that is always inside
        value = self.words[index] if len(self.words) else np.zeros(len(index), np.uint64)
        shift = distance & 7
        if np.any(shift[readable]):
            value = self._unaligned(value, index, shift.astype(np.uint64))
        value[~readable] = 0
        return value, readable

    def _unaligned(self, low: UInt64Column, index: Int64Column, shift: UInt64Column) -> UInt64Column:
        """Code written in assembler may leave RSP off an 8-byte boundary: a word then lies in two words of the dump."""
        bits = shift * np.uint64(8)
        high = self.words[np.minimum(index + 1, len(self.words) - 1)]
        joined = (low >> bits) | (high << (np.uint64(64) - np.maximum(bits, np.uint64(1))))
        return np.where(bits == 0, low, joined)
