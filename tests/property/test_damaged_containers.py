"""Damage of any kind in any container ends in a capture or in one line."""

from __future__ import annotations

import gzip
import io
import lzma

import zstandard
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest.ingest import IngestEnvironment, ingest
from collectors.perf_data.reader import open_recording
from profiler.errors import FormatError
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from support import container_writer as containers
from support import perf_data_writer as writer
from support.no_images import NoImages
from support.perf_data_writer import EventSpec, RecordingWriter, Sample

SAMPLES = 12


def plain() -> RecordingWriter:
    content = RecordingWriter(
        [EventSpec(), EventSpec(config=2)],
        features={2: writer.build_id_entry(b"/bin/prog", bytes(range(20))), 3: writer.feature_string("host-1")},
    )
    content.comm(10, 10, b"prog")
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog")
    for row in range(SAMPLES):
        content.sample(Sample(ip=0x400010 + row, time=row, chain=(writer.USER_MARKER, 0x400010, 0x400020)), event=row % 2)
    content.finished_round()
    return content


def compressed(kind: int) -> RecordingWriter:
    content = plain()
    pieces = containers.zstd_pieces(b"".join(content.records[2:]), [100, 300, 57])
    records = [*content.records[:2], *(containers.compressed_record(piece, kind) for piece in pieces)]
    return RecordingWriter(content.events, {**content.features, 27: bytes(20)}, records)


IN_FILE, IN_PIPE = plain().build(), containers.pipe_mode(plain())
CONTAINERS = (
    IN_FILE, IN_PIPE, compressed(81).build(), compressed(83).build(), containers.pipe_mode(compressed(81)),
    containers.pipe_mode(compressed(83)), gzip.compress(IN_FILE, mtime=0), lzma.compress(IN_PIPE), zstandard.compress(IN_PIPE),
)  # fmt: skip
NUMBERS = st.sampled_from([0, 1, 7, 8, 16, 0xFFFF, 2**31, 2**32 - 1, 2**63, 2**64 - 1]).map(
    lambda value: value.to_bytes(8, "little")
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    content = bytearray(draw(st.sampled_from(CONTAINERS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        new = draw(st.one_of(st.binary(max_size=3), NUMBERS, NUMBERS.map(lambda number: number[:2])))
        content[at : at + draw(st.sampled_from([0, len(new), 8, len(content)]))] = new
    return bytes(content)


def outcome(content: bytes) -> int | str:
    """Samples of the capture, or the message of the error."""
    info = CaptureInfo(RunIdentity("s", "v", 0, RunMode.IMPORTED))
    try:
        capture = ingest(open_recording(io.BytesIO(content), "damaged.data"), info, IngestEnvironment(NoImages(), None))
    except FormatError as error:
        return str(error)
    return len(capture.samples)


def test_undamaged_ones_have_all_samples() -> None:
    assert [outcome(content) for content in CONTAINERS] == [SAMPLES] * len(CONTAINERS)


@given(damaged())
def test_a_capture_or_one_line(content: bytes) -> None:
    found = outcome(content)
    if isinstance(found, str):
        assert found.startswith("damaged.data")
        assert "\n" not in found
