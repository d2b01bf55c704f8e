"""From a recording to a capture: the stages in order, each in a module of its own."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from collectors.ingest.capture_facts import completed_info, events_of
from collectors.ingest.chunk_ingest import ChunkIngest, ProgramStart
from collectors.ingest.frame_builder import KernelFrames, KernelNames, build_frames
from collectors.ingest.ingest_tables import IngestTables, ingest_tables
from collectors.ingest.kernel_symbol_records import RecordedKernelNames
from collectors.ingest.quality_counts import capture_quality, unmapped_count
from collectors.ingest.sample_columns import SampleColumns
from collectors.ingest.shared_reading import SampleReading
from collectors.ingest.stack_states import UNDECIDED_BUT_LINKED, StackFrames, frame_pointer_states
from collectors.ingest.thread_names import name_timeline, thread_table
from collectors.perf_data import spec
from collectors.perf_data.reader import Recording
from collectors.perf_data.record_index import RecordIndex
from collectors.perf_data.side_band import SideBand
from profiler.errors import FormatError
from profiler.model.arrays import Int32Column, UInt8Column
from profiler.model.capture import Capture
from profiler.model.dso import Dso
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, RunMode
from profiler.model.sample_table import SampleTable, StackState
from profiler.model.stack_table import StackTable
from symbolize.elf.image import ElfImage
from symbolize.unwind.unwinder import RuleStore as RuleStore

_LARGEST_TOTAL = 2.0**62


class ImageSource(Protocol):
    """Where the binaries of a recording are."""

    def image(self, dso: Dso) -> ElfImage | None:
        """The binary that was recorded, ``None`` when it is not at hand."""


@dataclass(frozen=True, slots=True)
class IngestEnvironment:
    """What ingesting needs of the host: binaries for unwinding, names for kernel frames, unwinding rules of earlier runs."""

    images: ImageSource
    kernel: KernelNames | None
    unwind_rules: RuleStore | None = None


def ingest(recording: Recording, info: CaptureInfo, environment: IngestEnvironment) -> Capture:
    """All samples of a recording with their stacks; ``FormatError`` for damaged records."""
    return ingest_indexed(recording, recording.index(), info, environment)


def ingest_indexed(recording: Recording, index: RecordIndex, info: CaptureInfo, environment: IngestEnvironment) -> Capture:
    """``ingest`` for a recording whose first pass is done."""
    image, unwind_rules = environment.images.image, environment.unwind_rules
    tables = ingest_tables(recording, index.side_band, image, info.program, unwind_rules)
    was_launched = info.identity.mode is RunMode.PROFILED and not info.identity.instance
    program_start = _program_start(index.side_band) if was_launched else None
    columns = SampleReading(recording, index, tables, ChunkIngest(recording, tables, program_start)).samples()
    _check_weights(recording.name, columns)
    nodes, leaves = tables.stacks.finish(columns.node)
    names = RecordedKernelNames(index.side_band.kernel_symbols, environment.kernel)
    kernel = KernelFrames(names, tables.dsos, tables.strings)
    places = tables.places.columns(tables.is_kernel_high)
    built = build_frames(nodes.frame, places, tables.dsos, tables.spaces.modules, kernel)
    stacks = StackTable(nodes.prefix, built.frame_of[nodes.frame])
    state = _states(columns, leaves, StackFrames(stacks, built.frames, built.unwinder_dso), tables, recording)
    tables.unwinder.keep_rules()
    thread_names = name_timeline(index.side_band, tables.strings)
    threads, thread = thread_table(columns.thread, columns.order, tables.threads.pairs(), thread_names, tables.strings)
    samples = SampleTable(columns.time_ns, thread, columns.cpu, columns.event, leaves, columns.weight, state)
    return Capture(
        info=completed_info(info, recording),
        quality=capture_quality(recording, index, tables.counts, samples, unmapped_count(built.frames, built.dsos)),
        strings=tables.strings.strings(),
        dsos=built.dsos,
        frames=built.frames,
        stacks=stacks,
        threads=threads,
        samples=samples,
        events=events_of(recording.attributes),
    )


def _check_weights(name: str, columns: SampleColumns) -> None:
    """Sums of weights must stay far inside 64 bits; a period that is too large is no observation."""
    weight = columns.weight
    if len(weight) and float(weight.sum(dtype=np.float64)) >= _LARGEST_TOTAL:
        largest = int(weight.argmax())
        message = "the period of this sample is too large for any sum over samples: the recording is damaged"
        raise FormatError(name, message, int(columns.position[largest]))


def _program_start(side_band: SideBand) -> ProgramStart | None:
    """The first exec of the recording: that of the program which was launched to be recorded."""
    execs = [record for record in side_band.comms if record.is_exec]
    if not execs:
        return None
    first = min(execs, key=lambda record: record[:2])
    return ProgramStart(first.pid, first.time_ns)


def _states(
    columns: SampleColumns, leaves: Int32Column, stacks: StackFrames, tables: IngestTables, recording: Recording
) -> UInt8Column:
    undecided = columns.state >= UNDECIDED_BUT_LINKED
    if not undecided.any():
        return columns.state
    max_frames = max(event.max_stack for event in recording.attributes) or spec.PERF_MAX_STACK_DEPTH
    is_leaf = np.zeros(len(stacks.stacks), np.bool_)
    is_leaf[leaves[undecided]] = True
    nodes = np.flatnonzero(is_leaf).astype(np.int32)
    state_of = np.zeros(len(stacks.stacks), np.uint8)
    state_of[nodes] = frame_pointer_states(nodes, stacks, tables.unwinder, max_frames)
    state = np.where(undecided, state_of[leaves], columns.state)
    state[(columns.state == UNDECIDED_BUT_LINKED) & (state == StackState.GAP_POSSIBLE)] = StackState.COMPLETE
    return state
