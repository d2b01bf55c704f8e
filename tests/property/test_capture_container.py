"""Whatever a capture holds comes back from its container, and nothing but a whole container gives a capture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from profiler.codec.container import decode, encode
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.event import Event
from profiler.model.frame_table import FrameTable
from profiler.model.quality import CaptureQuality
from profiler.model.run import (
    CaptureInfo,
    HostFacts,
    InputFile,
    Metric,
    PerfSettings,
    ProgramFacts,
    RunIdentity,
    RunMode,
    RunOutcome,
)
from profiler.model.sample_table import SampleTable
from profiler.model.stack_table import StackTable
from profiler.model.thread_table import ThreadTable
from support.sample_captures import run_info, same, two_stack_capture

# Lone surrogates stand for bytes of file names that are not UTF-8.
TEXT = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\udc80\udcff")), max_size=12)
COUNT = st.integers(0, 2**63 - 1)
NUMBER = st.floats(allow_nan=False)


def texts(size: int = 3) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(TEXT, max_size=size).map(tuple)


METRIC = st.builds(Metric, TEXT, NUMBER, TEXT, st.lists(NUMBER, max_size=3).map(tuple))
INFO = st.builds(
    CaptureInfo,
    identity=st.builds(RunIdentity, TEXT, TEXT, COUNT, st.sampled_from(RunMode), COUNT),
    host=st.builds(HostFacts, TEXT, TEXT, TEXT, TEXT, COUNT),
    program=st.builds(ProgramFacts, TEXT, TEXT, COUNT, TEXT, TEXT, TEXT, TEXT, st.none() | st.booleans()),
    perf=st.builds(PerfSettings, TEXT, COUNT, COUNT, TEXT, TEXT, COUNT, TEXT, texts()),
    outcome=st.builds(RunOutcome, st.integers(-64, 255), COUNT, failure=TEXT, metrics=st.lists(METRIC, max_size=2).map(tuple)),
    command=texts(),
    source=TEXT,
    inputs=st.lists(st.builds(InputFile, TEXT, COUNT, TEXT), max_size=2).map(tuple),
)
QUALITY = st.builds(
    CaptureQuality,
    samples=COUNT,
    is_unfinished=st.booleans(),
    skipped_records=st.lists(st.tuples(COUNT, COUNT), max_size=2).map(tuple),
    notes=texts(),
)


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    strings = draw(st.lists(TEXT, min_size=1, max_size=5).map(tuple))
    dsos = draw(st.lists(st.builds(Dso, TEXT, st.binary(max_size=20), st.sampled_from(DsoKind)), min_size=1, max_size=3))
    events = draw(st.lists(st.builds(Event, TEXT, TEXT, COUNT, COUNT), min_size=1, max_size=2).map(tuple))
    frames, stacks, threads, samples = (draw(st.integers(0, 6)) for _ in range(4))
    stacks = stacks if frames else 0
    samples = samples if threads else 0

    def column(rows: int, dtype: type, low: int | None = None, end: int | None = None) -> np.ndarray:
        limits = np.iinfo(dtype)
        low, last = (limits.min if low is None else low), (limits.max if end is None else end - 1)
        return draw(hnp.arrays(dtype, rows, elements=st.integers(low, max(low, last))))

    prefix = np.array([draw(st.integers(-1, row - 1)) for row in range(stacks)], np.int32)
    return Capture(
        info=draw(INFO),
        quality=draw(QUALITY),
        strings=strings,
        dsos=tuple(dsos),
        frames=FrameTable(
            column(frames, np.int32, 0, len(dsos)),
            column(frames, np.uint64),
            draw(hnp.arrays(np.bool_, frames)),
            column(frames, np.uint8, 0, 3),
            column(frames, np.int32, -1, len(strings)),
        ),
        stacks=StackTable(prefix, column(stacks, np.int32, 0, frames)),
        threads=ThreadTable(
            column(threads, np.int32),
            column(threads, np.int32),
            column(threads, np.int32, 0, len(strings)),
            column(threads, np.int32, 0, len(strings)),
        ),
        samples=SampleTable(
            column(samples, np.uint64),
            column(samples, np.int32, 0, threads),
            column(samples, np.int16),
            column(samples, np.int16, 0, len(events)),
            column(samples, np.int32, -1, stacks),
            column(samples, np.int64),
            column(samples, np.uint8, 0, 5),
        ),
        events=events,
    )


@given(captures())
def test_decode_gives_back_what_was_encoded(capture: Capture) -> None:
    data = encode(capture)
    assert same(decode(data, "x"), capture)


@given(captures())
@settings(max_examples=20)
def test_equal_captures_give_equal_bytes(capture: Capture) -> None:
    copied = replace(
        capture,
        frames=replace(capture.frames, offset=np.array(capture.frames.offset.tolist(), np.uint64)),
        strings=(*capture.strings,),
    )
    assert encode(copied) == encode(capture)


WHOLE = encode(two_stack_capture(run_info("s", "v"), repeat=40))


@given(st.integers(0, 8 * len(WHOLE) - 1))
@settings(max_examples=300)
def test_a_flipped_bit_never_gives_a_capture(bit: int) -> None:
    damaged = bytearray(WHOLE)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FormatError):
        decode(bytes(damaged), "x")


@given(st.integers(0, len(WHOLE) - 1))
def test_a_cut_file_never_gives_a_capture(length: int) -> None:
    with pytest.raises(FormatError):
        decode(WHOLE[:length], "x")


@given(st.binary(max_size=200), st.booleans())
def test_foreign_bytes_are_refused(data: bytes, has_magic: bool) -> None:
    with pytest.raises(FormatError):
        decode((WHOLE[:12] if has_magic else b"") + data, "x")
