"""Compressed records: one zstd stream through many of them, with plain records between."""

from __future__ import annotations

import io
import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from collectors.perf_data.directory import open_directory
from collectors.perf_data.expansion import silent
from collectors.perf_data.reader import Recording, open_recording
from profiler.errors import FormatError
from support import container_writer as containers
from support import perf_data_writer as writer
from support.container_writer import compressed_record, zstd_pieces
from support.perf_data_writer import RecordingWriter, Sample

ANNOUNCED = {27: struct.pack("<IIIII", 1, 1, 1, 10, 524288)}


def opened(content: bytes) -> Recording:
    return open_recording(io.BytesIO(content), "z.data")


def ips(recording: Recording) -> list[int]:
    return [ip for chunk in recording.chunks(recording.index()) for ip in chunk.fields.ip.tolist()]


def samples(count: int, depth: int = 2) -> bytes:
    content = RecordingWriter()
    for row in range(count):
        content.sample(Sample(ip=row, time=row, chain=(writer.USER_MARKER, *range(0x400000, 0x400000 + depth))))
    return b"".join(content.records)


def recording_of(records: list[bytes], data_size: int | None = None) -> bytes:
    return RecordingWriter(features=ANNOUNCED if data_size is None else {}, records=records).build(data_size)


@pytest.mark.parametrize("kind", [81, 83])
@given(sizes=st.lists(st.integers(1, 400), max_size=12))
def test_records_that_straddle_pieces_of_any_size(kind: int, sizes: list[int]) -> None:
    pieces = zstd_pieces(samples(20), sizes)
    recording = opened(recording_of([compressed_record(piece, kind) for piece in pieces]))
    assert ips(recording) == list(range(20))
    assert not recording.index().is_cut


@pytest.mark.parametrize("kind", [81, 83])
def test_in_pipe_mode(kind: int) -> None:
    content = RecordingWriter(records=[compressed_record(piece, kind) for piece in zstd_pieces(samples(20), [100, 333, 5])])
    recording = opened(containers.pipe_mode(content))
    assert ips(recording) == list(range(20))
    assert not recording.index().is_cut


def test_a_plain_record_comes_before_the_record_that_straddles_it() -> None:
    content = RecordingWriter()
    content.comm(10, 10, b"inside")
    inside = b"".join(content.records)
    first, second = zstd_pieces(inside * 2, [len(inside) + 20])
    between = RecordingWriter()
    between.comm(10, 10, b"between")
    recording = opened(recording_of([compressed_record(first), *between.records, compressed_record(second)]))
    assert [comm.name for comm in recording.index().side_band.comms] == ["inside", "between", "inside"]


def test_nothing_stays_behind_in_the_decompressor() -> None:
    """A few bytes hold megabytes here: a decompressor that stops with its input has not handed out everything."""
    data = samples(6_000, depth=60)
    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    packed = compressor.compress(data) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    records = [compressed_record(packed[at : at + 60_000]) for at in range(0, len(packed), 60_000)]
    assert len(data) > 20 * len(packed)
    recording = opened(recording_of(records))
    assert len(recording.index().sample_offsets) == 6_000
    assert not recording.index().is_cut


def test_incompressible_data_and_several_frames() -> None:
    """Each frame is complete in itself, and ends in the middle of a record of compression."""
    content = RecordingWriter()
    numbers = [random.Random(row).getrandbits(60) for row in range(3000)]
    for number in numbers:
        content.sample(Sample(ip=number, chain=(writer.USER_MARKER, number ^ 5)))
    data = b"".join(content.records)
    packed = b"".join(zstandard.compress(data[at : at + 50_001]) for at in range(0, len(data), 50_001))
    records = [compressed_record(packed[at : at + 30_007]) for at in range(0, len(packed), 30_007)]
    assert ips(opened(recording_of(records))) == numbers


def test_unfinished_recordings_are_read_up_to_the_last_whole_record() -> None:
    """They have no feature section that says that they are compressed."""
    records = [compressed_record(piece) for piece in zstd_pieces(samples(20), [900, 900])]
    whole = recording_of(records, data_size=0)
    start = len(whole) - sum(map(len, records))
    size = len(samples(1))
    ends = [start + sum(map(len, records[:row])) for row in range(4)]
    for row, (end, following) in enumerate(pairwise(ends)):
        for cut in (end, end + 1, following - 1):
            recording = opened(whole[:cut]) if cut > start else None
            if recording is not None:
                assert recording.index().is_cut
                assert ips(recording) == list(range(min(20, 900 * row // size)))


def test_damage_is_named_by_its_place_in_the_file() -> None:
    pieces = zstd_pieces(samples(20), [900, 900])
    records = [compressed_record(pieces[0]), compressed_record(b"\xff" * len(pieces[1])), compressed_record(pieces[2])]
    content = recording_of(records)
    with pytest.raises(FormatError, match=f"z.data: byte {content.index(records[1])}: damaged compressed record") as caught:
        opened(content)
    assert "\n" not in str(caught.value)


def test_damage_inside_is_named_by_its_place_in_the_plain_records() -> None:
    data = bytearray(samples(4))
    at = len(samples(2))
    data[at + 6 : at + 8] = b"\x03\0"
    with pytest.raises(FormatError, match=f"z.data, as plain records: byte {at}: record header with size 3"):
        opened(recording_of([compressed_record(piece) for piece in zstd_pieces(bytes(data), [])]))


def test_a_size_that_its_record_has_no_room_for() -> None:
    (piece,) = zstd_pieces(samples(4), [])
    wrong = containers.record(83, writer.words(70_000) + piece.ljust(200, b"\0"))
    with pytest.raises(FormatError, match="says it holds 70000 bytes and has room for 200: record without -z"):
        opened(recording_of([wrong]))
    with pytest.raises(FormatError, match="room for 0"):
        opened(recording_of([containers.record(83, b"")]))


def overflown(packed: bytes, smaller_by: int = 0) -> bytes:
    """What perf 6.16 writes for one turn whose compressed data do not fit a record: the first header's size is the sum of all,
    cut to 16 bits; the headers behind it have their size, and what happened to lie there as data_size.  No padding follows."""
    pieces = [packed[at : at + 65519] for at in range(0, len(packed), 65519)]
    total = sum(16 + len(piece) for piece in pieces)
    first = struct.pack("<IHHQ", 83, 0, (total + 7) // 8 * 8 & 0xFFFF, total - 16)
    return (
        first + pieces[0] + b"".join(struct.pack("<IHHQ", 83, 0, 16 + len(p) - smaller_by, 0xDEADBEEF) + p for p in pieces[1:])
    )


def incompressible(count: int) -> tuple[list[int], bytes]:
    numbers = [random.Random(row).getrandbits(60) for row in range(count)]
    content = RecordingWriter()
    for number in numbers:
        raw = random.Random(number).randbytes(4000)
        content.sample(Sample(ip=number, chain=struct.unpack("<500Q", raw)))
    return numbers, b"".join(content.records)


@pytest.mark.parametrize("count", [17, 40])
def test_sizes_that_overflow_the_header_are_found_by_data_size(count: int) -> None:
    numbers, data = incompressible(count)
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    packed = compressor.compress(data) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    assert len(packed) > 65519
    behind = compressor.compress(samples(3)) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    rest = [containers.record(68, b""), compressed_record(behind, 83)]
    for content in (
        recording_of([overflown(packed), *rest]),
        containers.pipe_mode(RecordingWriter(records=[overflown(packed), *rest])),
    ):
        recording = opened(content)
        assert ips(recording) == [*numbers, 0, 1, 2]
        assert not recording.index().is_cut
    with pytest.raises(FormatError, match="is not made of smaller ones: record without -z"):
        opened(recording_of([overflown(packed, smaller_by=1), *rest]))


def test_one_record_whose_rounded_size_overflows() -> None:
    """Of 65,529 to 65,535 bytes: rounded up that is 65,536, of which the header keeps 0."""
    frame, size = zstandard.compress(samples(3)), 65_519 - 3
    skipped = struct.pack("<II", 0x184D2A50, size - 8 - len(frame))  # a frame that decompressors pass over
    record = overflown((frame + skipped).ljust(size, b"\0"))
    assert record[6:8] == b"\0\0"
    content = recording_of([record, containers.record(68, b""), compressed_record(zstandard.compress(samples(2)), 83)])
    assert ips(opened(content)) == [0, 1, 2, 0, 1]


def test_a_finished_recording_is_made_of_whole_records() -> None:
    records = [compressed_record(piece) for piece in zstd_pieces(samples(20), [900])]
    records.append(b"\x51\0\0\0\0\0\0\0")
    with pytest.raises(FormatError, match="record header with size 0"):
        opened(recording_of(records))


def test_a_stream_that_ends_inside_a_record_says_so() -> None:
    data = samples(20)
    recording = opened(recording_of([compressed_record(piece) for piece in zstd_pieces(data[:-10], [])]))
    assert recording.index().is_cut
    assert ips(recording) == list(range(19))


def test_records_of_directories_have_a_stream_for_each_file(tmp_path: Path) -> None:
    parts = [b"".join(compressed_record(piece) for piece in zstd_pieces(samples(count), [100, 57])) for count in (7, 5)]
    main = RecordingWriter(features=ANNOUNCED | {24: writer.words(1)})
    main.comm(10, 10, b"prog")
    path = containers.directory(tmp_path / "d", main, parts)
    recording = Recording(open_directory(path, silent))
    assert ips(recording) == [*range(7), *range(5)]
    assert not recording.index().is_cut
