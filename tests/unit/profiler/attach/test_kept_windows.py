"""Windows read and put away, one after the other: what is left of them in memory when they are in the store."""

from __future__ import annotations

import gc
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from profiler.attach import perf_window
from profiler.attach.kept_windows import KeptWindows
from profiler.attach.perf_window import PerfWindow
from profiler.attach.window import PERF_CPU
from profiler.experiment.run.run_recording import RunRecording
from profiler.model.attach_summary import AttachSummary, KeptWindow
from profiler.model.run import CaptureInfo, Metric, PerfSettings, RunIdentity, RunMode, RunOutcome
from profiler.store.records import SessionStart
from profiler.store.store import Store, open_store
from support.collected_garbage import unreachable_objects
from support.elf_programs import system_library
from support.perf_data_writer import USER_MARKER, RecordingWriter, Sample
from symbolize.locate import Locator

OWN = ("profiler", "collectors", "symbolize", "reports")
START = SessionStart("2026-03-01T10:00:00+00:00", "host-a", ("attach",), 0, has_rounds=True)
CHILDREN = 40


@dataclass(slots=True)
class Told:
    lines: list[str] = field(default_factory=list)

    def told(self, line: str) -> None: ...

    def attached(self, session: str) -> None: ...

    def begun(self, begun_ns: int) -> None: ...

    def window_kept(self, window: KeptWindow) -> None:
        self.lines.append(f"{window.number}: {window.samples}")

    def ended(self, summary: AttachSummary) -> None: ...


def recording(path: Path, number: int, program: Path) -> Path:
    """Children of a program that come and go, each with a sample, other ones in every window."""
    content = RecordingWriter()
    content.comm(10, 10, b"prog", time=1)
    content.mmap2(10, 0x400000, 0x10000, 0x2000, bytes(program), time=1)
    for child in range(1000 * (number + 1), 1000 * (number + 1) + CHILDREN):
        content.fork(child, child, 10, 10, time=child)
        content.comm(child, child, b"child-%d" % child, time=child)
        content.sample(Sample(time=child + 1, pid=child, tid=child, chain=(USER_MARKER, 0x400010, 0x400000 + child)))
    path.write_bytes(content.build())
    return path


def window(directory: Path, session: str, number: int, locator: Locator, program: Path = Path("/bin/prog")) -> PerfWindow:
    info = CaptureInfo(
        RunIdentity(session, "node", number, RunMode.PROFILED, number, instance="prog-10"),
        perf=PerfSettings(event="cpu-clock", frequency_hz=99, call_graph="fp"),
        outcome=RunOutcome(wall_ns=10**9, user_ns=10**8, metrics=(Metric(PERF_CPU, 1e6, "ns", (1e6,)),)),
        started_at="2026-03-01T10:00:00.000+00:00",
    )
    path = recording(directory / f"window-{number}", number, program)
    return PerfWindow(RunRecording(path, ("perf", "record"), ()), info, locator, "", begun_ns=0, gap_ns=-1)


def own_objects() -> Counter[str]:
    gc.collect()  # what tests before this one left
    kinds = [type(each) for each in gc.get_objects()]
    return Counter(kind.__qualname__ for kind in kinds if str(kind.__module__).partition(".")[0] in OWN)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def test_what_is_held_does_not_grow_with_the_number_of_windows(store: Store, tmp_path: Path) -> None:
    """Ten windows after the tenth there are as many objects of slotscope as before, and none waits for the collector."""
    session, told, locator = store.begin_session(START), Told(), Locator()
    with KeptWindows(store, told, "", 0) as kept:

        def keep(numbers: range) -> None:
            for number in numbers:
                kept.submit(window(tmp_path, session, number, locator))
                kept.wait()

        keep(range(10))
        held = own_objects()
        with unreachable_objects() as left:
            keep(range(10, 20))
        assert left == []
        assert own_objects() == held
    assert told.lines == [f"{number}: {CHILDREN}" for number in range(20)]
    assert kept.totals.samples == 20 * CHILDREN
    assert len(store.runs(session)) == 20


def test_programs_that_were_run_once_are_closed(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As beside a build machine: another program in every window.  Each is mapped."""
    monkeypatch.setattr(perf_window, "MOST_OPEN_BINARIES", 2)
    session, locator = store.begin_session(START), Locator()
    with KeptWindows(store, Told(), "", 0) as kept:
        for number in range(8):
            program = Path(shutil.copy(system_library("libm.so.6"), tmp_path / f"program-{number}"))
            kept.submit(window(tmp_path, session, number, locator, program))
            kept.wait()
            assert mapped_below(tmp_path) == {tmp_path / f"program-{each}" for each in range(max(0, number - 1), number + 1)}


def mapped_below(directory: Path) -> set[Path]:
    """Files that this process has mapped."""
    paths = [Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines()]
    return {path for path in paths if path.is_relative_to(directory)}
