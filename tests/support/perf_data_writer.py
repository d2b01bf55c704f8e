"""An encoder of perf.data files for tests, written from the format's documentation and sharing nothing with the reader.

Sources: ``tools/perf/Documentation/perf.data-file-format.txt`` and ``include/uapi/linux/perf_event.h``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCH_STACK, REGS_USER, STACK_USER, WEIGHT = (
    1 << bit for bit in range(15)
)
DATA_SRC, IDENTIFIER, TRANSACTION, REGS_INTR, PHYS_ADDR, AUX, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE, WEIGHT_STRUCT = (
    1 << bit for bit in range(15, 25)
)
KERNEL_MARKER, USER_MARKER, GUEST_KERNEL_MARKER = 2**64 - 128, 2**64 - 512, 2**64 - 2176
HW_INDEX = 1 << 17
CALL_STACK = 1 << 11
EXCLUDE_USER, EXCLUDE_KERNEL, EXCLUDE_HV, PRECISE, EXCLUDE_HOST, EXCLUDE_GUEST = (1 << bit for bit in (4, 5, 6, 15, 19, 20))
FIRST_ID = 100
USUAL = IDENTIFIER | IP | TID | TIME | CPU | PERIOD | CALLCHAIN


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *(value & (2**64 - 1) for value in values))


def text(value: bytes, multiple: int = 8) -> bytes:
    """NUL-terminated and padded."""
    return value + b"\0" * (multiple - len(value) % multiple)


def feature_string(value: str) -> bytes:
    raw = text(value.encode(), 64)
    return struct.pack("<I", len(raw)) + raw


def feature_strings(values: Sequence[str]) -> bytes:
    return struct.pack("<I", len(values)) + b"".join(feature_string(value) for value in values)


def build_id_entry(path: bytes, build_id: bytes, misc: int = 2 | 1 << 15) -> bytes:
    name = text(path)
    return struct.pack("<IHHi20sB3x", 67, misc, 36 + len(name), -1, build_id, len(build_id)) + name


@dataclass(frozen=True)
class EventSpec:
    """An event to be written; sample ids are given by the writer."""

    sample_type: int = USUAL
    read_format: int = 0
    period: int = 1000
    is_frequency: bool = False
    is_inherited: bool = True
    type: int = 1
    config: int = 0
    branch_sample_type: int = 0
    user_registers: int = 0
    user_stack: int = 0
    interrupt_registers: int = 0
    sample_id_all: bool = True
    flags: int = EXCLUDE_GUEST
    attribute_bytes: int = 136

    def encoded(self) -> bytes:
        flags = self.is_inherited << 1 | self.is_frequency << 10 | self.sample_id_all << 18 | self.flags | 1 << 23 | 1 << 24
        whole = struct.pack(
            "<IIQQQQQIIQQQQIiQIHHIIQ",
            self.type, self.attribute_bytes, self.config, self.period, self.sample_type, self.read_format, flags, 0, 0, 0, 0,
            self.branch_sample_type, self.user_registers, self.user_stack, 0, self.interrupt_registers, 0, 0, 0, 0, 0, 0,
        )  # fmt: skip
        return whole.ljust(self.attribute_bytes, b"\xee")[: self.attribute_bytes]


@dataclass(frozen=True)
class Sample:
    """Values of one sample; only what the event's ``sample_type`` names is written.  ``tail``: appended as it is."""

    ip: int = 0x401000
    pid: int = 10
    tid: int = 10
    time: int = 1000
    cpu: int = 0
    period: int = 1000
    addr: int = 0
    chain: Sequence[int] = ()
    read: Sequence[int] = ()
    raw: bytes = b""
    branches: Sequence[tuple[int, int, int]] = ()
    registers: Sequence[int] | None = None
    stack: bytes = b""
    dynamic_size: int | None = None
    interrupt_registers: Sequence[int] | None = None
    aux: bytes = b""
    misc: int = 2
    sample_id: int | None = None
    tail: bytes = b""


@dataclass
class RecordingWriter:
    """Collects records; ``build`` puts the file together.  ``features``: section content by feature bit."""

    events: Sequence[EventSpec] = (EventSpec(),)
    features: Mapping[int, bytes] = field(default_factory=dict)
    records: list[bytes] = field(default_factory=list)

    def ids(self, event: int) -> tuple[int, ...]:
        return (FIRST_ID + 10 * event, FIRST_ID + 10 * event + 1)

    def record(self, kind: int, misc: int, payload: bytes) -> None:
        self.records.append(struct.pack("<IHH", kind, misc, 8 + len(payload)) + payload)

    def _trailer(self, pid: int, tid: int, time: int) -> bytes:
        event = self.events[0]
        if not event.sample_id_all:
            return b""
        fields = ((TID, tid << 32 | pid), (TIME, time), (ID, self.ids(0)[0]), (STREAM_ID, 0), (CPU, 0))
        present = [value for bit, value in fields if event.sample_type & bit]
        return words(*present, *([self.ids(0)[0]] if event.sample_type & IDENTIFIER else []))

    def side_band(self, kind: int, misc: int, payload: bytes, pid: int, time: int) -> None:
        self.record(kind, misc, payload + self._trailer(pid & 0xFFFFFFFF, pid & 0xFFFFFFFF, time))

    def mmap(self, pid: int, start: int, length: int, offset: int, path: bytes, time: int = 0, misc: int = 2) -> None:
        self.side_band(1, misc, struct.pack("<iiQQQ", pid, pid, start, length, offset) + text(path), pid, time)

    def mmap2(
        self, pid: int, start: int, length: int, offset: int, path: bytes, time: int = 0, prot: int = 5, build_id: bytes = b""
    ) -> None:
        identity = struct.pack("<B3x20s", len(build_id), build_id) if build_id else struct.pack("<IIQQ", 8, 1, 77, 0)
        payload = struct.pack("<iiQQQ", pid, pid, start, length, offset) + identity + struct.pack("<II", prot, 2)
        self.side_band(10, 2 | (1 << 14 if build_id else 0), payload + text(path), pid, time)

    def mmap2_without_protection(self, pid: int, start: int, length: int, offset: int, path: bytes, time: int = 0) -> None:
        """As Linux 3.12 to 3.15 wrote it."""
        payload = struct.pack("<iiQQQ", pid, pid, start, length, offset) + struct.pack("<IIQQ", 8, 1, 77, 0)
        self.side_band(10, 2, payload + text(path), pid, time)

    def kernel_symbol(self, start: int, length: int, name: bytes, kind: int = 1, flags: int = 0, time: int = 0) -> None:
        self.side_band(17, 0, struct.pack("<QIHH", start, length, kind, flags) + text(name), 0, time)

    def comm(self, pid: int, tid: int, name: bytes, time: int = 0, is_exec: bool = False) -> None:
        self.side_band(3, 1 << 13 if is_exec else 0, struct.pack("<ii", pid, tid) + text(name), pid, time)

    def fork(self, pid: int, tid: int, parent_pid: int, parent_tid: int, time: int, misc: int = 0) -> None:
        self.side_band(7, misc, struct.pack("<iiiiQ", pid, parent_pid, tid, parent_tid, time), pid, time)

    def exit(self, pid: int, tid: int, time: int) -> None:
        self.side_band(4, 0, struct.pack("<iiiiQ", pid, 1, tid, 1, time), pid, time)

    def lost(self, count: int) -> None:
        self.side_band(2, 0, words(self.ids(0)[0], count), 0, 0)

    def lost_samples(self, count: int) -> None:
        self.side_band(13, 0, words(count), 0, 0)

    def throttle(self) -> None:
        self.side_band(5, 0, words(1, 2, 3), 0, 0)

    def finished_round(self) -> None:
        self.record(68, 0, b"")

    def sample(self, sample: Sample, event: int = 0) -> None:
        spec = self.events[event]
        number = self.ids(event)[0] if sample.sample_id is None else sample.sample_id
        self.record(9, sample.misc, encoded_sample(sample, spec, number) + sample.tail)

    def build(self, data_size: int | None = None) -> bytes:
        """The file; ``data_size`` overrides what the header says of the data section."""
        entry_bytes = self.events[0].attribute_bytes + 16
        ids_at = 104
        attributes_at = ids_at + 16 * len(self.events)
        data_at = attributes_at + entry_bytes * len(self.events)
        data = b"".join(self.records)
        ids = b"".join(words(*self.ids(row)) for row in range(len(self.events)))
        attributes = b"".join(spec.encoded() + words(ids_at + 16 * row, 16) for row, spec in enumerate(self.events))
        bitmap = sum(1 << bit for bit in self.features).to_bytes(32, "little")
        size = len(data) if data_size is None else data_size
        header = b"PERFILE2" + words(104, entry_bytes, attributes_at, len(attributes), data_at, size, 0, 0) + bitmap
        return header + ids + attributes + data + self._feature_part(data_at + len(data))

    def _feature_part(self, at: int) -> bytes:
        contents = [self.features[bit] for bit in sorted(self.features)]
        position, table = at + 16 * len(contents), b""
        for content in contents:
            table += words(position, len(content))
            position += len(content)
        return table + b"".join(contents)


def encoded_sample(sample: Sample, spec: EventSpec, number: int) -> bytes:
    """The body of a PERF_RECORD_SAMPLE."""
    kind = spec.sample_type
    fixed = (
        (IDENTIFIER, number), (IP, sample.ip), (TID, (sample.tid & 0xFFFFFFFF) << 32 | sample.pid & 0xFFFFFFFF),
        (TIME, sample.time), (ADDR, sample.addr), (ID, number), (STREAM_ID, number), (CPU, sample.cpu), (PERIOD, sample.period),
    )  # fmt: skip
    body = words(*(value for bit, value in fixed if kind & bit))
    if kind & READ:
        body += words(*sample.read)
    if kind & CALLCHAIN:
        body += words(len(sample.chain), *sample.chain)
    if kind & RAW:
        body += struct.pack("<I", len(sample.raw)) + sample.raw + b"\0" * (-(4 + len(sample.raw)) % 8)
    if kind & BRANCH_STACK:
        index = [5] if spec.branch_sample_type & HW_INDEX else []
        body += words(len(sample.branches), *index, *(value for branch in sample.branches for value in branch))
    if kind & REGS_USER:
        body += words(0) if sample.registers is None else words(2, *sample.registers)
    if kind & STACK_USER:
        body += words(len(sample.stack)) + sample.stack
        if sample.stack:
            body += words(len(sample.stack) if sample.dynamic_size is None else sample.dynamic_size)
    body += words(*(0x11 for bit in (WEIGHT | WEIGHT_STRUCT, DATA_SRC, TRANSACTION) if kind & bit))
    if kind & REGS_INTR:
        body += words(0) if sample.interrupt_registers is None else words(2, *sample.interrupt_registers)
    body += words(*(0x22 for bit in (PHYS_ADDR, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE) if kind & bit))
    if kind & AUX:
        body += words(len(sample.aux)) + sample.aux
    return body
