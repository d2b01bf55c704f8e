"""Opening recordings on disk."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from collectors.ingest.frame_builder import KernelNames
from collectors.recording_file import read_recording, read_runs, with_build_ids
from profiler.errors import FormatError
from profiler.model.arrays import UInt64Column
from profiler.model.capture import empty_capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.frame_table import FrameTable
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from support import perf_data_writer as writer
from support.elf_programs import compile_program, load_image
from support.perf_data_writer import RecordingWriter, Sample
from symbolize.locate import Locator

KERNEL_CODE = 0xFFFFFFFF81000000


class OneKernel:
    """A locator that knows no binary, and notes which kernel it is asked for."""

    unwind_rules = None

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
    assert datetime.fromisoformat(capture.info.source_changed_at).timestamp() == pytest.approx(path.stat().st_mtime, abs=1e-3)
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


def test_a_read_that_fails_names_its_file() -> None:
    """The kernel refuses to read the memory of a process from its address 0 (proc(5))."""
    with pytest.raises(FormatError, match=r"/proc/self/mem: cannot be read: Input/output error"):
        read_runs(Path("/proc/self/mem"), OneKernel())


def test_build_ids_that_perf_left_out(tmp_path: Path) -> None:
    """perf keeps those of files that a sample fell into; files that were changed since the run began are not trusted."""
    program = compile_program(tmp_path, "caller.c", "int main(void) { return 0; }", ["-O1"])
    os.utime(program, (1_700_000_000, 1_700_000_000))
    used, unused = Dso(str(program), b"", DsoKind.FILE), Dso("/bin/unused", b"", DsoKind.FILE)
    gone, known = Dso("/bin/gone", b"", DsoKind.FILE), Dso(str(program), b"\x01" * 20, DsoKind.FILE)
    frames = FrameTable(
        np.array([0, 2, 3], np.int32),
        np.zeros(3, np.uint64),
        np.zeros(3, np.bool_),
        np.zeros(3, np.uint8),
        np.zeros(3, np.int32),
    )
    for started_at, found in (("2023-11-15T00:00:00+00:00", load_image(program).build_id), ("2023-11-14T00:00:00+00:00", b"")):
        info = CaptureInfo(RunIdentity("s", "v", 0, RunMode.PROFILED), started_at=started_at)
        capture = replace(empty_capture(info), dsos=(used, unused, gone, known), frames=frames)
        completed = with_build_ids(capture, Locator())
        assert [dso.build_id for dso in completed.dsos] == [found, b"", b"", b"\x01" * 20]
