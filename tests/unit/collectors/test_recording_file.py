"""Opening recordings on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.ingest.frame_builder import KernelNames
from collectors.recording_file import read_recording
from profiler.errors import FormatError
from profiler.model.arrays import UInt64Column
from profiler.model.dso import Dso
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from support import perf_data_writer as writer
from support.perf_data_writer import RecordingWriter, Sample

KERNEL_CODE = 0xFFFFFFFF81000000


class OneKernel:
    """A locator that knows no binary, and notes which kernel it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, str, int]] = []

    def image(self, dso: Dso) -> None:
        return None

    def kernel_symbols(self, build_id: bytes, release: str, text_address: int) -> KernelNames | None:
        self.asked.append((build_id, release, text_address))
        return self

    def names(self, addresses: UInt64Column) -> list[str]:
        return ["do_work"] * len(addresses)

    def modules(self, addresses: UInt64Column) -> list[str]:
        return [""] * len(addresses)


def recording(tmp_path: Path, *chain: int) -> Path:
    content = RecordingWriter(
        features={2: writer.build_id_entry(b"[kernel.kallsyms]", b"k" * 20, 1 | 1 << 15), 4: writer.feature_string("6.1.0-x")}
    )
    content.mmap(-1, KERNEL_CODE, 2**24, KERNEL_CODE + 0x40, b"[kernel.kallsyms]_text", misc=1)
    content.comm(10, 10, b"prog")
    content.sample(Sample(chain=chain))
    path = tmp_path / "fast build.data"
    path.write_bytes(content.build())
    return path


def test_identity_from_the_file_name(tmp_path: Path) -> None:
    path = recording(tmp_path, writer.USER_MARKER, 0x400000)
    capture = read_recording(path, None, OneKernel())
    identity = capture.info.identity
    assert (identity.session, identity.variant, identity.round, identity.mode) == ("file", "fast build", 0, RunMode.IMPORTED)
    assert capture.info.source == str(path)
    assert capture.info.host.kernel == "6.1.0-x"


def test_given_information_stays(tmp_path: Path) -> None:
    given = CaptureInfo(RunIdentity("s", "v", 3, RunMode.PLAIN), command=("./x",))
    capture = read_recording(recording(tmp_path, writer.USER_MARKER, 0x400000), given, OneKernel())
    assert capture.info.identity == given.identity
    assert capture.info.command == ("./x",)


def test_the_kernel_is_asked_for_by_its_identity_and_only_when_needed(tmp_path: Path) -> None:
    locator = OneKernel()
    read_recording(recording(tmp_path, writer.USER_MARKER, 0x400000), None, locator)
    assert locator.asked == []
    capture = read_recording(recording(tmp_path, writer.KERNEL_MARKER, KERNEL_CODE + 0x80), None, locator)
    assert set(locator.asked) == {(b"k" * 20, "6.1.0-x", KERNEL_CODE + 0x40)}
    assert capture.strings[capture.frames.symbol[0]] == "do_work"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="No such file") as caught:
        read_recording(tmp_path / "missing.data", None, OneKernel())
    assert str(tmp_path / "missing.data") in str(caught.value)
    with pytest.raises(FormatError, match="directory"):
        read_recording(tmp_path, None, OneKernel())
    empty = tmp_path / "empty.data"
    empty.touch()
    with pytest.raises(FormatError, match="empty file"):
        read_recording(empty, None, OneKernel())
