"""Pipe mode: the same facts as in a file, whatever records, payloads and sizes lie between."""

from __future__ import annotations

import io
import os
import struct

import pytest

from collectors.perf_data.reader import Recording, open_recording
from profiler.errors import FormatError
from support import container_writer as containers
from support import perf_data_writer as writer
from support.container_writer import PIPE_HEADER, record
from support.perf_data_writer import EventSpec, RecordingWriter, Sample

FEATURES = {
    2: writer.build_id_entry(b"/bin/prog", bytes(range(20)))
    + writer.build_id_entry(b"[kernel.kallsyms]", b"k" * 20, 1 | 1 << 15),
    3: writer.feature_string("host-1"),
    4: writer.feature_string("6.1.0"),
    7: struct.pack("<II", 8, 4),
    11: writer.feature_strings(["perf", "record", "-o", "-", "--", "./prog"]),
}


def opened(content: bytes) -> Recording:
    return open_recording(io.BytesIO(content), "p.data")


def ips(recording: Recording) -> list[int]:
    return [ip for chunk in recording.chunks(recording.index()) for ip in chunk.fields.ip.tolist()]


def small_recording(events: int = 1) -> RecordingWriter:
    content = RecordingWriter([EventSpec(config=row) for row in range(events)], features=FEATURES)
    content.comm(10, 10, b"prog")
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog")
    for row in range(6):
        content.sample(Sample(ip=row, time=row, chain=(writer.USER_MARKER, 0x400010)), event=row % events)
    content.finished_round()
    return content


@pytest.mark.parametrize("events", [1, 3])
def test_the_same_recording_as_in_a_file(events: int) -> None:
    content = small_recording(events)
    piped, in_file = opened(containers.pipe_mode(content)), opened(content.build())
    assert piped.attributes == in_file.attributes
    assert piped.features == in_file.features
    assert piped.features.hostname == "host-1"
    assert [entry.path for entry in piped.features.build_ids] == ["/bin/prog", "[kernel.kallsyms]"]
    assert ips(piped) == ips(in_file) == [0, 1, 2, 3, 4, 5]
    ours, theirs = piped.index(), in_file.index()
    assert [comm.name for comm in ours.side_band.comms] == [comm.name for comm in theirs.side_band.comms] == ["prog"]
    assert [mmap.path for mmap in ours.side_band.mmaps] == [mmap.path for mmap in theirs.side_band.mmaps] == ["/bin/prog"]
    assert not ours.is_cut


def test_payloads_that_records_do_not_count() -> None:
    """Tracing data and AUX area data look like samples here, and are none."""
    content = small_recording()
    decoy = record(9, bytes(64)) * 3
    content.records[3:3] = [record(66, struct.pack("<I", len(decoy))), decoy]
    content.records[6:6] = [record(71, writer.words(len(decoy), 0, 0, 0, 0)), decoy]
    recording = opened(containers.pipe_mode(content))
    assert ips(recording) == [0, 1, 2, 3, 4, 5]
    assert not recording.index().is_cut


def test_an_unknown_record_is_skipped_and_counted_whatever_its_size() -> None:
    content = small_recording()
    content.records[4:4] = [record(200, b"abc"), record(201, bytes(8))]
    recording = opened(containers.pipe_mode(content))
    assert ips(recording) == [0, 1, 2, 3, 4, 5]
    assert recording.index().skipped == ((200, 1), (201, 1))


def test_an_event_without_ids() -> None:
    content = small_recording()
    stream = PIPE_HEADER + containers.attribute_record(content, 0, has_ids=False) + b"".join(content.records)
    assert opened(stream).attributes[0].ids == ()
    assert ips(opened(stream)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("attribute_bytes", [64, 72, 96, 112, 136, 160])
def test_attributes_of_all_sizes(attribute_bytes: int) -> None:
    content = RecordingWriter([EventSpec(attribute_bytes=attribute_bytes, period=4321)])
    content.sample(Sample(ip=7))
    recording = opened(containers.pipe_mode(content))
    assert (recording.attributes[0].period_or_frequency, recording.attributes[0].ids) == (4321, content.ids(0))
    assert ips(recording) == [7]


def test_names_by_update_records_and_of_old_perfs_by_config() -> None:
    content = small_recording(2)
    attributes = b"".join(containers.attribute_record(content, event) for event in range(2))
    update = record(78, writer.words(2, content.ids(1)[0]) + b"my-event:u\0\0\0\0\0\0")
    scale = record(78, writer.words(1, content.ids(0)[0]) + struct.pack("<d", 2.0))
    old = record(65, writer.words(0) + b"cycles\0\0")
    recording = opened(PIPE_HEADER + attributes + update + scale + old + b"".join(content.records))
    assert [event.name for event in recording.attributes] == ["cycles", "my-event:u"]
    described = struct.pack("<II", 2, 8)
    for row, name in enumerate(("first", "second")):
        described += bytes(8) + struct.pack("<I", 2) + writer.feature_string(name) + writer.words(*content.ids(row))
    feature = record(80, writer.words(12) + described)
    recording = opened(PIPE_HEADER + attributes + update + feature + b"".join(content.records))
    assert [event.name for event in recording.attributes] == ["first", "second"]


def tracing_data(events: dict[int, tuple[str, str]]) -> bytes:
    """The description of trace events, as trace-cmd.dat(5) has it: {number: (system, event)}."""

    def sized(content: bytes) -> bytes:
        return writer.words(len(content)) + content

    data = b"\x17\x08\x44tracing" + b"0.6\0" + b"\0\x08" + struct.pack("<I", 4096)
    data += b"header_page\0" + sized(b"\tfield: u64 timestamp;\n") + b"header_event\0" + sized(b"# compressed entry header\n")
    data += struct.pack("<I", 1) + sized(b"name: function\nID: 1\n")
    data += struct.pack("<I", len(events))
    for number, (system, event) in events.items():
        data += system.encode() + b"\0" + struct.pack("<I", 1)
        data += sized(f"name: {event}\nID: {number}\nformat:\n\tfield:int x;\tID: 5\n".encode())
    return data + struct.pack("<III", 0, 0, 0)


def test_names_of_tracepoints() -> None:
    content = RecordingWriter([EventSpec(type=2, config=314), EventSpec(type=2, config=77), EventSpec(type=1, config=1)])
    content.sample(Sample(ip=1))
    described = tracing_data({314: ("sched", "sched_switch"), 1: ("probe_a", "main")})
    described += bytes(-len(described) % 8)
    attributes = b"".join(containers.attribute_record(content, event) for event in range(3))
    stream = PIPE_HEADER + attributes + record(66, struct.pack("<I", len(described))) + described + content.records[0]
    recording = opened(stream)
    assert [event.name for event in recording.attributes] == ["sched:sched_switch", "tracepoint:77", "task-clock"]
    assert ips(recording) == [1]
    cut = tracing_data({314: ("sched", "sched_switch")})[:150]
    with pytest.raises(FormatError, match=r"items expected in \d+ bytes"):
        opened(PIPE_HEADER + attributes + record(66, struct.pack("<I", len(cut))) + cut + content.records[0])


def test_cut_at_every_byte() -> None:
    """Only a cut between two records cannot be noticed: a pipe does not say how much will come."""
    content = small_recording()
    whole = containers.pipe_mode(content)
    first = whole.index(content.records[0])
    starts = [first + sum(map(len, content.records[:row])) for row in range(len(content.records) + 1)]
    for end in range(first, starts[-1]):
        recording = opened(whole[:end])
        assert len(recording.index().sample_offsets) == sum(1 for start in starts[3:9] if start <= end)
        assert recording.index().is_cut == (end not in starts)


def test_a_pipe_is_read_as_a_file_is() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as stream:
        with open(writing, "wb") as target:
            target.write(containers.pipe_mode(small_recording()))
        assert ips(open_recording(stream, "standard input")) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("size", [0, 7])
def test_a_record_size_that_cannot_be(size: int) -> None:
    content = small_recording()
    stream = bytearray(containers.pipe_mode(content))
    at = stream.index(content.records[3])
    stream[at + 6 : at + 8] = size.to_bytes(2, "little")
    with pytest.raises(FormatError, match=f"p.data: byte {at}: record header with size {size}"):
        opened(bytes(stream))


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (PIPE_HEADER, "describes no event"),
        (PIPE_HEADER + record(64, struct.pack("<II", 0, 200) + bytes(64)), "byte 16: event attribute of 200 bytes"),
        (PIPE_HEADER + record(64, struct.pack("<II", 0, 64) + bytes(60)), "byte 16: event attribute of 64 bytes"),
        (PIPE_HEADER + record(64, struct.pack("<II", 0, 24) + bytes(64)), "byte 24: event attribute"),
        (PIPE_HEADER + record(64, b""), "byte 16: event attribute"),
    ],
)
def test_damaged_attributes(stream: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        opened(stream)
    assert "\n" not in str(caught.value)


def test_a_payload_that_reaches_beyond_the_stream_ends_it() -> None:
    content = small_recording()
    content.records.append(record(71, writer.words(2**63, 0, 0, 0, 0)))
    recording = opened(containers.pipe_mode(RecordingWriter(features={}, records=content.records)))
    assert recording.index().is_cut
    assert ips(recording) == [0, 1, 2, 3, 4, 5]


def test_offsets_of_later_messages_say_what_they_count() -> None:
    content = small_recording()
    content.record(9, 2, b"")
    content.record(1, 2, bytes(4))
    recording = opened(containers.pipe_mode(content))
    assert recording.name == "p.data, as plain records"
