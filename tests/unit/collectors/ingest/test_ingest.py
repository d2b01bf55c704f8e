"""Small recordings written by hand, ingested whole."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest.ingest import IngestEnvironment, ingest
from collectors.perf_data.reader import open_recording
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.dso import DsoKind
from profiler.model.run import CaptureInfo, HostFacts, ProgramFacts, RunMode
from profiler.model.sample_table import StackState
from support import perf_data_writer as writer
from support.ingested_recordings import KERNEL, KERNEL_CODE, USER, NamedKernel, info, ingested, program, stack_of
from support.no_images import NoImages
from support.perf_data_writer import EventSpec, RecordingWriter, Sample


def test_threads_by_name_and_time() -> None:
    content = program()
    content.fork(10, 11, 10, 10, time=3)
    content.comm(10, 11, b"worker", time=5)
    content.comm(10, 10, b"renamed", time=7)
    content.fork(20, 20, 10, 11, time=8)
    for time, tid in ((4, 11), (6, 11), (8, 11), (8, 10), (6, 10)):
        content.sample(Sample(time=time, tid=tid, chain=(USER, 0x400010)))
    content.sample(Sample(time=9, pid=20, tid=20, chain=(USER, 0x400010)))
    content.sample(Sample(time=10, pid=50, tid=51, chain=(USER, 0x400010)))
    content.sample(Sample(time=11, pid=0, tid=0, chain=(KERNEL, KERNEL_CODE), misc=1))
    content.sample(Sample(time=12, pid=-1, tid=-1, chain=(KERNEL, KERNEL_CODE), misc=1))
    capture = ingested(content)
    names = [
        (int(t.tid[row]), capture.strings[t.process_name[row]], capture.strings[t.thread_name[row]])
        for t in [capture.threads]
        for row in capture.samples.thread.tolist()
    ]
    assert names == [
        (11, "prog", "prog"),
        (11, "prog", "worker"),
        (10, "prog", "prog"),
        (11, "renamed", "worker"),
        (10, "renamed", "renamed"),
        (20, "worker", "worker"),
        (51, ":51", ":51"),
        (0, "swapper", "swapper"),
        (-1, ":-1", ":-1"),
    ]
    assert len(capture.threads) == 9


@pytest.mark.parametrize(("before", "is_noted"), [(2, False), (3, True)])
def test_a_few_samples_of_the_launcher_are_worth_no_note(before: int, is_noted: bool) -> None:
    """2 of 100 kept samples are 2 %, 3 are more."""
    content = RecordingWriter()
    content.comm(10, 10, b"launcher", time=1)
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/launcher", time=1)
    for time in range(2, 2 + before):
        content.sample(Sample(ip=0x400010, time=time, chain=(USER, 0x400010)))
    content.comm(10, 10, b"prog", time=10, is_exec=True)
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog", time=11)
    for time in range(20, 120):
        content.sample(Sample(ip=0x400010, time=time, chain=(USER, 0x400010)))
    capture = ingested(content, RunMode.PROFILED)
    assert len(capture.samples) == 100
    noted = f"{before} samples from before the program started were left out" in capture.quality.notes
    assert noted == is_noted


@pytest.mark.parametrize(
    ("mapped_id", "header_id", "known_id", "expected"),
    [
        (b"", b"", b"\x0a" * 20, b"\x0a" * 20),  # the program's file was gone when perf wrote its header
        (b"", b"\x0b" * 20, b"\x0a" * 20, b"\x0a" * 20),  # another build lay there by then
        (b"\x0c" * 20, b"\x0b" * 20, b"\x0a" * 20, b"\x0c" * 20),  # what the kernel saw is certain
        (b"", b"\x0b" * 20, b"", b"\x0b" * 20),
        (b"", b"", b"", b""),
    ],
)
def test_build_id_of_the_program(mapped_id: bytes, header_id: bytes, known_id: bytes, expected: bytes) -> None:
    content = RecordingWriter(features={2: writer.build_id_entry(b"/bin/prog", header_id)} if header_id else {})
    content.comm(10, 10, b"prog", time=1)
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog", time=1, build_id=mapped_id)
    content.mmap2(10, 0x500000, 0x1000, 0, b"/bin/other", time=1)
    content.sample(Sample(ip=0x400010, time=5, chain=(USER, 0x400010, 0x500010)))
    recording = open_recording(io.BytesIO(content.build()), "test.data")
    known = replace(info(RunMode.PROFILED), program=ProgramFacts(path="/bin/prog", build_id=known_id.hex()))
    capture = ingest(recording, known, IngestEnvironment(NoImages(), None))
    assert {dso.path: dso.build_id for dso in capture.dsos if dso.kind == DsoKind.FILE} == {
        "/bin/prog": expected,
        "/bin/other": b"",
    }


def test_samples_from_before_the_programs_own_exec() -> None:
    content = RecordingWriter()
    content.comm(10, 10, b"launcher", time=1)
    content.comm(10, 10, b"prog", time=10, is_exec=True)
    content.mmap2(10, 0x400000, 0x1000, 0, b"/bin/prog", time=11)
    content.fork(20, 20, 10, 10, time=12)
    content.comm(20, 20, b"child", time=20, is_exec=True)
    for time, pid in ((5, 10), (12, 10), (15, 20), (25, 20)):
        content.sample(Sample(time=time, pid=pid, tid=pid, chain=(USER, 0x400010)))
    profiled = ingested(content, RunMode.PROFILED)
    assert profiled.samples.time_ns.tolist() == [12, 15, 25]
    assert "1 sample from before the program started was left out" in profiled.quality.notes
    assert ingested(content).samples.time_ns.tolist() == [5, 12, 15, 25]


def test_losses_and_throttling() -> None:
    content = program()
    content.lost(3)
    content.lost_samples(4)
    content.throttle()
    content.sample(Sample(time=2, chain=(USER, 0x400010)))
    quality = ingested(content).quality
    assert (quality.lost_samples, quality.throttled, quality.samples) == (7, 1, 1)
    content.events = (EventSpec(read_format=16),)
    assert ingested(content).quality.lost_samples == 4


def test_a_recording_without_samples_says_why() -> None:
    capture = ingested(program())
    assert len(capture.samples) == len(capture.stacks) == len(capture.frames) == 0
    (note,) = [note for note in capture.quality.notes if "no samples" in note]
    assert note == "no samples; the program may have ended before the first sample of cpu-clock"
    content = program()
    content.lost(3)
    assert "no samples; all 3 were lost" in ingested(content).quality.notes


def test_states_without_binaries() -> None:
    content = program()
    content.sample(Sample(time=2, chain=(USER, 0x400010, 0x400020)))
    content.sample(Sample(time=3, chain=(KERNEL, KERNEL_CODE), misc=1))
    content.sample(Sample(time=4, chain=(USER, *range(0x400000, 0x400000 + 127))))
    capture = ingested(content)
    assert capture.samples.state.tolist() == [StackState.ROOTLESS, StackState.NO_USER_STACK, StackState.TRUNCATED]
    assert (capture.quality.rootless, capture.quality.no_user_stack, capture.quality.truncated) == (1, 1, 1)


def test_facts_fill_only_what_is_empty() -> None:
    content = program(EventSpec(is_frequency=True, period=1999))
    content.features = {
        3: writer.feature_string("host-1"),
        4: writer.feature_string("6.1.0"),
        5: writer.feature_string("6.1.187"),
        11: writer.feature_strings(["perf", "record", "--", "./prog", "x"]),
    }
    recording = open_recording(io.BytesIO(content.build()), "test.data")
    environment = IngestEnvironment(NoImages(), None)
    filled = ingest(recording, info(), environment).info
    assert (filled.host.hostname, filled.host.kernel) == ("host-1", "6.1.0")
    assert (filled.perf.event, filled.perf.frequency_hz, filled.perf.call_graph) == ("cpu-clock", 1999, "fp")
    assert (filled.perf.perf_version, filled.command) == ("6.1.187", ("./prog", "x"))
    given_info = CaptureInfo(info().identity, host=HostFacts(hostname="mine"), command=("other",))
    kept = ingest(recording, given_info, environment).info
    assert (kept.host, kept.command) == (HostFacts(hostname="mine"), ("other",))


ADDRESSES = st.sampled_from([0x400010, 0x400020, 0x400030, 0x999000, KERNEL_CODE, KERNEL_CODE + 64, KERNEL, USER, 0])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 10**6), st.lists(ADDRESSES, max_size=8)), max_size=30))
def test_nothing_is_lost(rows: list[tuple[int, int, list[int]]]) -> None:
    content = program()
    for time, period, chain in rows:
        content.sample(Sample(time=time, period=period, chain=chain))
    capture = ingested(content)
    assert len(capture.samples) == len(rows)
    assert int(capture.samples.weight.sum()) == sum(period for _, period, _ in rows)
    assert (capture.stacks.prefix < np.arange(len(capture.stacks))).all()
    ordered = sorted(rows, key=lambda row: row[0])
    for row, (_, _, chain) in enumerate(ordered):
        addresses = [at for at in chain if at < 2**64 - 4095] or [0x401000]
        offsets = [at - 0x400000 + 0x2000 if 0x400000 <= at < 0x410000 else at for at in addresses]
        assert [offset for _, offset, _ in stack_of(capture, row)] == offsets
    counts = capture.quality
    assert counts.complete + counts.gap_possible + counts.rootless + counts.truncated + counts.no_user_stack == len(rows)


def outcome(content: bytes) -> Capture | FormatError:
    try:
        recording = open_recording(io.BytesIO(content), "test.data")
        return ingest(recording, info(), IngestEnvironment(NoImages(), NamedKernel()))
    except FormatError as error:
        return error


@given(st.data())
def test_damaged_records_are_refused_or_give_a_sound_capture(data: st.DataObject) -> None:
    content = program(EventSpec(sample_type=writer.USUAL | writer.REGS_USER | writer.STACK_USER, user_registers=0xFF01FF))
    content.fork(11, 11, 10, 10, time=2)
    for time in (3, 4):
        chain = (KERNEL, KERNEL_CODE, USER, 0x400010, 0x400020)
        content.sample(Sample(time=time, chain=chain, registers=range(17), stack=bytes(range(64)), dynamic_size=48))
    whole = bytearray(content.build())
    first = whole.index(content.records[0])
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(first, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    capture = outcome(bytes(whole))
    if isinstance(capture, FormatError):
        assert str(capture).startswith("test.data: byte ")
        return
    assert (capture.stacks.prefix < np.arange(len(capture.stacks))).all()
    assert not len(capture.samples) or int(capture.samples.stack.max()) < len(capture.stacks)
    assert set(capture.samples.state.tolist()) <= set(map(int, StackState))


def test_records_of_unknown_types_are_told_in_one_line() -> None:
    content = program()
    for kind in (200, 300, 200):
        content.record(kind, 0, bytes(16))
    content.sample(Sample())
    capture = ingested(content)
    assert capture.quality.skipped_records == ((200, 2), (300, 1))
    assert capture.quality.notes == ("3 records of unknown types 200, 300 skipped",)
