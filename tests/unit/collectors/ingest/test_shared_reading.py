"""Samples read by several processes give the capture that one process gives, number by number."""

from __future__ import annotations

import dataclasses
import io
import os
import random
import signal
from collections.abc import Sequence

import numpy as np
import pytest

import collectors.ingest.shared_reading as shared_reading
import collectors.perf_data.reader as reader
from collectors.ingest.ingest import IngestEnvironment, ingest
from collectors.perf_data.reader import open_recording
from profiler.errors import FormatError
from profiler.model.capture import Capture
from support.ingested_recordings import KERNEL, KERNEL_CODE, USER, NamedKernel, info, program
from support.no_images import NoImages
from support.perf_data_writer import EventSpec, RecordingWriter, Sample

SAMPLES, WINDOW = 400, 23
NO_CODE = (0, 1 << 50, 2**64 - 5000, 0x7FFF_0000_0000)


def recording(seed: int = 1, *events: EventSpec) -> RecordingWriter:
    """Deep and shallow stacks of several processes, with addresses that no process has, and samples of no event."""
    draw = random.Random(seed)
    content = program(*(events or (EventSpec(), EventSpec())))
    for pid in range(20, 26):
        content.fork(pid, pid, 10, 10, time=2 + pid)
        content.mmap2(pid, 0x700000 + pid * 0x10000, 0x8000, 0, b"/lib/lib%d.so" % (pid % 3), time=3 + pid)
    for time in range(SAMPLES):
        pid = draw.choice((10, 20, 21, 22, 23, 24, 25, 0, 99))
        code = [0x400000, 0x700000 + pid * 0x10000]
        user = [draw.choice(code) + draw.randrange(0, 0x60, 3) for _ in range(draw.randrange(12))]
        if draw.random() < 0.1:
            user.insert(draw.randrange(len(user) + 1), draw.choice(NO_CODE))
        kernel = [KERNEL_CODE + draw.randrange(0, 0x900, 0x40) for _ in range(draw.randrange(3))]
        chain = [*((KERNEL, *kernel) if kernel else ()), USER, *user]
        unknown = 4711 if draw.random() < 0.05 else None
        content.sample(Sample(time=100 + time // 2, pid=pid, tid=pid, chain=chain, cpu=time % 2, sample_id=unknown))
    return content


def read(monkeypatch: pytest.MonkeyPatch, content: RecordingWriter, processes: int) -> Capture:
    monkeypatch.setattr(reader, "CHUNK_SAMPLES", WINDOW)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(processes)))
    opened = open_recording(io.BytesIO(content.build()), "test.data")
    return ingest(opened, info(), IngestEnvironment(NoImages(), NamedKernel()))


def differences(first: object, second: object, name: str = "capture") -> list[str]:
    if isinstance(first, np.ndarray):
        return [] if isinstance(second, np.ndarray) and np.array_equal(first, second) else [name]
    if dataclasses.is_dataclass(first):
        parts = [field.name for field in dataclasses.fields(first)]
        return [each for part in parts for each in differences(getattr(first, part), getattr(second, part), f"{name}.{part}")]
    return [] if first == second else [name]


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with the copies that are made."""
    made: list[int] = []
    fork = os.fork

    def counting() -> int:
        process = fork()
        made.append(process)
        return process

    monkeypatch.setattr(os, "fork", counting)
    # Tests before this one may have left threads behind that wait for nothing.
    monkeypatch.setattr(shared_reading, "can_fork", lambda: True)
    return made


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("processes", [2, 3, 4])
def test_the_capture_is_that_of_one_process(
    monkeypatch: pytest.MonkeyPatch, forks: list[int], processes: int, seed: int
) -> None:
    alone = read(monkeypatch, recording(seed), 1)
    assert not forks
    assert differences(alone, read(monkeypatch, recording(seed), processes)) == []
    assert len(forks) == processes - 1
    assert len(alone.samples) > 0.9 * SAMPLES
    assert len(alone.samples) < SAMPLES


def test_what_a_killed_copy_should_have_read_is_read_here(monkeypatch: pytest.MonkeyPatch, forks: list[int]) -> None:
    alone = read(monkeypatch, recording(), 1)

    def killed(reading: shared_reading.SampleReading, windows: Sequence[slice]) -> bytes:
        os.kill(os.getpid(), signal.SIGKILL)
        return b""

    monkeypatch.setattr(shared_reading.SampleReading, "_part", killed)
    assert differences(alone, read(monkeypatch, recording(), 3)) == []
    assert len(forks) == 2


def test_where_no_process_can_be_made_one_reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = read(monkeypatch, recording(), 1)

    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    assert differences(alone, read(monkeypatch, recording(), 4)) == []


def test_damage_that_a_copy_meets_is_told(monkeypatch: pytest.MonkeyPatch, forks: list[int]) -> None:
    broken = recording()

    def damaged(reading: shared_reading.SampleReading, windows: Sequence[slice], collector: object) -> None:
        if windows[-1].stop == SAMPLES:
            raise FormatError("test.data", "sample without a period", 7)

    monkeypatch.setattr(shared_reading.SampleReading, "_read", damaged)
    with pytest.raises(FormatError, match="sample without a period"):
        read(monkeypatch, broken, 2)
    assert len(forks) == 1


@pytest.mark.parametrize("windows", range(12))
@pytest.mark.parametrize("processes", range(1, 5))
def test_every_window_has_one_reader(windows: int, processes: int) -> None:
    """The shares put together are all windows in order, and no process reads two more than another."""
    slices = [slice(at, at + 1) for at in range(windows)]
    shares = shared_reading.shares(slices, np.ones(windows, np.int64), processes)
    assert [window for share in shares for window in share] == slices
    assert len(shares) == (processes if windows >= shared_reading.FEWEST_WINDOWS else 1)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(
    ("work", "first"),
    [([1, 1, 1, 1], 2), ([9, 1, 1, 1], 1), ([3, 3, 2, 2, 2], 2), ([1, 1, 1, 1, 9], 4), ([5, 5, 1, 1, 1, 1, 1, 1], 2)],
)
def test_windows_are_shared_by_their_work(work: list[int], first: int) -> None:
    """``first``: how many windows make up half of the work, as nearly as whole windows can."""
    slices = [slice(at, at + 1) for at in range(len(work))]
    own, others = shared_reading.shares(slices, np.array(work), 2)
    assert (len(own), len(others)) == (first, len(work) - first)
