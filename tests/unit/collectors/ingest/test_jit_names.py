"""Tables of generated code, put to small captures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from collectors.ingest.jit_names import CodeMap, generated_code_processes, parse_perf_map, with_generated_names
from profiler.model.capture import Capture, empty_capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.frame_table import FrameTable
from profiler.model.run import CaptureInfo, RunIdentity, RunMode
from profiler.model.sample_table import SampleTable
from profiler.model.stack_table import StackTable
from profiler.model.thread_table import ThreadTable

FILE, ANONYMOUS = 0, 1


def capture(frames: list[tuple[int, int, bool]], stacks: list[tuple[int, int]], samples: list[tuple[int, int]]) -> Capture:
    """``frames``: (DSO, address, is return address); ``stacks``: (prefix, frame); ``samples``: (pid, stack)."""
    pids = sorted({pid for pid, _ in samples})
    count, zeros = len(samples), np.zeros(len(samples), np.int16)
    return replace(
        empty_capture(CaptureInfo(RunIdentity("s", "v", 0, RunMode.IMPORTED))),
        strings=("name",),
        dsos=(Dso("/x/prog", b"", DsoKind.FILE), Dso("//anon", b"", DsoKind.ANONYMOUS)),
        frames=FrameTable(
            np.array([frame[0] for frame in frames], np.int32),
            np.array([frame[1] for frame in frames], np.uint64),
            np.array([frame[2] for frame in frames], np.bool_),
            np.zeros(len(frames), np.uint8),
            np.full(len(frames), -1, np.int32),
        ),
        stacks=StackTable(np.array([row[0] for row in stacks], np.int32), np.array([row[1] for row in stacks], np.int32)),
        threads=ThreadTable(*(np.array(pids, np.int32),) * 2, *(np.zeros(len(pids), np.int32),) * 2),
        samples=SampleTable(
            np.arange(count, dtype=np.uint64),
            np.array([pids.index(pid) for pid, _ in samples], np.int32),
            zeros,
            zeros,
            np.array([stack for _, stack in samples], np.int32),
            np.full(count, 7, np.int64),
            np.zeros(count, np.uint8),
        ),
    )


def stacks_of(found: Capture) -> list[list[str]]:
    """Innermost first; a frame without a name is its address."""
    frames = found.frames
    names = [
        found.strings[symbol] if symbol >= 0 else hex(offset)
        for symbol, offset in zip(frames.symbol.tolist(), frames.offset.tolist(), strict=True)
    ]
    return [[names[row] for row in found.stacks.frames_leaf_first(stack)] for stack in found.samples.stack.tolist()]


def code(*entries: tuple[int, int, str]) -> CodeMap:
    return CodeMap(
        np.array([entry[0] for entry in entries], np.uint64),
        np.array([entry[1] for entry in entries], np.uint64),
        tuple(entry[2] for entry in entries),
    )


def test_lines_of_a_table() -> None:
    lines = [b"1000 20 foo(int, char)\n", b"0x2000 8  LazyCompile:*f /a b.js:1\r\n", b"zz 1 x\n", b"10 20\n", b"5 0 empty\n",
             b"-5 3 negative\n", b"ffffffffffffffff 1 end\n", b"3000 1 \xff\n", b"4000 10 cut"]  # fmt: skip
    found = parse_perf_map(lines)
    assert found.names == ("foo(int, char)", "LazyCompile:*f /a b.js:1", "\udcff", "cut")
    assert found.start.tolist() == [0x1000, 0x2000, 0x3000, 0x4000]
    assert found.size.tolist() == [0x20, 8, 1, 0x10]


def test_later_code_takes_the_place_of_earlier() -> None:
    found = code((0x100, 0x100, "old"), (0x300, 0x10, "other"), (0x180, 0x20, "new"))
    addresses = np.array([0x19F, 0xFF, 0x100, 0x17F, 0x180, 0x1A0, 0x1FF, 0x200, 0x305], np.uint64)
    assert [found.names[row] if row >= 0 else "" for row in found.entries_at(addresses)] == [
        "new", "", "old", "old", "new", "old", "old", "", "other"
    ]  # fmt: skip


def test_a_return_address_behind_the_last_instruction_belongs_to_its_function() -> None:
    found = capture([(ANONYMOUS, 0x110, True), (ANONYMOUS, 0x110, False)], [(-1, 0), (0, 1)], [(5, 1)])
    assert stacks_of(with_generated_names(found, {5: code((0x100, 0x10, "first"), (0x110, 0x10, "second"))})) == [
        ["second", "first"]
    ]


def test_one_address_in_two_processes_is_two_functions() -> None:
    """Node 2 is shared by three processes, of which one has no table."""
    frames = [(FILE, 0x1, False), (ANONYMOUS, 0x100, False), (ANONYMOUS, 0x200, False), (FILE, 0x9, False)]
    stacks = [(-1, 0), (0, 1), (1, 2), (0, 3), (2, 3)]
    samples = [(5, 2), (6, 2), (7, 2), (5, 3), (6, 4)]
    found = capture(frames, stacks, samples)
    assert generated_code_processes(found) == (5, 6, 7)
    named = with_generated_names(found, {5: code((0x100, 1, "a"), (0x200, 1, "b")), 6: code((0x200, 1, "c"))})
    assert stacks_of(named) == [["b", "a", "0x1"], ["c", "0x100", "0x1"], ["0x200", "0x100", "0x1"], ["0x9", "0x1"],
                                ["0x9", "c", "0x100", "0x1"]]  # fmt: skip
    assert (named.stacks.prefix < np.arange(len(named.stacks))).all()
    assert named.samples.weight.tolist() == [7] * 5
    assert stacks_of(found) == [["0x200", "0x100", "0x1"]] * 3 + [["0x9", "0x1"], ["0x9", "0x200", "0x100", "0x1"]]


def test_stacks_and_frames_of_no_sample_are_left_out() -> None:
    found = capture([(FILE, 0x1, False), (ANONYMOUS, 0x100, False)], [(-1, 0), (0, 1)], [(5, 1)])
    named = with_generated_names(found, {5: code((0x100, 1, "a"))})
    assert (len(named.stacks), len(named.frames)) == (2, 2)
    assert stacks_of(named) == [["a", "0x1"]]


@pytest.mark.parametrize("maps", [{}, {9: code((0x100, 1, "a"))}])
def test_without_a_table_nothing_changes(maps: dict[int, CodeMap]) -> None:
    found = capture([(ANONYMOUS, 0x100, False)], [(-1, 0)], [(5, 0)])
    assert stacks_of(with_generated_names(found, maps)) == [["0x100"]]


def test_files_are_no_generated_code() -> None:
    assert generated_code_processes(capture([(FILE, 0x100, False)], [(-1, 0)], [(5, 0)])) == ()
