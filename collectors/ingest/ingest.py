"""From a recording to a capture: the stages in order, each in a module of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from collectors.ingest.address_spaces import MappingTable, build_address_spaces
from collectors.ingest.callchains import AddressResolver
from collectors.ingest.capture_facts import completed_info, events_of
from collectors.ingest.chunk_ingest import ChunkIngest, ProgramStart
from collectors.ingest.dso_table import DsoTable
from collectors.ingest.frame_builder import KernelFrames, KernelNames, build_frames
from collectors.ingest.group_reads import CounterGains
from collectors.ingest.places import Places
from collectors.ingest.quality_counts import IngestCounts, capture_quality, unmapped_count
from collectors.ingest.sample_columns import SampleCollector, SampleColumns
from collectors.ingest.stack_builder import StackBuilder
from collectors.ingest.stack_states import UNDECIDED, RootJudge, StackFrames, frame_pointer_states
from collectors.ingest.thread_names import StringTable, name_timeline, thread_table
from collectors.ingest.thread_roots import ThreadRoots
from collectors.ingest.user_stacks import UserStackReader
from collectors.perf_data import spec
from collectors.perf_data.reader import Recording
from collectors.perf_data.record_index import RecordIndex
from collectors.perf_data.side_band import SideBand
from profiler.model.arrays import Int32Column, UInt8Column
from profiler.model.capture import Capture
from profiler.model.dso import Dso
from profiler.model.run import CaptureInfo, RunMode
from profiler.model.sample_table import SampleTable
from profiler.model.stack_table import StackTable
from symbolize.elf.image import ElfImage
from symbolize.unwind.unwinder import Unwinder

_ARCHITECTURES_32_BIT = ("i386", "i486", "i586", "i686", "armv", "mips", "ppc")
_64_BIT_SUFFIX = "64"


class ImageSource(Protocol):
    """Where the binaries of a recording are."""

    def image(self, dso: Dso) -> ElfImage | None:
        """The binary that was recorded, ``None`` when it is not at hand."""


@dataclass(frozen=True, slots=True)
class IngestEnvironment:
    """What ingesting needs of the host: binaries for unwinding, names for kernel frames."""

    images: ImageSource
    kernel: KernelNames | None


def ingest(recording: Recording, info: CaptureInfo, environment: IngestEnvironment) -> Capture:
    """All samples of a recording with their stacks; ``FormatError`` for damaged records."""
    return ingest_indexed(recording, recording.index(), info, environment)


def ingest_indexed(recording: Recording, index: RecordIndex, info: CaptureInfo, environment: IngestEnvironment) -> Capture:
    """``ingest`` for a recording whose first pass is done."""
    dsos = DsoTable(recording.features.build_ids)
    spaces = build_address_spaces(index.side_band, dsos)
    mappings = MappingTable(spaces, dsos)

    def image_of(row: int) -> ElfImage | None:
        return environment.images.image(dsos.rows[row])

    unwinder = Unwinder(image_of)
    places, stacks, counts = Places(), StackBuilder(), IngestCounts()
    is_kernel_high = not is_32_bit(recording.features.arch)
    stage = ChunkIngest(
        attributes=recording.attributes,
        has_time=recording.has_time,
        is_kernel_high=is_kernel_high,
        program_start=_program_start(index.side_band) if info.identity.mode is RunMode.PROFILED else None,
        spaces=spaces.timeline(),
        mappings=mappings,
        places=places,
        resolver=AddressResolver(places, mappings),
        user_stacks=UserStackReader(unwinder, mappings, places),
        stacks=stacks,
        gains=CounterGains(recording.attributes),
        counts=counts,
    )
    collector = SampleCollector()
    for chunk in recording.chunks(index):
        piece = stage.read(chunk)
        if piece is not None:
            collector.add(piece)
    columns = collector.sorted_columns()
    nodes, leaves = stacks.finish(columns.node)
    strings = StringTable()
    kernel = KernelFrames(environment.kernel, dsos, strings)
    built = build_frames(nodes.frame, places.columns(is_kernel_high), dsos, spaces.modules, kernel)
    stack_table = StackTable(nodes.prefix, built.frame_of[nodes.frame])
    state = _states(
        columns,
        leaves,
        StackFrames(stack_table, built.frames, built.unwinder_dso),
        RootJudge(unwinder, ThreadRoots(image_of)),
        recording,
    )
    threads, thread_rows = thread_table(columns.thread, columns.order, name_timeline(index.side_band, strings), strings)
    samples = SampleTable(columns.time_ns, thread_rows, columns.cpu, columns.event, leaves, columns.weight, state)
    return Capture(
        info=completed_info(info, recording),
        quality=capture_quality(recording, index, counts, samples, unmapped_count(built.frames, built.dsos)),
        strings=strings.strings(),
        dsos=built.dsos,
        frames=built.frames,
        stacks=stack_table,
        threads=threads,
        samples=samples,
        events=events_of(recording.attributes),
    )


def is_32_bit(architecture: str) -> bool:
    """Whether kernel addresses lie in the lower half of 64 bits."""
    return architecture.startswith(_ARCHITECTURES_32_BIT) and _64_BIT_SUFFIX not in architecture


def _program_start(side_band: SideBand) -> ProgramStart | None:
    """The first exec of the recording: that of the program which was launched to be recorded."""
    execs = [record for record in side_band.comms if record.is_exec]
    if not execs:
        return None
    first = min(execs, key=lambda record: record[:2])
    return ProgramStart(first.pid, first.time_ns)


def _states(
    columns: SampleColumns, leaves: Int32Column, tables: StackFrames, judge: RootJudge, recording: Recording
) -> UInt8Column:
    undecided = columns.state == UNDECIDED
    if not undecided.any():
        return columns.state
    max_frames = max(event.max_stack for event in recording.attributes) or spec.PERF_MAX_STACK_DEPTH
    is_leaf = np.zeros(len(tables.stacks), np.bool_)
    is_leaf[leaves[undecided]] = True
    nodes = np.flatnonzero(is_leaf).astype(np.int32)
    state_of = np.zeros(len(tables.stacks), np.uint8)
    state_of[nodes] = frame_pointer_states(nodes, tables, judge, max_frames)
    return np.where(undecided, state_of[leaves], columns.state)
