"""User registers, stack dumps and mappings straight from a perf.data file, for tests of the unwinder.

Reads what `perf record --call-graph dwarf` writes in file mode for one event, following the layout in perf_event_open(2), and
parses the text of `perf script` beside it.  Slow and strict on purpose.
"""

from __future__ import annotations

import re
import struct
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from profiler.model.arrays import Int32Column, Int64Column, UInt64Column
from symbolize.unwind.unwinder import StackDumps

SAMPLE_IP, SAMPLE_TID, SAMPLE_TIME, SAMPLE_ADDR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
SAMPLE_CALLCHAIN, SAMPLE_ID, SAMPLE_CPU, SAMPLE_PERIOD = 1 << 5, 1 << 6, 1 << 7, 1 << 8
SAMPLE_STREAM_ID, SAMPLE_REGS_USER, SAMPLE_STACK_USER, SAMPLE_IDENTIFIER = 1 << 9, 1 << 12, 1 << 13, 1 << 16
# perf's x86 register numbers (arch/x86/include/uapi/asm/perf_regs.h) -> DWARF numbers.
DWARF_NUMBERS = {0: 0, 1: 3, 2: 2, 3: 1, 4: 4, 5: 5, 6: 6, 7: 7, 8: 16} | {16 + k: 8 + k for k in range(8)}
FIRST_KERNEL_ADDRESS = 1 << 47


@dataclass(frozen=True)
class Mapping:
    start: int
    end: int
    file_offset: int
    path: str


@dataclass(frozen=True)
class UserSample:
    """``registers``: by DWARF number; empty when none were recorded.  ``dump_at``: byte in the file."""

    time: int
    pid: int
    registers: dict[int, int]
    dump_at: int
    dump_bytes: int


@dataclass
class DwarfRecording:
    """``samples`` in perf script's order, with the address space (index in ``spaces``) of each."""

    data: bytes
    samples: list[UserSample] = field(default_factory=list)
    sample_space: list[int] = field(default_factory=list)
    spaces: list[tuple[Mapping, ...]] = field(default_factory=list)

    @cached_property
    def paths(self) -> list[str]:
        """DSO rows."""
        return sorted({mapping.path for space in self.spaces for mapping in space})

    def unwindable(self) -> list[int]:
        return [row for row, sample in enumerate(self.samples) if sample.registers and sample.dump_bytes]

    def dumps(self, rows: list[int]) -> StackDumps:
        registers = np.zeros((len(rows), 17), np.uint64)
        for at, row in enumerate(rows):
            for number, value in self.samples[row].registers.items():
                registers[at, number] = value
        return StackDumps(
            registers=registers,
            has_register=np.array([all(k in self.samples[row].registers for row in rows) for k in range(17)]),
            words=np.frombuffer(self.data, "<u8", len(self.data) // 8),
            dump_start=np.array([self.samples[row].dump_at // 8 for row in rows], np.int64),
            dump_bytes=np.array([self.samples[row].dump_bytes for row in rows], np.int64),
            address_space=np.array([self.sample_space[row] for row in rows], np.int64),
        )

    def resolve(self, address_space: Int64Column, runtime_address: UInt64Column) -> tuple[Int32Column, UInt64Column]:
        """The AddressMap protocol; DSO rows are positions in ``paths``."""
        paths = {path: row for row, path in enumerate(self.paths)}
        dso = np.full(len(runtime_address), -1, np.int32)
        offset = runtime_address.copy()
        for space in np.unique(address_space).tolist():
            for mapping in self.spaces[space]:
                inside = (address_space == space) & (runtime_address >= np.uint64(mapping.start))
                inside &= runtime_address < np.uint64(mapping.end)
                dso[inside] = paths[mapping.path]
                offset[inside] = runtime_address[inside] - np.uint64(mapping.start) + np.uint64(mapping.file_offset)
        return dso, offset


def read_dwarf_recording(path: Path) -> DwarfRecording:
    data = path.read_bytes()
    assert data[:8] == b"PERFILE2"
    _, attribute_size, attributes_at, _, data_at, data_size = struct.unpack_from("<6Q", data, 8)
    assert attribute_size >= 112
    sample_type = struct.unpack_from("<Q", data, attributes_at + 24)[0]
    register_mask = struct.unpack_from("<Q", data, attributes_at + 80)[0]
    events = []
    position = data_at
    while position < data_at + data_size:
        kind, misc, size = struct.unpack_from("<IHH", data, position)
        event = _event(data, position, kind, misc, size, sample_type, register_mask)
        if event is not None:
            events.append((event[0], position, event))
        position += size
    events.sort(key=lambda item: item[:2])
    return _replayed(data, [event for _, _, event in events])


def _event(data: bytes, at: int, kind: int, misc: int, size: int, sample_type: int, mask: int) -> tuple | None:
    if kind == 9:
        sample = _sample(data, at, sample_type, mask)
        return (sample.time, "sample", sample)
    time = struct.unpack_from("<Q", data, at + size - 8 * _trailer_words_from_time(sample_type))[0]
    if kind == 10:  # MMAP2
        pid, _, start, length, file_offset = struct.unpack_from("<IIQQQ", data, at + 8)
        protection = struct.unpack_from("<I", data, at + 64)[0]
        path = data[at + 72 : data.index(b"\0", at + 72)].decode()
        return (time, "map", pid, Mapping(start, start + length, file_offset, path)) if protection & 4 else None
    if kind == 3 and misc & 0x2000:  # COMM by exec
        return (time, "exec", struct.unpack_from("<I", data, at + 8)[0])
    if kind == 7:  # FORK
        pid, parent = struct.unpack_from("<II", data, at + 8)
        return (time, "fork", pid, parent)
    return None


def _trailer_words_from_time(sample_type: int) -> int:
    later = SAMPLE_TIME, SAMPLE_ID, SAMPLE_STREAM_ID, SAMPLE_CPU, SAMPLE_IDENTIFIER
    return sum(bool(sample_type & bit) for bit in later)


def _sample(data: bytes, at: int, sample_type: int, mask: int) -> UserSample:
    word = at + 8

    def take() -> int:
        nonlocal word
        word += 8
        return int(struct.unpack_from("<Q", data, word - 8)[0])

    fields: dict[int, int] = {}
    order = SAMPLE_IDENTIFIER, SAMPLE_IP, SAMPLE_TID, SAMPLE_TIME, SAMPLE_ADDR, SAMPLE_ID, SAMPLE_STREAM_ID, SAMPLE_CPU
    for bit in (*order, SAMPLE_PERIOD):
        if sample_type & bit:
            fields[bit] = take()
    if sample_type & SAMPLE_CALLCHAIN:
        entries = take()
        word += 8 * entries
    assert sample_type & SAMPLE_REGS_USER
    assert sample_type & SAMPLE_STACK_USER
    registers: dict[int, int] = {}
    if take():
        for bit in range(64):
            if mask >> bit & 1:
                value = take()
                if bit in DWARF_NUMBERS:
                    registers[DWARF_NUMBERS[bit]] = value
    size = take()
    dump_at = word
    word += size
    return UserSample(fields[SAMPLE_TIME], fields[SAMPLE_TID] & 0xFFFFFFFF, registers, dump_at, take() if size else 0)


def _replayed(data: bytes, events: list[tuple]) -> DwarfRecording:
    recording = DwarfRecording(data)
    tables: dict[int, tuple[Mapping, ...]] = {}
    numbers: dict[tuple[Mapping, ...], int] = {}
    for event in events:
        if event[1] == "map":
            tables[event[2]] = (*tables.get(event[2], ()), event[3])
        elif event[1] == "exec":
            tables[event[2]] = ()
        elif event[1] == "fork" and event[2] != event[3]:
            tables[event[2]] = tables.get(event[3], ())
        elif event[1] == "sample":
            table = tables.get(event[2].pid, ())
            if table not in numbers:
                numbers[table] = len(recording.spaces)
                recording.spaces.append(table)
            recording.samples.append(event[2])
            recording.sample_space.append(numbers[table])
    return recording


@dataclass(frozen=True)
class ScriptFrame:
    address: int
    symbol: str
    dso: str


def perf_script(perf: str, path: Path) -> list[list[ScriptFrame]]:
    """The user frames of every sample as perf prints them, leaf first, in perf's order."""
    command = [perf, "script", "-i", str(path), "-F", "tid,time,ip,sym,dso", "--no-inline", "--ns", "--show-kernel-path"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=True)
    stacks: list[list[ScriptFrame]] = []
    is_open = False
    for line in done.stdout.splitlines():
        if not line.strip():
            is_open = False
        elif not is_open:
            stacks.append([])
            is_open = True
        else:
            match = re.match(r"\s*([0-9a-f]+) (.*) \((.*)\)$", line)
            assert match, line
            stacks[-1].append(ScriptFrame(int(match[1], 16), match[2], match[3]))
    return [_user_frames(frames) for frames in stacks]


def _user_frames(frames: list[ScriptFrame]) -> list[ScriptFrame]:
    user = [frame for frame in frames if frame.address < FIRST_KERNEL_ADDRESS or frame.address == 2**64 - 1]
    while user and user[-1].address == 2**64 - 1:  # perf's mark of an unwinding that failed, not a frame
        user.pop()
    return user
