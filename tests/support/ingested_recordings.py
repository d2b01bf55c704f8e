"""Small recordings written by hand, ingested, and their stacks as tests compare them."""

from __future__ import annotations

import io
from dataclasses import dataclass

from collectors.ingest.ingest import IngestEnvironment, ingest
from collectors.perf_data.reader import open_recording
from profiler.model.arrays import UInt64Column
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from support import perf_data_writer as writer
from support.no_images import NoImages
from support.perf_data_writer import EventSpec, RecordingWriter

KERNEL, USER = writer.KERNEL_MARKER, writer.USER_MARKER
KERNEL_CODE = 0xFFFFFFFF81000000
MODULE_CODE = 0xFFFFFFFFC0000000


@dataclass
class NamedKernel:
    """Functions of 0x100 bytes, named after their address."""

    def names(self, addresses: UInt64Column) -> list[str]:
        return [f"k_{address >> 8 & 0xFFFF:x}" for address in addresses.tolist()]

    def modules(self, addresses: UInt64Column) -> list[str]:
        return ["ext4" if address >= MODULE_CODE + 0x10000 else "" for address in addresses.tolist()]


def info(mode: RunMode = RunMode.IMPORTED) -> CaptureInfo:
    return CaptureInfo(RunIdentity("file", "test", 0, mode))


def ingested(content: RecordingWriter, mode: RunMode = RunMode.IMPORTED, kernel: NamedKernel | None = None) -> Capture:
    recording = open_recording(io.BytesIO(content.build()), "test.data")
    return ingest(recording, info(mode), IngestEnvironment(NoImages(), kernel))


def stack_of(capture: Capture, sample: int) -> list[tuple[str, int, bool]]:
    """(DSO name, offset, is return address), innermost first."""
    frames = capture.frames
    return [
        (capture.dsos[frames.dso[row]].name, int(frames.offset[row]), bool(frames.is_return_address[row]))
        for row in capture.stacks.frames_leaf_first(int(capture.samples.stack[sample]))
    ]


def program(*events: EventSpec) -> RecordingWriter:
    content = RecordingWriter(events or (EventSpec(),))
    content.comm(10, 10, b"prog", time=1)
    content.mmap2(10, 0x400000, 0x10000, 0x2000, b"/bin/prog", time=1)
    return content
