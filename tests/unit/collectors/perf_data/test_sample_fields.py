"""Samples come back as they were encoded, whatever combination of fields the event has."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.perf_data.reader import Chunk, open_recording
from support import perf_data_writer as writer
from support.perf_data_writer import EventSpec, RecordingWriter, Sample

U64 = st.integers(0, 2**64 - 1)
REGISTER_MASK = 0b1_0000_0000_0000_0001_1100_0010  # 4 + 1 + 0: bits 1, 6, 7, 8, 24
OPTIONAL = [
    writer.IP, writer.TID, writer.TIME, writer.ADDR, writer.READ, writer.CALLCHAIN, writer.ID, writer.CPU, writer.PERIOD,
    writer.STREAM_ID, writer.RAW, writer.BRANCH_STACK, writer.REGS_USER, writer.STACK_USER, writer.WEIGHT, writer.DATA_SRC,
    writer.IDENTIFIER, writer.TRANSACTION, writer.REGS_INTR, writer.PHYS_ADDR, writer.AUX, writer.CGROUP,
    writer.DATA_PAGE_SIZE, writer.CODE_PAGE_SIZE, writer.WEIGHT_STRUCT,
]  # fmt: skip


@st.composite
def samples(draw: st.DrawFn, registers: int) -> Sample:
    stack = draw(st.sampled_from([b"", bytes(range(64)), bytes(256)]))
    return Sample(
        ip=draw(U64),
        pid=draw(st.integers(0, 2**31 - 1)),
        tid=draw(st.integers(0, 2**31 - 1)),
        time=draw(U64),
        cpu=draw(st.integers(0, 4095)),
        period=draw(U64),
        chain=draw(st.lists(U64, max_size=6)),
        read=draw(st.lists(U64, min_size=2, max_size=2)),
        raw=draw(st.binary(max_size=21)),
        branches=draw(st.lists(st.tuples(U64, U64, U64), max_size=3)),
        registers=draw(st.none() | st.lists(U64, min_size=registers, max_size=registers)),
        stack=stack,
        dynamic_size=draw(st.integers(0, len(stack))),
        interrupt_registers=draw(st.none() | st.lists(U64, min_size=2, max_size=2)),
        aux=draw(st.sampled_from([b"", bytes(16)])),
    )


@st.composite
def recordings(draw: st.DrawFn) -> tuple[EventSpec, list[Sample]]:
    event = EventSpec(
        sample_type=sum(draw(st.sets(st.sampled_from(OPTIONAL)))),
        read_format=4,
        branch_sample_type=draw(st.sampled_from([0, writer.HW_INDEX])),
        user_registers=REGISTER_MASK,
        user_stack=256,
        interrupt_registers=3,
    )
    return event, draw(st.lists(samples(REGISTER_MASK.bit_count()), min_size=1, max_size=5))


def chunks_of(content: bytes) -> list[Chunk]:
    recording = open_recording(io.BytesIO(content), "test.data")
    return list(recording.chunks(recording.index()))


@given(recordings())
def test_every_combination_of_fields_round_trips(recording: tuple[EventSpec, list[Sample]]) -> None:
    event, written = recording
    content = RecordingWriter([event])
    for sample in written:
        content.sample(sample)
    (chunk,) = chunks_of(content.build())
    fields, kind = chunk.fields, event.sample_type
    assert fields.mismatched == 0
    assert not fields.is_damaged.any()
    expected = {
        writer.IP: (fields.ip, [s.ip for s in written]),
        writer.TID: (fields.process_thread, [s.tid << 32 | s.pid for s in written]),
        writer.TIME: (fields.time_ns, [s.time for s in written]),
        writer.CPU: (fields.cpu, [s.cpu for s in written]),
        writer.PERIOD: (fields.period, [s.period for s in written]),
    }
    for bit, (column, values) in expected.items():
        assert not kind & bit or column.tolist() == values
    for row, sample in enumerate(written):
        check_variable_fields(chunk, row, sample, kind)


def check_variable_fields(chunk: Chunk, row: int, sample: Sample, kind: int) -> None:
    fields = chunk.fields
    start, length = int(fields.chain_start[row]), int(fields.chain_length[row])
    assert fields.words[start : start + length].tolist() == (list(sample.chain) if kind & writer.CALLCHAIN else [])
    registers = int(fields.registers_start[row])
    if kind & writer.REGS_USER and sample.registers is not None:
        assert fields.words[registers : registers + len(sample.registers)].tolist() == list(sample.registers)
    else:
        assert registers == -1
    valid_bytes = int(fields.dump_bytes[row])
    if kind & writer.STACK_USER and sample.stack:
        assert valid_bytes == sample.dynamic_size
        start = int(fields.dump_start[row])
        assert fields.words[start : start + len(sample.stack) // 8].tobytes() == sample.stack
    else:
        assert valid_bytes == 0
    if kind & writer.READ:
        assert fields.words[fields.read_start[row] : fields.read_end[row]].tolist() == list(sample.read)


@pytest.mark.parametrize(
    ("read_format", "read"),
    [
        (0, (7,)),
        (1 | 2 | 4 | 16, (7, 1, 2, 100, 3)),
        (8 | 4 | 16, (2, 7, 100, 1, 8, 110, 2)),
        (8 | 1 | 2 | 4, (2, 50, 60, 7, 100, 8, 110)),
        (8, (3, 7, 8, 9)),
    ],
)
def test_the_callchain_behind_counters_of_any_read_format(read_format: int, read: tuple[int, ...]) -> None:
    content = RecordingWriter([EventSpec(sample_type=writer.USUAL | writer.READ, read_format=read_format)])
    content.sample(Sample(read=read, chain=(1, 2, 3)))
    (chunk,) = chunks_of(content.build())
    start = int(chunk.fields.chain_start[0])
    assert chunk.fields.words[start : start + 3].tolist() == [1, 2, 3]
    assert chunk.fields.mismatched == 0


def test_longer_and_shorter_records_are_counted_and_the_fixed_fields_kept() -> None:
    content = RecordingWriter()
    content.sample(Sample(ip=1, chain=(5, 6), tail=writer.words(9)))
    content.sample(Sample(ip=2, chain=(5, 6)))
    content.records[-1] = (
        content.records[-1][:6] + (len(content.records[-1]) - 8).to_bytes(2, "little") + content.records[-1][8:-8]
    )
    content.sample(Sample(ip=3, chain=(7,)))
    (chunk,) = chunks_of(content.build())
    assert chunk.fields.mismatched == 2
    assert chunk.fields.ip.tolist() == [1, 2, 3]
    assert chunk.fields.chain_length.tolist() == [2, 0, 1]
    assert chunk.fields.is_damaged.tolist() == [False, True, False]


@pytest.mark.parametrize("count", [2**63, 2**64 - 1, 2**32, 200])
def test_counts_beyond_the_record_are_damage_not_memory(count: int) -> None:
    content = RecordingWriter([EventSpec(sample_type=writer.USUAL | writer.STACK_USER)])
    content.sample(Sample(chain=(1, 2), stack=bytes(32)))
    body = content.records[0]
    at = body.index(writer.words(2, 1, 2))
    content.records[0] = body[:at] + writer.words(count) + body[at + 8 :]
    (chunk,) = chunks_of(content.build())
    assert chunk.fields.is_damaged.tolist() == [True]
    assert chunk.fields.chain_length.tolist() == [0]
    assert chunk.fields.dump_bytes.tolist() == [0]


def test_fields_of_unknown_sample_bits_are_passed_over() -> None:
    content = RecordingWriter([EventSpec(sample_type=writer.USUAL | 1 << 30)])
    content.sample(Sample(chain=(5,), tail=writer.words(1, 2)))
    (chunk,) = chunks_of(content.build())
    assert chunk.fields.mismatched == 0
    assert chunk.fields.chain_length.tolist() == [1]


def test_rows_of_a_chunk() -> None:
    content = RecordingWriter()
    for ip in (1, 2, 3):
        content.sample(Sample(ip=ip))
    (chunk,) = chunks_of(content.build())
    chosen = chunk.rows(np.array([True, False, True]))
    assert chosen.fields.ip.tolist() == [1, 3]
    assert chosen.position.tolist() == chunk.position[[0, 2]].tolist()
