"""From one chunk of samples to rows of the sample columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collectors.ingest.address_spaces import NO_SPACE
from collectors.ingest.branch_stacks import branch_callers, has_branch_call_stacks, has_user_callers
from collectors.ingest.callchains import AddressLists, AddressResolver, chain_addresses
from collectors.ingest.frame_lists import FrameLists, joined, replaced_where_empty
from collectors.ingest.group_reads import CounterGains, Gains, counter_readings
from collectors.ingest.ingest_tables import IngestTables
from collectors.ingest.sample_columns import SampleColumns
from collectors.ingest.stack_states import UNDECIDED, UNDECIDED_BUT_LINKED
from collectors.perf_data import spec
from collectors.perf_data.attributes import EventAttributes
from collectors.perf_data.reader import Chunk, Recording
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column
from profiler.model.frame_table import CpuMode
from profiler.model.quick_dataclass import dataclass
from profiler.model.sample_table import StackState

if TYPE_CHECKING:
    from collectors.ingest.user_stacks import UserStackReader, UserStacks

_LOW_HALF = np.uint64(0xFFFFFFFF)
_KERNEL_HALF = np.uint64(1 << 63)
_MAX_WEIGHT = np.uint64(2**62)
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """When the launched program replaced the process ``pid``; samples of that process from before are not its own."""

    pid: int
    time_ns: int


class ChunkIngest:
    """Reads the chunks of one recording in order; ``program_start`` is ``None`` when every sample counts."""

    def __init__(self, recording: Recording, tables: IngestTables, program_start: ProgramStart | None) -> None:
        self._attributes = recording.attributes
        self._has_time = recording.has_time
        self._program_start = program_start
        self._tables = tables
        self._spaces = tables.spaces.timeline()
        self._resolver = AddressResolver(tables.places, tables.mappings, tables.is_kernel_high)
        self._user_stacks: UserStackReader | None = None
        self._gains = CounterGains(recording.attributes)

    def read(self, chunk: Chunk) -> SampleColumns | None:
        """The chunk's samples; ``None`` when none of them counts."""
        self._tables.counts.mismatched += chunk.fields.mismatched
        is_counting = self._counting(chunk)
        gains = self._counter_gains(chunk, is_counting)
        chunk = chunk.rows(is_counting)
        if not len(chunk.position):
            return None
        fields = chunk.fields
        order = self._order(chunk)
        space = np.maximum(self._spaces.at(fields.process_thread & _LOW_HALF, order), NO_SPACE)
        self._tables.mappings.enter(space.astype(np.int64))
        frames, state = self._frames(chunk, space)
        columns = SampleColumns(
            order=order,
            position=chunk.position,
            time_ns=fields.time_ns,
            thread=self._tables.threads.number(fields.process_thread),
            cpu=np.where(fields.cpu < 1 << 15, fields.cpu, -1).astype(np.int16),
            event=chunk.event,
            node=self._tables.stacks.add(frames),
            weight=self._weights(chunk),
            state=state,
        )
        return columns if gains is None else columns.rows(gains.sample).with_counters(gains.event, gains.gain)

    def _order(self, chunk: Chunk) -> UInt64Column:
        return chunk.fields.time_ns if self._has_time else chunk.position.astype(np.uint64)

    def _counting(self, chunk: Chunk) -> BoolColumn:
        is_known = chunk.event >= 0
        self._tables.counts.unknown_events += int((~is_known).sum())
        start = self._program_start
        if start is None:
            return is_known
        is_program = (chunk.fields.process_thread & _LOW_HALF) == np.uint64(start.pid & 0xFFFFFFFF)
        before = is_known & is_program & (self._order(chunk) < np.uint64(start.time_ns))
        self._tables.counts.before_exec += int(before.sum())
        kept: BoolColumn = is_known & ~before
        return kept

    def _frames(self, chunk: Chunk, space: Int32Column) -> tuple[FrameLists, UInt8Column]:
        """Frame lists, none of them empty, and the states as far as they are known."""
        layout = chunk.layout
        state = np.full(len(chunk.position), UNDECIDED, np.uint8)
        if layout.has(spec.PERF_SAMPLE_CALLCHAIN):
            chains = chain_addresses(chunk.fields, self._tables.is_kernel_high)
        else:
            nothing = np.zeros(len(chunk.position) + 1, np.int64)
            chains = AddressLists(np.zeros(0, np.uint64), nothing, np.zeros(0, np.bool_), None)
        if layout.has(spec.PERF_SAMPLE_STACK_USER) and layout.has(spec.PERF_SAMPLE_REGS_USER):
            user = self._unwound(chunk, space)
            kernel = self._resolver.frames(_without_user_part(chains, user.is_unwound), space)
            frames = joined(user.frames, kernel)
            state = np.where(user.is_unwound, user.state, UNDECIDED).astype(np.uint8)
        elif has_branch_call_stacks(layout):
            is_branch_stack = has_user_callers(chunk.fields, chains)
            callers = self._resolver.frames(branch_callers(chunk.fields, is_branch_stack), space)
            frames = joined(callers, self._resolver.frames(_without_user_part(chains, is_branch_stack), space))
            state = np.where(is_branch_stack, UNDECIDED_BUT_LINKED, UNDECIDED).astype(np.uint8)
        else:
            frames = self._resolver.frames(chains, space)
        is_empty = frames.lengths == 0
        if is_empty.any():
            state[is_empty] = StackState.NO_USER_STACK
            frames = replaced_where_empty(frames, self._single_frames(chunk, space))
        return frames, state

    def _unwound(self, chunk: Chunk, space: Int32Column) -> UserStacks:
        if self._user_stacks is None:
            from collectors.ingest.user_stacks import UserStackReader

            self._user_stacks = UserStackReader(self._tables.unwinder, self._tables.mappings, self._tables.places)
        return self._user_stacks.read(chunk, space)

    def _single_frames(self, chunk: Chunk, space: Int32Column) -> Int32Column:
        """The frame of each sample's own instruction address; the unknown place without one."""
        count = len(chunk.position)
        if not chunk.layout.has(spec.PERF_SAMPLE_IP):
            return np.full(count, 2 * self._tables.places.unknown(), np.int32)
        addresses = chunk.fields.ip
        start = np.arange(count + 1, dtype=np.int64)
        mode = _sample_modes(chunk.fields.misc, addresses)
        lists = AddressLists(addresses, start, np.zeros(count, np.bool_), mode)
        return self._resolver.frames(lists, space).codes_root_first

    def _weights(self, chunk: Chunk) -> Int64Column:
        if chunk.layout.has(spec.PERF_SAMPLE_PERIOD):
            return np.minimum(chunk.fields.period, _MAX_WEIGHT).astype(np.int64)
        weight_of = np.array([_fixed_weight(event) for event in self._attributes], np.int64)
        return weight_of[chunk.event]

    def _counter_gains(self, chunk: Chunk, is_counting: BoolColumn) -> Gains | None:
        """What the counters in the samples that count gained since their last reading, be that in a sample that does not."""
        readings = counter_readings(chunk)
        if readings is None:
            return None
        gains = self._gains.gains(readings, chunk.fields.process_thread)
        self._tables.counts.unknown_events += int((gains.event < 0).sum())
        return gains.of_samples(is_counting)


def _fixed_weight(event: EventAttributes) -> int:
    """Weight of a sample that carries no period."""
    if not event.is_frequency:
        return min(event.period_or_frequency, int(_MAX_WEIGHT))
    return _SECOND_NS // max(event.period_or_frequency, 1) if event.name.startswith(("cpu-clock", "task-clock")) else 1


def _sample_modes(misc: UInt64Column, addresses: UInt64Column) -> UInt8Column:
    by_address = np.where(addresses >= _KERNEL_HALF, CpuMode.KERNEL, CpuMode.USER)
    mode_of = np.full(8, -1, np.int64)
    mode_of[[spec.PERF_RECORD_MISC_KERNEL, spec.PERF_RECORD_MISC_HYPERVISOR]] = CpuMode.KERNEL
    mode_of[spec.PERF_RECORD_MISC_USER] = CpuMode.USER
    mode_of[[spec.PERF_RECORD_MISC_GUEST_KERNEL, spec.PERF_RECORD_MISC_GUEST_USER]] = CpuMode.GUEST
    mode = mode_of[(misc & np.uint64(spec.PERF_RECORD_MISC_CPUMODE_MASK)).astype(np.int64)]
    return np.where(mode < 0, by_address, mode).astype(np.uint8)


def _without_user_part(chains: AddressLists, is_unwound: BoolColumn) -> AddressLists:
    """The kernel's part of the chains of samples whose user stack was unwound; other chains whole."""
    is_kernel = chains.addresses >= _KERNEL_HALF if chains.mode is None else chains.mode == CpuMode.KERNEL
    keep = is_kernel | ~np.repeat(is_unwound, np.diff(chains.start))
    if keep.all():
        return chains
    kept_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])
    mode = None if chains.mode is None else chains.mode[keep]
    return AddressLists(chains.addresses[keep], kept_before[chains.start], chains.is_return_address[keep], mode)
