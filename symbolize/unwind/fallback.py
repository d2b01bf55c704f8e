"""Code without call frame information: the caller by the frame pointer, where that is plausible."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.unwind.code_rules import CodeRules
from symbolize.unwind.dump_reader import DumpReader
from symbolize.unwind.registers import WORD_BYTES
from symbolize.unwind.stacks import AddressMap, EndReason

# A larger frame than this is taken for a register that held something else.
FRAME_LIMIT_BYTES = 0x4000


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unruled:
    """Frames whose address has no rule; columns of equal length.  ``dso`` is -1 for unmapped addresses."""

    address_space: Int64Column
    dso: Int32Column
    lookup_offset: UInt64Column
    stack_pointer: UInt64Column
    frame_pointer: UInt64Column
    dump: DumpReader


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PointerChain:
    """The callers found: ``is_found`` and, where it is set, their registers; elsewhere ``reason`` says why there are none."""

    is_found: BoolColumn
    return_address: UInt64Column
    stack_pointer: UInt64Column
    frame_pointer: UInt64Column
    reason: UInt8Column


def follow_frame_pointer(frames: Unruled, address_map: AddressMap, code: CodeRules) -> PointerChain:
    """One step along the chain of frame pointers.

    It is taken only if RBP lies in the 16 KiB above RSP, the saved RBP and the return address are in the dump and the return
    address is mapped executable; never from a function that is known as a thread's entry.
    """
    pointer = frames.frame_pointer
    saved_pointer, pointer_readable = frames.dump.read(pointer)
    return_address, return_readable = frames.dump.read(pointer + np.uint64(WORD_BYTES))
    is_mapped = frames.dso >= 0
    is_entry = is_mapped & code.is_thread_entry(frames.dso, frames.lookup_offset)
    caller, _ = address_map.resolve(frames.address_space, return_address - np.uint64(1))
    is_found = is_mapped & ~is_entry & pointer_readable & return_readable & (return_address != 0) & (caller >= 0)
    is_found &= pointer - frames.stack_pointer <= np.uint64(FRAME_LIMIT_BYTES)
    reason = np.where(is_entry, EndReason.THREAD_ENTRY, np.where(is_mapped, EndReason.NO_CFI, EndReason.UNMAPPED))
    return PointerChain(
        is_found=is_found,
        return_address=return_address,
        stack_pointer=pointer + np.uint64(2 * WORD_BYTES),
        frame_pointer=saved_pointer,
        reason=reason.astype(np.uint8),
    )
