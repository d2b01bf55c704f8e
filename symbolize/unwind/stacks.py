"""What goes into the unwinder and what comes out of it."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt64Column
from profiler.model.quick_dataclass import dataclass


class AddressMap(Protocol):
    """The executable mappings of the recorded processes, as of the samples' times."""

    def resolve(self, address_space: Int64Column, runtime_address: UInt64Column) -> tuple[Int32Column, UInt64Column]:
        """(DSO row or -1 where nothing executable was mapped, file offset), of equal length with the arguments."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StackDumps:
    """User registers and stack dumps of n samples.

    ``registers``: uint64[n, 17], DWARF numbering 0..15 and 16 = RIP.  ``has_register``: bool[17], which were recorded.
    ``words``: the 8-byte words that hold all dumps (may be a view of the recording).  ``dump_start``: int64[n], index in
    ``words`` of the word at RSP.  ``dump_bytes``: int64[n], bytes that are valid from there.  ``address_space``: int64[n],
    handed to ``AddressMap.resolve`` unchanged.
    """

    registers: UInt64Column
    has_register: BoolColumn
    words: UInt64Column
    dump_start: Int64Column
    dump_bytes: Int64Column
    address_space: Int64Column

    def __len__(self) -> int:
        return len(self.dump_start)


class EndReason(IntEnum):
    """Why a stack has no further frame.

    THREAD_ENTRY: nothing called the outermost frame (its return address is undefined by CFI or zero, or the function is
    known as a thread's entry).  NO_CFI: no usable rule there and no frame pointer to fall back on.  DUMP_LIMIT: the next
    return address lies outside the dump.  UNMAPPED: the outermost frame lies in no executable mapping.  DEPTH_LIMIT:
    ``max_depth`` frames.  LOOP: the rules lead back down the stack.  NO_REGISTERS: no instruction or stack pointer recorded.
    """

    THREAD_ENTRY = 0
    NO_CFI = 1
    DUMP_LIMIT = 2
    UNMAPPED = 3
    DEPTH_LIMIT = 4
    LOOP = 5
    NO_REGISTERS = 6
