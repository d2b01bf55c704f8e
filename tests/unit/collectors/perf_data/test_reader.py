"""Whole files: headers, events, features, unfinished and damaged recordings."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.perf_data import byte_source, reader
from collectors.perf_data.features import Features
from collectors.perf_data.reader import Recording, open_recording
from profiler.errors import FormatError
from support import perf_data_writer as writer
from support.perf_data_writer import EventSpec, RecordingWriter, Sample

HOST_FEATURES = {
    2: writer.build_id_entry(b"/bin/prog", bytes(range(20)))
    + writer.build_id_entry(b"[kernel.kallsyms]", b"k" * 16, 1 | 1 << 15),
    3: writer.feature_string("host-1"),
    4: writer.feature_string("6.1.0"),
    5: writer.feature_string("6.1.187"),
    6: writer.feature_string("x86_64"),
    7: struct.pack("<II", 8, 4),
    8: writer.feature_string("A CPU"),
    11: writer.feature_strings(["perf", "record", "-g", "--", "./prog", "a b"]),
    30: b"something newer",
}


def opened(content: bytes) -> Recording:
    return open_recording(io.BytesIO(content), "test.data")


def positions(recording: Recording) -> list[int]:
    return [at for chunk in recording.chunks(recording.index()) for at in chunk.position.tolist()]


def small_recording() -> RecordingWriter:
    content = RecordingWriter(features=HOST_FEATURES)
    content.comm(10, 10, b"prog")
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog")
    for row in range(4):
        content.sample(Sample(time=row, chain=(writer.USER_MARKER, 0x400010)))
    content.finished_round()
    return content


def test_features() -> None:
    features = opened(small_recording().build()).features
    assert (features.hostname, features.osrelease, features.version) == ("host-1", "6.1.0", "6.1.187")
    assert (features.arch, features.nrcpus, features.cpudesc) == ("x86_64", 4, "A CPU")
    assert features.cmdline == ("perf", "record", "-g", "--", "./prog", "a b")
    assert [(e.path, e.build_id, e.is_kernel) for e in features.build_ids] == [
        ("/bin/prog", bytes(range(20)), False),
        ("[kernel.kallsyms]", b"k" * 16, True),
    ]


def test_empty_features_say_nothing() -> None:
    """As perf 3.14 on ARM leaves the CPU's name."""
    content = small_recording()
    content.features = dict.fromkeys(HOST_FEATURES, b"") | {4: HOST_FEATURES[4]}
    features = opened(content.build()).features
    assert features == Features(osrelease="6.1.0")


def test_event_names_come_from_the_descriptions_by_id() -> None:
    content = RecordingWriter([EventSpec(), EventSpec(config=2)])
    described = struct.pack("<II", 2, 8)
    for row, name in ((1, "page-faults:u"), (0, "cpu-clock:u")):
        described += bytes(8) + struct.pack("<I", 2) + writer.feature_string(name) + writer.words(*content.ids(row))
    content.features = {12: described}
    content.finished_round()
    assert [event.name for event in opened(content.build()).attributes] == ["cpu-clock:u", "page-faults:u"]


@pytest.mark.parametrize(
    ("kind", "config", "name"),
    [
        (0, 0, "cycles"),
        (1, 0, "cpu-clock"),
        (1, 2, "page-faults"),
        (2, 77, "tracepoint:77"),
        (4, 0x1C2, "r1c2"),
        (3, 0x10000, "L1-dcache-load-misses"),
        (3, 0x103, "dTLB-stores"),
        (3, 0x5, "branch-loads"),
        (3, 0x30005, "type 3 config 0x30005"),
        (12, 5, "type 12 config 0x5"),
    ],
)
def test_names_of_undescribed_events(kind: int, config: int, name: str) -> None:
    content = RecordingWriter([EventSpec(type=kind, config=config)])
    assert opened(content.build()).attributes[0].name == name


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (writer.EXCLUDE_GUEST, "cycles"),
        (writer.EXCLUDE_GUEST | writer.EXCLUDE_KERNEL | writer.EXCLUDE_HV, "cycles:uH"),
        (writer.EXCLUDE_KERNEL | writer.EXCLUDE_HV, "cycles:u"),
        (writer.EXCLUDE_USER, "cycles:kh"),
        (2 * writer.PRECISE, "cycles:pp"),
        (writer.EXCLUDE_GUEST | 3 * writer.PRECISE, "cycles:pppH"),
        (0, "cycles:HG"),
        (writer.EXCLUDE_HOST, "cycles:G"),
    ],
)
def test_modifiers_of_undescribed_events_as_perf_writes_them(flags: int, name: str) -> None:
    content = RecordingWriter([EventSpec(type=0, flags=flags)])
    assert opened(content.build()).attributes[0].name == name


@pytest.mark.parametrize("length", [0, 8, 16, 20])
def test_build_ids_of_perfs_that_did_not_say_their_length(length: int) -> None:
    build_id = bytes(range(1, length + 1))
    content = RecordingWriter(features={2: writer.build_id_entry(b"/bin/a", build_id.ljust(20, b"\0"), misc=2)})
    content.finished_round()
    (entry,) = opened(content.build()).features.build_ids
    assert (entry.path, entry.build_id) == ("/bin/a", build_id)


@pytest.mark.parametrize("attribute_bytes", [64, 72, 80, 96, 104, 112, 120, 128, 136, 200])
def test_attributes_of_all_sizes(attribute_bytes: int) -> None:
    event = EventSpec(attribute_bytes=attribute_bytes, user_registers=0xFF, user_stack=8192, period=4321)
    attributes = opened(RecordingWriter([event]).build()).attributes[0]
    assert (attributes.period_or_frequency, attributes.sample_type, attributes.is_sample_id_all) == (4321, writer.USUAL, True)
    assert attributes.user_registers == (0xFF if attribute_bytes >= 88 else 0)
    assert attributes.user_stack_bytes == (8192 if attribute_bytes >= 96 else 0)
    assert attributes.max_stack == 0


def test_chunks_are_bounded_and_complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    content = RecordingWriter()
    for row in range(500):
        content.sample(Sample(ip=row, chain=range(row % 40)))
    path = tmp_path / "perf.data"
    path.write_bytes(content.build())
    monkeypatch.setattr(reader, "CHUNK_SAMPLES", 64)
    monkeypatch.setattr(reader, "CHUNK_BYTES", 66_000)
    monkeypatch.setattr(byte_source, "WINDOW_BYTES", 66_000)
    monkeypatch.setattr("collectors.perf_data.record_index.WINDOW_BYTES", 8192)
    with path.open("rb") as stream:
        recording = open_recording(stream, "perf.data")
        chunks = list(recording.chunks(recording.index()))
        assert max(len(chunk.position) for chunk in chunks) <= 64
        assert [ip for chunk in chunks for ip in chunk.fields.ip.tolist()] == list(range(500))
        assert [n for chunk in chunks for n in chunk.fields.chain_length.tolist()] == [row % 40 for row in range(500)]


def test_records_of_odd_sizes_do_not_shift_what_follows() -> None:
    content = RecordingWriter()
    content.sample(Sample(ip=1, chain=(5,)))
    content.record(80, 0, b"abc")
    content.sample(Sample(ip=2, chain=(6, 7)))
    content.record(80, 0, b"abcde")
    content.sample(Sample(ip=3))
    recording = opened(content.build())
    (chunk,) = recording.chunks(recording.index())
    assert chunk.fields.ip.tolist() == [1, 2, 3]
    assert chunk.fields.chain_length.tolist() == [1, 2, 0]
    assert chunk.fields.mismatched == 0


def test_aux_area_payload_is_skipped_by_its_own_size() -> None:
    content = RecordingWriter()
    content.sample(Sample(ip=1))
    content.record(71, 0, writer.words(24, 0, 0, 0, 0))
    content.records.append(b"\x09\0\0\0\0\0\x08\0" * 3)
    content.sample(Sample(ip=2))
    recording = opened(content.build())
    assert [ip for chunk in recording.chunks(recording.index()) for ip in chunk.fields.ip.tolist()] == [1, 2]


def test_unknown_record_types_are_skipped_and_counted() -> None:
    content = small_recording()
    content.record(200, 0, bytes(16))
    content.record(200, 0, bytes(8))
    content.record(5000, 0, b"")
    content.sample(Sample())
    index = opened(content.build()).index()
    assert index.skipped == ((200, 2), (5000, 1))
    assert len(index.sample_offsets) == 5


def test_side_band_records() -> None:
    content = RecordingWriter()
    content.mmap(10, 0x1000, 0x2000, 0x3000, b"/lib/a b (x).so", time=5)
    content.mmap(10, 0x1000, 0x2000, 0x3000, b"/data", time=5, misc=2 | 1 << 13)
    content.mmap2(11, 0x4000, 0x1000, 0, b"/lib/b.so", time=6, build_id=b"\x01\x02\x03\x04")
    content.mmap2(11, 0x4000, 0x1000, 0, b"/lib/data", time=6, prot=1)
    content.mmap(-1, 2**64 - 2**31, 2**30, 2**64 - 2**31, b"[kernel.kallsyms]_text", misc=1)
    content.comm(10, 12, b"Web 33 (x)", time=7, is_exec=True)
    content.comm(10, 10, b"\xff\xfe", time=8)
    content.fork(20, 21, 10, 10, time=9)
    content.exit(20, 21, time=10)
    content.lost(3)
    content.lost_samples(4)
    content.throttle()
    side_band = opened(content.build()).index().side_band
    assert [m[0:1] + m[2:] for m in side_band.mmaps if m.pid == 10] == [
        (5, 10, 0x1000, 0x2000, 0x3000, "/lib/a b (x).so", b"", False)
    ]
    assert [(m.pid, m.path, m.build_id, m.is_kernel) for m in side_band.mmaps if m.pid != 10] == [
        (-1, "[kernel.kallsyms]_text", b"", True),
        (11, "/lib/b.so", b"\x01\x02\x03\x04", False),
    ]
    assert [(c.time_ns, c.pid, c.tid, c.name.encode("utf-8", "surrogateescape"), c.is_exec) for c in side_band.comms] == [
        (7, 10, 12, b"Web 33 (x)", True),
        (8, 10, 10, b"\xff\xfe", False),
    ]
    assert [f[0:1] + f[2:] for f in side_band.forks] == [(9, 20, 21, 10, 10, False)]
    assert (side_band.lost_records, side_band.lost_samples, side_band.throttled) == (3, 4, 1)


def test_trailers_of_events_that_differ_are_read_by_the_id_at_their_end() -> None:
    content = RecordingWriter([EventSpec(), EventSpec(sample_type=writer.IDENTIFIER | writer.TID)])
    content.comm(10, 10, b"first", time=5)
    pair = writer.words(10 << 32 | 10)
    payload = struct.pack("<ii", 10, 10) + writer.text(b"second") + pair + writer.words(content.ids(1)[0])
    content.record(3, 0, payload)
    assert [(c.time_ns, c.name) for c in opened(content.build()).index().side_band.comms] == [(5, "first"), (0, "second")]


@pytest.mark.parametrize("kept", [1.0, 0.6, 0.3])
def test_unfinished_recordings_are_read_up_to_the_last_whole_record(kept: float) -> None:
    content = small_recording()
    content.features = {}
    whole = content.build(data_size=0)
    data_at = len(whole) - sum(map(len, content.records))
    cut = whole[: data_at + int((len(whole) - data_at) * kept)]
    starts = [data_at + sum(map(len, content.records[:row])) for row in range(len(content.records) + 1)]
    end = max(start for start in starts if start <= len(cut))
    index = opened(cut).index()
    assert index.is_cut
    assert index.end == end
    assert len(index.sample_offsets) == sum(1 for row in range(2, 6) if starts[row + 1] <= end)


def test_a_finished_recording_that_was_cut() -> None:
    content = small_recording()
    whole = content.build()
    data_at = whole.index(content.records[0])
    cut = whole[: data_at + sum(map(len, content.records)) - 40]
    index = opened(cut).index()
    assert index.is_cut
    assert len(index.sample_offsets) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty file"),
        (b"PERFFILE" + bytes(200), "version 1"),
        (b"2ELIFREP" + bytes(200), "big-endian"),
        (b"hello\nworld\n", "text file; .* name the file that `perf record` wrote"),
        (b"a", "text file"),
        (b"ab\0c", "not a perf.data recording .*: name the file that `perf record` wrote"),
        ("h\u00e9llo".encode(), "text file"),
        (b"BZh9" + bytes(50), "bunzip2"),
        (b"\x7fELF" + bytes(50), "ELF file"),
        (b"PERFILE2", "cut short"),
        (b"PERFILE2" + writer.words(16) + bytes(64), "byte 16: record header with size 0"),
        (b"PERFILE2" + writer.words(16), "describes no event"),
        (b"PERFILE2" + writer.words(104) + bytes(40), "the file ends before"),
        (b"PERFILE2" + writer.words(7) + bytes(200), "header says it has 7 bytes"),
    ],
)
def test_other_files_are_named(content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        opened(content)
    assert str(caught.value).startswith("test.data: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("at", "value", "offset"),
    [
        (16, 0, 16),
        (16, 10**9, 16),
        (24, 2**60, 24),
        (24, 2**64 - 1, 24),
        (32, 2**62, 24),
        (32, 0, 32),
        (32, 151, 32),
        (40, 2**60, 40),
        (40, 0, 40),
    ],
)
def test_hostile_headers_name_the_byte(at: int, value: int, offset: int) -> None:
    content = bytearray(small_recording().build())
    content[at : at + 8] = writer.words(value)
    with pytest.raises(FormatError) as caught:
        opened(bytes(content))
    assert caught.value.offset == offset


@pytest.mark.parametrize("size", [0, 7, 65535])
def test_record_sizes_that_cannot_be(size: int) -> None:
    content = small_recording()
    whole = bytearray(content.build())
    at = whole.index(content.records[3])
    whole[at + 6 : at + 8] = size.to_bytes(2, "little")
    with pytest.raises(FormatError) as caught:
        opened(bytes(whole)).index()
    assert caught.value.offset == at


def test_compressed_records_that_the_header_does_not_announce() -> None:
    content = small_recording()
    content.record(81, 0, bytes(24))
    with pytest.raises(FormatError, match="although the header says that there are none"):
        opened(content.build()).index()


def test_records_too_short_for_their_type() -> None:
    content = RecordingWriter()
    content.record(10, 2, bytes(16))
    with pytest.raises(FormatError, match="record of type 10 with 24 bytes"):
        opened(content.build()).index()


def outcome(content: bytes) -> int | FormatError:
    """How many samples can be read, or the reason why none can."""
    try:
        return len(positions(opened(content)))
    except FormatError as error:
        return error


@settings(max_examples=300)
@given(st.data())
def test_damaged_twins_end_in_one_line_or_a_prefix(data: st.DataObject) -> None:
    whole = bytearray(small_recording().build())
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    result = outcome(bytes(whole))
    if isinstance(result, FormatError):
        assert str(result).startswith("test.data: ")
        assert "\n" not in str(result)
    else:
        assert result <= len(whole) // 8
