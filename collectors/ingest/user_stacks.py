"""Stack dumps of samples, unwound into frame lists."""

from __future__ import annotations

import numpy as np

from collectors.ingest.address_spaces import MappingTable
from collectors.ingest.frame_lists import FrameLists
from collectors.ingest.places import Places
from collectors.ingest.ragged import reversed_positions, row_starts
from collectors.perf_data.reader import Chunk
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column
from profiler.model.quick_dataclass import dataclass
from profiler.model.sample_table import StackState
from symbolize.unwind.code_sites import CodeSites
from symbolize.unwind.unwinder import EndReason, StackDumps, Unwinder

# perf's numbering of x86 registers (arch/x86/include/uapi/asm/perf_regs.h: AX BX CX DX SI DI BP SP IP, R8.. from 16) by
# DWARF number (System V ABI, AMD64 supplement, figure 3.36; 16 is the return address column, here the instruction pointer).
_PERF_REGISTER = (0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8)
_DWARF_SP = 7

_STATE_OF_END = {
    EndReason.THREAD_ENTRY: StackState.COMPLETE,
    EndReason.NO_CFI: StackState.ROOTLESS,
    EndReason.DUMP_LIMIT: StackState.TRUNCATED,
    EndReason.UNMAPPED: StackState.ROOTLESS,
    EndReason.DEPTH_LIMIT: StackState.TRUNCATED,
    EndReason.LOOP: StackState.ROOTLESS,
    EndReason.NO_REGISTERS: StackState.NO_USER_STACK,
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UserStacks:
    """``frames`` per sample, empty where nothing could be unwound; ``is_unwound``, ``state`` (``StackState``) per sample."""

    frames: FrameLists
    is_unwound: BoolColumn
    state: UInt8Column


class UserStackReader:
    """Unwinds the stack dumps of chunks."""

    def __init__(self, unwinder: Unwinder, mappings: MappingTable, places: Places) -> None:
        self._unwinder = unwinder
        self._mappings = mappings
        self._places = places
        self._sites: CodeSites | None = None
        self._codes = np.zeros(0, np.int32)
        self._state_of_end = np.full(max(EndReason) + 1, StackState.ROOTLESS, np.uint8)
        for reason, state in _STATE_OF_END.items():
            self._state_of_end[reason] = state

    def read(self, chunk: Chunk, space: Int32Column) -> UserStacks:
        fields = chunk.fields
        count = len(chunk.position)
        recorded = chunk.layout.user_registers
        is_unwound = (fields.registers_start >= 0) & (fields.dump_bytes > 0)
        if not all(recorded >> register & 1 for register in (_PERF_REGISTER[_DWARF_SP], _PERF_REGISTER[16])):
            is_unwound[:] = False
        rows = np.flatnonzero(is_unwound)
        state = np.full(count, StackState.NO_USER_STACK, np.uint8)
        if not len(rows):
            return UserStacks(FrameLists(np.zeros(0, np.int32), np.zeros(count + 1, np.int64)), is_unwound, state)
        unwound = self._unwinder.unwind(self._dumps(chunk, rows, space), self._mappings)
        lengths = np.zeros(count, np.int64)
        lengths[rows] = np.diff(unwound.frame_start)
        state[rows] = self._state_of_end[unwound.end_reason]
        positions, _ = reversed_positions(unwound.frame_start[:-1], np.diff(unwound.frame_start))
        codes = self._code_table(unwound.sites)[unwound.code[positions]]
        return UserStacks(FrameLists(codes, row_starts(lengths)), is_unwound, state)

    def _code_table(self, sites: CodeSites) -> Int32Column:
        """The frame code for each code of an unwound frame."""
        if sites is not self._sites:
            self._sites, self._codes = sites, np.zeros(0, np.int32)
        known = len(self._codes) // 2
        if known < len(sites):
            places = self._places.user(sites.dso[known : len(sites)], sites.offset[known : len(sites)])
            self._codes = np.concatenate([self._codes, (2 * places[:, None] + np.arange(2, dtype=np.int32)).reshape(-1)])
        return self._codes

    def _dumps(self, chunk: Chunk, rows: Int64Column, space: Int32Column) -> StackDumps:
        fields, mask = chunk.fields, chunk.layout.user_registers
        registers = np.zeros((len(rows), len(_PERF_REGISTER)), np.uint64)
        has_register = np.zeros(len(_PERF_REGISTER), np.bool_)
        for number, register in enumerate(_PERF_REGISTER):
            if mask >> register & 1:
                has_register[number] = True
                rank = (mask & ((1 << register) - 1)).bit_count()
                registers[:, number] = fields.words[fields.registers_start[rows] + rank]
        return StackDumps(
            registers=registers,
            has_register=has_register,
            words=fields.words,
            dump_start=fields.dump_start[rows],
            dump_bytes=fields.dump_bytes[rows],
            address_space=space[rows].astype(np.int64),
        )
