"""Kernel modules whose recorded length cannot be."""

from __future__ import annotations

import io

from collectors.ingest.ingest import IngestEnvironment, ingest
from collectors.perf_data.reader import open_recording
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from support import perf_data_writer as writer
from support.no_images import NoImages
from support.perf_data_writer import RecordingWriter, Sample

MODULE = 0xFFFFFFFFC0000000


def test_a_module_that_would_end_beyond_the_last_address() -> None:
    content = RecordingWriter()
    content.mmap(-1, MODULE, 2**64 - 1, 0, b"[damaged]", misc=1)
    content.sample(Sample(ip=MODULE + 16, chain=(writer.KERNEL_MARKER, MODULE + 16)))
    recording = open_recording(io.BytesIO(content.build()), "test.data")
    capture = ingest(recording, CaptureInfo(RunIdentity("s", "v", 0, RunMode.IMPORTED)), IngestEnvironment(NoImages(), None))
    assert [capture.dsos[row].path for row in capture.frames.dso.tolist()] == ["[damaged]"]
