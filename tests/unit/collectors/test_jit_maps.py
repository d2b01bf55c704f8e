"""Which tables of generated code are believed."""

from __future__ import annotations

import os
import platform
import struct
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from collectors.jit_maps import JitMapFiles, with_names_of_host
from profiler.model.capture import Capture, empty_capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.frame_table import FrameTable
from profiler.model.run import CaptureInfo, HostFacts, RunIdentity, RunMode
from profiler.model.sample_table import SampleTable
from profiler.model.stack_table import StackTable
from profiler.model.thread_table import ThreadTable

END_S = 1_700_000_000
PID = 4242


@pytest.fixture
def files(tmp_path: Path) -> JitMapFiles:
    """Without processes; the machine was started 1,000,000 s before the recording ended."""
    processes = tmp_path / "proc"
    processes.mkdir()
    (processes / "stat").write_text(f"cpu 1 2\nbtime {END_S - 1_000_000}\n")
    return JitMapFiles(tmp_path, processes)


def recorded(host: HostFacts | None = None, changed_s: int | None = END_S) -> Capture:
    """One sample in anonymous memory at 0x1008, at the end of 100 s."""
    changed_at = datetime.fromtimestamp(changed_s, UTC).isoformat() if changed_s is not None else ""
    info = replace(
        CaptureInfo(RunIdentity("s", "v", 0, RunMode.IMPORTED)),
        host=host or HostFacts(hostname=platform.node(), kernel=platform.release()),
        source_changed_at=changed_at,
    )
    i16, i32 = np.zeros(2, np.int16), np.zeros(2, np.int32)
    one = np.zeros(1, np.int32)
    return replace(
        empty_capture(info),
        strings=("node",),
        dsos=(Dso("//anon", b"", DsoKind.ANONYMOUS),),
        frames=FrameTable(one, np.array([0x1008], np.uint64), np.zeros(1, np.bool_), np.zeros(1, np.uint8), one - 1),
        stacks=StackTable(one - 1, one),
        threads=ThreadTable(one + PID, one + PID, one, one),
        samples=SampleTable(
            np.array([5, 5 + 100_000_000_000], np.uint64), i32, i16, i16, i32, np.ones(2, np.int64), np.zeros(2, np.uint8)
        ),
    )


def write(path: Path, written_s: float, name: str = "f") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"1000 10 {name}\n")
    os.utime(path, (written_s, written_s))


def name(capture: Capture) -> str:
    symbol = int(capture.frames.symbol[0])
    return capture.strings[symbol] if symbol >= 0 else ""


def process(files: JitMapFiles, started_s: int, number_inside: int = PID) -> Path:
    """A running process; its start is in clock ticks since the machine's."""
    folder = files.processes / str(PID)
    folder.mkdir()
    ticks = (started_s - (END_S - 1_000_000)) * os.sysconf("SC_CLK_TCK")
    (folder / "stat").write_text(f"{PID} (a (b) c) S {' '.join(['0'] * 18)} {ticks} 0\n")
    (folder / "status").write_text(f"Name:\tx\nNSpid:\t{PID}\t{number_inside}\n")
    return folder


@pytest.mark.parametrize(
    ("written_s", "note"),
    [
        (END_S, ""),
        (END_S - 100, ""),
        (END_S - 103, "is older than the recording"),
        (END_S + 3, "was written after the recording, perhaps by another process"),
    ],
)
def test_only_a_table_of_the_recorded_time_is_used(files: JitMapFiles, written_s: int, note: str) -> None:
    path = files.folder / f"perf-{PID}.map"
    write(path, written_s)
    capture = with_names_of_host(recorded(), files, {})
    assert name(capture) == ("" if note else "f")
    expected = f"names of generated code of process {PID} are not used: {path} {note}"
    assert capture.quality.notes == ((expected,) if note else ())


def test_a_process_that_still_runs_may_have_written_later(files: JitMapFiles) -> None:
    write(files.folder / f"perf-{PID}.map", END_S + 500)
    process(files, END_S - 50)
    assert name(with_names_of_host(recorded(), files, {})) == "f"


def test_a_process_that_began_after_the_recording_is_another(files: JitMapFiles) -> None:
    write(files.folder / f"perf-{PID}.map", END_S + 500)
    process(files, END_S + 400)
    assert name(with_names_of_host(recorded(), files, {})) == ""


def test_a_process_in_a_container_has_its_own_root_and_number(files: JitMapFiles) -> None:
    folder = process(files, END_S - 50, number_inside=7)
    write(files.folder / f"perf-{PID}.map", END_S, "outside")
    write(folder / "root/tmp/perf-7.map", END_S, "inside")
    assert name(with_names_of_host(recorded(), files, {})) == "inside"


@pytest.mark.parametrize(
    "host",
    [HostFacts(), HostFacts(hostname="other", kernel=platform.release()), HostFacts(hostname=platform.node(), kernel="5.4.0")],
)
def test_recordings_of_other_hosts_get_no_names(files: JitMapFiles, host: HostFacts) -> None:
    write(files.folder / f"perf-{PID}.map", END_S)
    capture = with_names_of_host(recorded(host), files, {})
    assert (name(capture), capture.quality.notes) == ("", ())


def test_without_the_time_of_the_recording_no_table_is_used(files: JitMapFiles) -> None:
    write(files.folder / f"perf-{PID}.map", END_S)
    capture = with_names_of_host(recorded(changed_s=None), files, {})
    assert name(capture) == ""
    assert "cannot be compared with the time of the recording" in capture.quality.notes[0]


def test_what_is_no_regular_file_is_not_read(files: JitMapFiles) -> None:
    os.mkfifo(files.folder / f"perf-{PID}.map")
    capture = with_names_of_host(recorded(), files, {})
    assert (name(capture), len(capture.quality.notes)) == ("", 1)


def test_no_table_is_no_reason_for_a_note(files: JitMapFiles) -> None:
    assert with_names_of_host(recorded(), files, {}).quality.notes == ()


def test_the_dump_of_a_process_is_preferred(files: JitMapFiles) -> None:
    write(files.folder / f"perf-{PID}.map", END_S)
    dump = files.folder / f"jit-{PID}.dump"
    header = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, PID, 0, 0)
    body = struct.pack("<IIQQQQ", PID, PID, 0x1000, 0x1000, 0x10, 1) + b"from the dump\0"
    dump.write_bytes(header + struct.pack("<IIQ", 0, 16 + len(body), 0) + body)
    os.utime(dump, (END_S, END_S))
    assert name(with_names_of_host(recorded(), files, {PID: str(dump)})) == "from the dump"
    os.utime(dump, (END_S - 500, END_S - 500))
    capture = with_names_of_host(recorded(), files, {PID: str(dump)})
    assert (name(capture), len(capture.quality.notes)) == ("", 1)
