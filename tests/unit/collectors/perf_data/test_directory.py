"""Directories that are one recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.perf_data.directory import is_recording_directory, open_directory
from collectors.perf_data.expansion import silent
from collectors.perf_data.reader import Recording, open_recording
from profiler.errors import FormatError
from support import container_writer as containers
from support import perf_data_writer as writer
from support.perf_data_writer import RecordingWriter, Sample

DIRECTORY_FORMAT = {24: writer.words(1), 3: writer.feature_string("host-1")}


def main_file() -> RecordingWriter:
    content = RecordingWriter(features=DIRECTORY_FORMAT)
    content.comm(10, 10, b"prog")
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog")
    return content


def samples(*ips: int) -> bytes:
    content = RecordingWriter()
    for ip in ips:
        content.sample(Sample(ip=ip, time=ip, chain=(writer.USER_MARKER, 0x400010)))
    return b"".join(content.records)


def opened(path: Path) -> Recording:
    return Recording(open_directory(path, silent))


def ips(recording: Recording) -> list[int]:
    return [ip for chunk in recording.chunks(recording.index()) for ip in chunk.fields.ip.tolist()]


def test_all_files_by_number(tmp_path: Path) -> None:
    parts = [samples(10 * number, 10 * number + 1) for number in range(12)]
    recording = opened(containers.directory(tmp_path / "d", main_file(), parts))
    assert ips(recording) == [10 * number + one for number in range(12) for one in (0, 1)]
    assert [comm.name for comm in recording.index().side_band.comms] == ["prog"]
    assert recording.features.hostname == "host-1"
    assert not recording.index().is_cut


def test_an_empty_part_and_files_of_others(tmp_path: Path) -> None:
    path = containers.directory(tmp_path / "d", main_file(), [b"", samples(5)])
    (path / "notes.txt").write_text("mine")
    (path / "data.old").write_text("mine")
    assert ips(opened(path)) == [5]


def test_cut_parts_are_read_up_to_the_last_whole_record(tmp_path: Path) -> None:
    recording = opened(containers.directory(tmp_path / "d", main_file(), [samples(1, 2)[:-3], samples(5)]))
    assert ips(recording) == [1, 5]
    assert recording.index().is_cut


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    path = containers.directory(tmp_path / "d", main_file(), [samples(1), samples(2) + bytes(16)])
    with pytest.raises(FormatError, match=rf"d/data\.1: byte {len(samples(2))}: record header with size 0"):
        opened(path)


def test_the_main_file_alone_says_where_the_samples_are(tmp_path: Path) -> None:
    path = containers.directory(tmp_path / "d", main_file(), [samples(1)])
    with (path / "data").open("rb") as stream, pytest.raises(FormatError, match="name their directory"):
        open_recording(stream, "d/data")


def test_which_directories_are_recordings(tmp_path: Path) -> None:
    recording = containers.directory(tmp_path / "recording", main_file(), [samples(1)])
    assert is_recording_directory(recording)
    alone = containers.directory(tmp_path / "alone", main_file(), [])
    (alone / "kcore_dir").mkdir()
    assert is_recording_directory(alone)
    (alone / "perf.data").write_bytes(main_file().build())
    assert not is_recording_directory(alone)  # a folder of recordings, one of which is called "data"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "data").write_text("numbers")
    assert not is_recording_directory(tmp_path / "other")
    with pytest.raises(FormatError, match="a directory without a recording in it"):
        opened(tmp_path / "other")
