"""The first pass over a recording: where the samples are, and the decoded side band."""

from __future__ import annotations

from collections import Counter

import numpy as np

from collectors.perf_data import spec
from collectors.perf_data.byte_source import WINDOW_BYTES, ByteSource, Section, words_of
from collectors.perf_data.record_chain import record_starts
from collectors.perf_data.sample_layout import Trailers
from collectors.perf_data.side_band import RecordWindow, SideBand, SideBandDecoder
from profiler.errors import FormatError
from profiler.model.arrays import Int64Column
from profiler.model.quick_dataclass import dataclass

_COMPRESSED = (spec.PERF_RECORD_COMPRESSED, spec.PERF_RECORD_COMPRESSED2)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RecordIndex:
    """``sample_offsets``: int64, byte offset of every sample in the file, in file order.  ``skipped``: (type, count) of
    records whose type is not known.  ``has_processor_trace``: of Intel PT, SPE or CoreSight.
    ``end``: first byte that was not read; ``is_cut``: more was promised or lay there."""

    sample_offsets: Int64Column
    side_band: SideBand
    skipped: tuple[tuple[int, int], ...]
    has_processor_trace: bool
    end: int
    is_cut: bool


def index_records(source: ByteSource, extent: Section, trailers: Trailers, *, is_unfinished: bool) -> RecordIndex:
    """Walks all records once.

    A finished recording must be made of whole records: ``FormatError`` at the first header that cannot be one.  Of an
    unfinished one everything up to that point is used.
    """
    decoder = SideBandDecoder(source.name, trailers)
    counts: Counter[int] = Counter()
    samples = []
    position, end = extent.offset, min(extent.end, source.size)
    while position < end:
        view = source.window(position, min(WINDOW_BYTES, end - position))
        records, following = _whole_records(view, position)
        if not len(records.start):
            break
        is_sample = (records.header & np.uint64(0xFFFFFFFF)) == np.uint64(spec.PERF_RECORD_SAMPLE)
        samples.append(records.start[is_sample] + position)
        others = records.rows(np.flatnonzero(~is_sample))
        types = (others.header & np.uint64(0xFFFFFFFF)).astype(np.int64)
        _refuse_compressed(source.name, others, types)
        counts.update(dict(zip(*(part.tolist() for part in np.unique(types, return_counts=True)), strict=True)))
        decoder.add(others)
        position = following
    is_cut = position < end or is_unfinished
    if position < end and not is_unfinished:
        from collectors.perf_data.record_walk import no_record_message

        raise FormatError(source.name, no_record_message(source, position, end), position)
    return RecordIndex(
        sample_offsets=np.concatenate(samples) if samples else np.zeros(0, np.int64),
        side_band=decoder.side_band,
        skipped=tuple(sorted((kind, count) for kind, count in counts.items() if kind not in spec.KNOWN_RECORD_TYPES)),
        # The traces themselves are no longer there when a pipe's records have become plain ones.
        has_processor_trace=bool(counts[spec.PERF_RECORD_AUXTRACE_INFO] or counts[spec.PERF_RECORD_AUXTRACE]),
        end=position,
        is_cut=is_cut,
    )


def _whole_records(view: memoryview, base: int) -> tuple[RecordWindow, int]:
    """The records that lie wholly in the view, and the file offset behind the last of them and its payload."""
    start, following = _scan_words(view)
    if following < len(view):
        further, following = _scan_bytes(view, following)
        start = np.concatenate([start, further])
    if (start & 7).any():
        header = np.frombuffer(view, np.uint8)[start[:, None] + np.arange(8)].copy().view("<u8")[:, 0]
    else:
        header = words_of(view)[start >> 3]
    return RecordWindow(view, base, start, header), base + following


def _scan_words(view: memoryview) -> tuple[Int64Column, int]:
    """Byte offsets of whole records up to the first with an odd size or a payload, and the byte behind them."""
    start = record_starts(view)
    header = words_of(view)[start]
    size = (header >> np.uint64(48)).astype(np.int64)
    start *= 8
    has_payload = (header & np.uint64(0xFFFFFFFF)) == np.uint64(spec.PERF_RECORD_AUXTRACE)
    odd = (size & 7 != 0) | (size < spec.RECORD_HEADER_BYTES) | (start + size > len(view)) | has_payload
    count = int(np.argmax(odd)) if odd.any() else len(start)
    return start[:count], int(start[count - 1] + size[count - 1]) if count else 0


def _scan_bytes(view: memoryview, position: int) -> tuple[Int64Column, int]:
    """The same for any sizes, and with the payload that follows AUX area records; slower."""
    starts: list[int] = []
    while position + spec.RECORD_HEADER_BYTES <= len(view):
        size = view[position + 6] | view[position + 7] << 8
        if size < spec.RECORD_HEADER_BYTES or position + size > len(view):
            break
        starts.append(position)
        if view[position] == spec.PERF_RECORD_AUXTRACE and size >= 16 and not any(view[position + 1 : position + 4]):
            size += int.from_bytes(view[position + 8 : position + 16], "little")
        position += size
    return np.array(starts, np.int64), position


def _refuse_compressed(name: str, records: RecordWindow, types: Int64Column) -> None:
    compressed = np.flatnonzero(np.isin(types, _COMPRESSED))
    if len(compressed):
        offset = records.base + int(records.start[int(compressed[0])])
        raise FormatError(name, "a compressed record (perf record -z) although the header says that there are none", offset)
