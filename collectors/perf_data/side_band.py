"""Records beside the samples: mappings, names, forks, losses."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np

from collectors.perf_data import spec
from collectors.perf_data.sample_layout import Trailers
from profiler.errors import FormatError
from profiler.model.arrays import Int64Column, UInt64Column, distinct
from profiler.model.quick_dataclass import dataclass

# Named tuples, not dataclasses: a system-wide recording holds tens of thousands of them, and they cost half to make.


class MmapRecord(NamedTuple):
    """An executable mapping; ``pid`` -1 for the kernel's own.  ``position``: byte offset of the record in the file."""

    time_ns: int
    position: int
    pid: int
    start: int
    length: int
    file_offset: int
    path: str
    build_id: bytes
    is_kernel: bool


class CommRecord(NamedTuple):
    """A thread's new name; ``is_exec`` when the process replaced its program."""

    time_ns: int
    position: int
    pid: int
    tid: int
    name: str
    is_exec: bool


class ForkRecord(NamedTuple):
    """A new thread (``pid == parent_pid``) or process; ``is_synthesized`` for one that was running before: it has not just
    copied its parent's mappings."""

    time_ns: int
    position: int
    pid: int
    tid: int
    parent_pid: int
    parent_tid: int
    is_synthesized: bool


class KernelSymbolRecord(NamedTuple):
    """Kernel code that appeared, or was there when recording began: a BPF program or a trampoline (``type``)."""

    time_ns: int
    position: int
    start: int
    length: int
    type: int
    name: str


@dataclass(slots=True)
class SideBand:
    """What the records beside the samples say, in file order.  ``lost_records``: from PERF_RECORD_LOST, ``lost_samples``:
    from PERF_RECORD_LOST_SAMPLES."""

    mmaps: list[MmapRecord] = field(default_factory=list)
    comms: list[CommRecord] = field(default_factory=list)
    forks: list[ForkRecord] = field(default_factory=list)
    kernel_symbols: list[KernelSymbolRecord] = field(default_factory=list)
    lost_records: int = 0
    lost_samples: int = 0
    throttled: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RecordWindow:
    """Records of one window: ``start`` their byte offsets in ``view``, ``header`` their first words, n each; ``base`` is the
    file offset of the view."""

    view: memoryview
    base: int
    start: Int64Column
    header: UInt64Column

    def of_type(self, number: int) -> RecordWindow:
        chosen = np.flatnonzero((self.header & np.uint64(0xFFFFFFFF)) == np.uint64(number))
        return self.rows(chosen)

    def rows(self, chosen: Int64Column) -> RecordWindow:
        return RecordWindow(self.view, self.base, self.start[chosen], self.header[chosen])

    @property
    def size(self) -> Int64Column:
        """Bytes of each record."""
        return (self.header >> np.uint64(48)).astype(np.int64)

    def words_at(self, at: Int64Column) -> UInt64Column:
        """The word at each byte offset of the view."""
        content = np.frombuffer(self.view, np.uint8)
        words: UInt64Column = content[at[:, None] + np.arange(8)].view("<u8")[:, 0]
        return words


# pid and tid, address, length, file offset
_MMAP_WORDS_AT = (8, 16, 24, 32)
_MMAP_BYTES = 40
_COMM = struct.Struct("<IHHii")
_FORK = struct.Struct("<IHHiiiiQ")
_KSYMBOL = struct.Struct("<IHHQIHH")
_LOST = struct.Struct("<QQQ")
_LOST_SAMPLES = struct.Struct("<QQ")
_MMAP2_PROT_AT = 64
_MMAP2_PATH_AT = 72
_MMAP2_BUILD_ID_AT = 40


class SideBandDecoder:
    """Collects the side band of one recording, window by window."""

    def __init__(self, name: str, trailers: Trailers) -> None:
        self.side_band = SideBand()
        self._name = name
        self._trailers = trailers
        self._texts: dict[bytes, str] = {}
        self._decoders: tuple[tuple[int, Callable[[RecordWindow], None]], ...] = (
            (spec.PERF_RECORD_MMAP, self._mmaps),
            (spec.PERF_RECORD_MMAP2, self._mmap2s),
            (spec.PERF_RECORD_COMM, self._comms),
            (spec.PERF_RECORD_FORK, self._forks),
            (spec.PERF_RECORD_KSYMBOL, self._kernel_symbols),
            (spec.PERF_RECORD_LOST, self._lost),
            (spec.PERF_RECORD_LOST_SAMPLES, self._lost_samples),
        )

    def add(self, records: RecordWindow) -> None:
        """Decodes the records of one window; ``FormatError`` for one that is too short for its type."""
        for number, decode in self._decoders:
            chosen = records.of_type(number)
            if len(chosen.start):
                decode(chosen)
        self.side_band.throttled += len(records.of_type(spec.PERF_RECORD_THROTTLE).start)

    def _mmaps(self, records: RecordWindow) -> None:
        is_data = (records.header >> np.uint64(32)) & np.uint64(spec.PERF_RECORD_MISC_MMAP_DATA) != 0
        self._add_mmaps(records.rows(np.flatnonzero(~is_data)), _MMAP_BYTES)

    def _mmap2s(self, records: RecordWindow) -> None:
        long_enough = records.size >= _MMAP2_PATH_AT
        prot = records.words_at(np.where(long_enough, records.start + _MMAP2_PROT_AT, 0)) & np.uint64(0xFFFFFFFF)
        # Linux 3.12 to 3.15, and distributions' kernels made from them, wrote no protection: its place holds the path.
        has_prot = (prot & spec.PROT_UNUSED == 0) | ~long_enough
        # Recordings with stack dumps list every data mapping too; the short ones are kept for the error message.
        is_code = (prot & spec.PROT_EXEC != 0) | ~long_enough
        self._add_mmaps(records.rows(np.flatnonzero(has_prot & is_code)), _MMAP2_PATH_AT)
        is_data = (records.header >> np.uint64(32)) & np.uint64(spec.PERF_RECORD_MISC_MMAP_DATA) != 0
        self._add_mmaps(records.rows(np.flatnonzero(~has_prot & ~is_data)), _MMAP2_PROT_AT)

    def _add_mmaps(self, records: RecordWindow, path_at: int) -> None:
        """Column by column: of thousands of processes there are tens of thousands of mappings."""
        if not len(records.start):
            return
        starts, times, text_ends = zip(*self._with_trailers(records, path_at), strict=True)
        ids, address, length, file_offset = (records.words_at(records.start + at) for at in _MMAP_WORDS_AT)
        pids = (ids & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32)
        mode = (records.header >> np.uint64(32)) & np.uint64(spec.PERF_RECORD_MISC_CPUMODE_MASK)
        is_kernel = (mode == np.uint64(spec.PERF_RECORD_MISC_KERNEL)) | (pids == -1)
        view = records.view
        columns = (
            times,
            (records.start + records.base).tolist(),
            *(column.tolist() for column in (pids, address, length, file_offset)),
            [self._text(view, start + path_at, end) for start, end in zip(starts, text_ends, strict=True)],
            _build_ids(records, starts),
            is_kernel.tolist(),
        )
        self.side_band.mmaps.extend(map(MmapRecord._make, zip(*columns, strict=True)))

    def _comms(self, records: RecordWindow) -> None:
        for start, time_ns, text_end in self._with_trailers(records, _COMM.size):
            _, misc, _, pid, tid = _COMM.unpack_from(records.view, start)
            name = self._text(records.view, start + _COMM.size, text_end)
            is_exec = bool(misc & spec.PERF_RECORD_MISC_COMM_EXEC)
            self.side_band.comms.append(CommRecord(time_ns, records.base + start, pid, tid, name, is_exec))

    def _forks(self, records: RecordWindow) -> None:
        for start, time_ns, _ in self._with_trailers(records, _FORK.size):
            _, misc, _, pid, parent_pid, tid, parent_tid, forked_at = _FORK.unpack_from(records.view, start)
            # perf before 4.20 has no flag for records it made up itself, but gives them no time.
            is_synthesized = bool(misc & spec.PERF_RECORD_MISC_FORK_EXEC) or forked_at == 0
            position = records.base + start
            self.side_band.forks.append(ForkRecord(time_ns, position, pid, tid, parent_pid, parent_tid, is_synthesized))

    def _kernel_symbols(self, records: RecordWindow) -> None:
        for start, time_ns, text_end in self._with_trailers(records, _KSYMBOL.size):
            _, _, _, address, length, kind, flags = _KSYMBOL.unpack_from(records.view, start)
            if flags & spec.PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER:
                continue
            name = self._text(records.view, start + _KSYMBOL.size, text_end)
            position = records.base + start
            self.side_band.kernel_symbols.append(KernelSymbolRecord(time_ns, position, address, length, kind, name))

    def _lost(self, records: RecordWindow) -> None:
        self._check(records, _LOST.size)
        for start in records.start.tolist():
            self.side_band.lost_records += _LOST.unpack_from(records.view, start)[2]

    def _lost_samples(self, records: RecordWindow) -> None:
        self._check(records, _LOST_SAMPLES.size)
        for start in records.start.tolist():
            self.side_band.lost_samples += _LOST_SAMPLES.unpack_from(records.view, start)[1]

    def _check(self, records: RecordWindow, needed: int) -> None:
        short = np.flatnonzero(records.size < needed)
        if len(short):
            start, size = int(records.start[short[0]]), int(records.size[short[0]])
            kind = int(records.header[short[0]] & np.uint64(0xFFFFFFFF))
            message = f"record of type {kind} with {size} bytes, at least {needed} needed"
            raise FormatError(self._name, message, records.base + start)

    def _with_trailers(self, records: RecordWindow, needed: int) -> Iterator[tuple[int, int, int]]:
        """(start, time, end of the record's own content) of records that have at least ``needed`` bytes.  In recordings
        without times the position in the file stands for it."""
        self._check(records, needed)
        size_bytes, time_at = self._trailer_places(records)
        end = records.start + np.maximum(spec.RECORD_HEADER_BYTES, records.size - size_bytes)
        has_time = (time_at >= 0) & (end + size_bytes == records.start + records.size)
        time_ns = np.zeros(len(end), np.uint64) if self._trailers.has_time else (records.base + records.start).astype(np.uint64)
        time_ns[has_time] = records.words_at((end + time_at)[has_time])
        return zip(records.start.tolist(), time_ns.tolist(), end.tolist(), strict=True)

    def _trailer_places(self, records: RecordWindow) -> tuple[Int64Column, Int64Column]:
        """(bytes, place of the time stamp or -1) of each record's trailer."""
        trailers = self._trailers
        size_bytes = np.full(len(records.start), trailers.default.size_bytes)
        time_at = np.full(len(records.start), trailers.default.time_at)
        if trailers.by_id:
            id_at = records.size - 8 * trailers.id_from_end
            known = np.flatnonzero(id_at >= spec.RECORD_HEADER_BYTES)
            ids = records.words_at((records.start + id_at)[known])
            for number in distinct(ids).tolist():
                layout = trailers.by_id.get(number, trailers.default)
                size_bytes[known[ids == number]], time_at[known[ids == number]] = layout.size_bytes, layout.time_at
        return size_bytes, time_at

    def _text(self, view: memoryview, start: int, end: int) -> str:
        raw = bytes(view[start : max(start, end)])
        text = self._texts.get(raw)
        if text is None:
            text = self._texts[raw] = raw.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        return text


def _build_ids(mmaps: RecordWindow, starts: Sequence[int]) -> list[bytes]:
    """The build ID that each mapping record holds, b"" for none."""
    found = [b""] * len(starts)
    is_mmap2 = (mmaps.header & np.uint64(0xFFFFFFFF)) == np.uint64(spec.PERF_RECORD_MMAP2)
    has_flag = (mmaps.header >> np.uint64(32)) & np.uint64(spec.PERF_RECORD_MISC_MMAP_BUILD_ID) != 0
    for row in np.flatnonzero(is_mmap2 & has_flag).tolist():
        at = starts[row] + _MMAP2_BUILD_ID_AT
        length = min(mmaps.view[at], 20)
        found[row] = bytes(mmaps.view[at + 4 : at + 4 + length])
    return found
