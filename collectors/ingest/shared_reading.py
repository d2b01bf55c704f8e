"""The samples of a large recording, read by several processes.

Each copy of this process reads one part of the windows, in tables of its own; this one reads the first part and puts the
others behind it in the order of the file.  Every table numbers what it holds in the order of its first occurrence, so the
result is the same, number by number, as if one process had read all windows.
"""

from __future__ import annotations

import itertools
import os
import pickle
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np

from collectors.ingest.chunk_ingest import ChunkIngest
from collectors.ingest.ingest_tables import IngestTables
from collectors.ingest.places import PlaceKeys
from collectors.ingest.quality_counts import IngestCounts
from collectors.ingest.sample_columns import SampleCollector, SampleColumns
from collectors.ingest.stack_builder import StackNodes
from collectors.perf_data import spec
from collectors.perf_data.reader import Recording
from collectors.perf_data.record_index import RecordIndex
from profiler.forked_task import ForkedTask, can_fork
from profiler.model.arrays import Int64Column, UInt64Column
from profiler.model.quick_dataclass import dataclass
from symbolize.unwind.stored_rules import StoredRules

# More gain little: this process has to put their answers together.
MOST_PROCESSES = 4
# With fewer windows the copies take longer than what they save.
FEWEST_WINDOWS = 4
# A process that starts brings addresses that nobody has met: reading its samples takes longer.
SAMPLES_PER_MAPPING = 4


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Part:
    """What a copy found.  ``samples``: in the order of the file, ``thread`` and ``node`` in the numbers of the tables beside
    them.  ``rules``: those that it compiled, by DSO row."""

    samples: SampleColumns
    threads: UInt64Column
    places: PlaceKeys
    nodes: StackNodes
    counts: IngestCounts
    rules: dict[int, StoredRules]


class SampleReading:
    """Reads the samples of one recording into ``tables``, to which ``stage`` adds what it meets."""

    def __init__(self, recording: Recording, index: RecordIndex, tables: IngestTables, stage: ChunkIngest) -> None:
        self._recording = recording
        self._index = index
        self._tables = tables
        self._stage = stage

    def samples(self) -> SampleColumns:
        """All samples by time; ``FormatError`` for damaged ones."""
        collector = SampleCollector()
        windows = self._recording.windows(self._index)
        own, *others = shares(windows, _work(windows, self._index), _processes(self._recording))
        with ExitStack() as stack:
            tasks = [self._task(stack, share) for share in others]
            self._read(own, collector)
            for task, share in zip(tasks, others, strict=True):
                answer = task.answer() if task is not None else None
                if answer is None:
                    self._read(share, collector)  # whatever went wrong there: here it is told
                else:
                    collector.add(self._taken_over(pickle.loads(answer)))
        return collector.sorted_columns()

    def _task(self, stack: ExitStack, share: Sequence[slice]) -> ForkedTask | None:
        try:
            return stack.enter_context(ForkedTask(partial(self._part, share)))
        except OSError:
            return None

    def _read(self, windows: Sequence[slice], collector: SampleCollector) -> None:
        for chunk in self._recording.chunks(self._index, windows):
            piece = self._stage.read(chunk)
            if piece is not None:
                collector.add(piece)

    def _part(self, windows: Sequence[slice]) -> bytes:
        """What a copy answers: it was made before the first window was read, so its tables hold nothing else."""
        collector = SampleCollector()
        self._read(windows, collector)
        samples, tables = collector.columns(), self._tables
        nodes, leaves = tables.stacks.finish(samples.node)
        part = _Part(
            samples=replace(samples, node=leaves),
            threads=tables.threads.pairs(),
            places=tables.places.keys(),
            nodes=nodes,
            counts=tables.counts,
            rules=tables.unwinder.new_rules(),
        )
        return pickle.dumps(part, pickle.HIGHEST_PROTOCOL)

    def _taken_over(self, part: _Part) -> SampleColumns:
        """The samples of a part in the numbers of this process's tables, which now hold what the part met."""
        tables, samples = self._tables, part.samples
        place = tables.places.add_keys(part.places)
        codes = 2 * place[part.nodes.frame >> 1] + (part.nodes.frame & 1)
        node = tables.stacks.add_nodes(StackNodes(part.nodes.prefix, codes))
        thread = tables.threads.number(part.threads)
        tables.counts.add(part.counts)
        tables.unwinder.add_rules(part.rules)
        return replace(samples, thread=thread[samples.thread], node=node[samples.node])


def _processes(recording: Recording) -> int:
    # What a counter gained is known from its reading before, which may be in any window.
    has_counters = any(event.sample_type & spec.PERF_SAMPLE_READ for event in recording.attributes)
    return min(len(os.sched_getaffinity(0)), MOST_PROCESSES) if can_fork() and not has_counters else 1


def _work(windows: Sequence[slice], index: RecordIndex) -> Int64Column:
    """How much there is to do for each window, in samples."""
    first = index.sample_offsets[[window.start for window in windows]]
    mapped_at = np.array([record.position for record in index.side_band.mmaps], np.int64)
    # Programs that were running before belong to the first window.
    window_of = np.maximum(np.searchsorted(first, mapped_at, "right") - 1, 0)
    samples = np.array([window.stop - window.start for window in windows], np.int64)
    return samples + SAMPLES_PER_MAPPING * np.bincount(window_of, minlength=len(windows))


def shares(windows: Sequence[slice], work: Int64Column, processes: int) -> list[Sequence[slice]]:
    """The windows of each process, this one first: equally much work, in the order of the file."""
    if len(windows) < FEWEST_WINDOWS:
        return [windows]
    done = np.cumsum(work)
    ends = np.searchsorted(done - work / 2, done[-1] * np.arange(1, processes) / processes).tolist()
    return [windows[low:high] for low, high in itertools.pairwise([0, *ends, len(windows)])]
