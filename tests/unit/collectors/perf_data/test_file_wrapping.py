"""Files that are compressed as a whole, streams that can be read once, and the bounds of what they grow to."""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from collectors.perf_data import expansion
from collectors.perf_data.expansion import Expansion, silent
from collectors.perf_data.file_wrapping import unwrapped
from collectors.perf_data.reader import open_recording
from profiler.errors import FormatError
from support import container_writer as containers
from support import perf_data_writer as writer
from support.perf_data_writer import RecordingWriter, Sample

WRAPPINGS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "xz": lzma.compress, "zstd": zstandard.compress}


def recording(count: int = 6) -> RecordingWriter:
    content = RecordingWriter(features={3: writer.feature_string("host-1")})
    content.comm(10, 10, b"prog")
    for row in range(count):
        content.sample(Sample(ip=row, time=row, chain=(writer.USER_MARKER, 0x400010)))
    return content


def ips(content: bytes) -> list[int]:
    opened = open_recording(io.BytesIO(content), "w.data")
    return [ip for chunk in opened.chunks(opened.index()) for ip in chunk.fields.ip.tolist()]


def is_cut(content: bytes) -> bool:
    return open_recording(io.BytesIO(content), "w.data").index().is_cut


@pytest.fixture(params=sorted(WRAPPINGS))
def wrap(request: pytest.FixtureRequest) -> Callable[[bytes], bytes]:
    return WRAPPINGS[request.param]


@pytest.mark.parametrize("mode", [RecordingWriter.build, containers.pipe_mode])
def test_a_recording_inside(mode: Callable[[RecordingWriter], bytes], wrap: Callable[[bytes], bytes]) -> None:
    content = mode(recording())
    assert ips(wrap(content)) == [0, 1, 2, 3, 4, 5]
    assert not is_cut(wrap(content))


def test_several_members_and_what_lies_behind_them(wrap: Callable[[bytes], bytes]) -> None:
    content = recording(2000).build()
    members = b"".join(wrap(content[at : at + 40_000]) for at in range(0, len(content), 40_000))
    for behind in (b"", bytes(512), b"signature"):
        assert ips(members + behind) == list(range(2000))


def test_one_wrapping_in_another(wrap: Callable[[bytes], bytes]) -> None:
    assert ips(gzip.compress(wrap(recording().build()))) == [0, 1, 2, 3, 4, 5]
    endless = recording().build()
    for _ in range(5):
        endless = wrap(endless)
    with pytest.raises(FormatError, match="compressed more than 3 times"):
        ips(endless)


@pytest.mark.parametrize("mode", [RecordingWriter.build, containers.pipe_mode])
def test_a_cut_wrapping(mode: Callable[[RecordingWriter], bytes], wrap: Callable[[bytes], bytes]) -> None:
    """What came out before the cut is used; a pipe's stream that was cut behind a record is known to be cut by its wrapping."""
    content = recording()
    whole = mode(content)
    first_samples = whole.index(content.records[4])
    packed = wrap(whole[:first_samples]) if wrap is not zstandard.compress else _flushed(whole[:first_samples])
    cut = packed[:-4] if wrap is not zstandard.compress else packed
    assert ips(cut) == [0, 1, 2]
    assert is_cut(cut)


def _flushed(content: bytes) -> bytes:
    """A zstd frame that does not end."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(content) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


@pytest.mark.parametrize("name", sorted(WRAPPINGS))
def test_a_damaged_wrapping(name: str) -> None:
    packed = bytearray(WRAPPINGS[name](recording(3000).build()))
    middle = len(packed) // 2
    packed[middle : middle + 40] = b"\xff" * 40
    with pytest.raises(FormatError, match=rf"w\.data: byte \d+: its {name} data cannot be decompressed") as caught:
        ips(bytes(packed))
    assert "\n" not in str(caught.value)


def test_a_wrapping_around_something_else(wrap: Callable[[bytes], bytes]) -> None:
    for content, message in ((b"some text\n", "text file"), (b"", "empty file"), (b"\x7fELF" + bytes(60), "ELF file")):
        with pytest.raises(FormatError, match=f"w.data, decompressed: .*{message}"):
            ips(wrap(content))


def test_an_xz_stream_that_asks_for_gigabytes_of_memory() -> None:
    """The dictionary size stands in the block header: 1.5 GB here, without any such data."""
    packed = lzma.compress(b"x" * 100, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 3 << 29}])
    with pytest.raises(FormatError, match=r"xz data cannot be decompressed .*Memory usage limit"):
        ips(packed)


def test_a_zstd_frame_that_asks_for_gigabytes_of_memory() -> None:
    """A window of 2 GB, as `zstd --long=31` writes it."""
    frame = b"\x28\xb5\x2f\xfd" + bytes([0, (31 - 10) << 3]) + bytes([1, 0, 0])
    with pytest.raises(FormatError, match=r"zstd data cannot be decompressed .*too much memory"):
        ips(frame)


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch, wrap: Callable[[bytes], bytes]) -> None:
    monkeypatch.setattr(expansion, "ALWAYS_ALLOWED_BYTES", 1 << 20)
    monkeypatch.setattr(expansion, "LARGEST_GROWTH", 10)
    monkeypatch.setattr(expansion, "_CHECK_EVERY_BYTES", 1 << 20)
    with pytest.raises(
        FormatError, match=r"w\.data: its first \d+ bytes expand to more than \d+ MB, as no recording does"
    ) as e:
        ips(wrap(bytes(64 << 20)))
    assert "\n" not in str(e.value)


def test_a_bomb_inside_compressed_records_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "ALWAYS_ALLOWED_BYTES", 1 << 20)
    monkeypatch.setattr(expansion, "LARGEST_GROWTH", 10)
    monkeypatch.setattr(expansion, "_CHECK_EVERY_BYTES", 1 << 20)
    records = containers.record(68, b"") * (8 << 20)
    packed = zstandard.compress(records)
    content = RecordingWriter(
        records=[containers.compressed_record(packed[at : at + 60_000]) for at in range(0, len(packed), 60_000)]
    )
    with pytest.raises(FormatError, match="as no recording does"):
        ips(containers.pipe_mode(content))


def test_a_disk_that_is_nearly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "_CHECK_EVERY_BYTES", 1 << 20)
    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: SimpleNamespace(f_bavail=100, f_frsize=1 << 20))
    with pytest.raises(FormatError, match=r"w\.data: it expands to more than \d+ MB, and .* has only 100 MB left; set TMPDIR"):
        ips(gzip.compress(bytes(8 << 20)))


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    out = Expansion("w.data", "decompressed")
    out.close()
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with full.open("r+b", buffering=0) as stream:
        out._stream = stream  # type: ignore[assignment]
        with pytest.raises(FormatError, match=rf"{os.strerror(errno.ENOSPC)}; set TMPDIR"):
            out.write(b"x" * 100)


def test_a_directory_for_temporary_files_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(expansion, "_directory", lambda: tmp_path / "missing")
    with pytest.raises(FormatError, match=r"cannot be expanded into .*missing: No such file.*; set TMPDIR"):
        ips(gzip.compress(recording().build()))


def test_nothing_stays_on_disk_or_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrap: Callable[[bytes], bytes]) -> None:
    monkeypatch.setattr(expansion, "_directory", lambda: tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    content = wrap(containers.pipe_mode(recording()))
    assert ips(content) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(FormatError):
        ips(wrap(b"text"))
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_progress_of_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "_CHECK_EVERY_BYTES", 1 << 20)
    messages: list[str] = []
    data = bytes(zlib.crc32(bytes([row])) & 0xFF for row in range(256)) * 4096 * 4
    unwrapped(io.BytesIO(gzip.compress(data)), "w.data", messages.append)
    assert len(messages) in (2, 3)
    assert messages[0].startswith("reading w.data: 1 MB")


def test_plain_files_are_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recording().build())
    with path.open("rb") as stream:
        plain = unwrapped(stream, "perf.data", silent)
        assert (plain.source.size, plain.source.name, plain.is_cut) == (path.stat().st_size, "perf.data", False)
