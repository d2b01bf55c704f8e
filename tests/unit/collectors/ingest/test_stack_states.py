"""States of frame-pointer stacks, decided by two frames of each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest.stack_states import StackFrames, depths_and_roots, frame_pointer_states
from profiler.model.arrays import BoolColumn, Int32Column, UInt64Column
from profiler.model.frame_table import CpuMode, FrameTable
from profiler.model.sample_table import StackState
from profiler.model.stack_table import StackTable
from symbolize.unwind.unwinder import Unwinder

ENTRY, LINKED, LEAF, KERNEL, LOST = range(5)  # frame rows
LOOKUP_OFFSETS = {ENTRY: 0xFF, LINKED: 0x200, LEAF: 0x300}


class Answers(Unwinder):
    """Knows one entry and one place that keeps its frame pointer, by look-up offset."""

    def __init__(self) -> None:
        super().__init__(lambda _: None)

    def is_thread_entry(self, dso: Int32Column, file_offset: UInt64Column) -> BoolColumn:
        return file_offset == LOOKUP_OFFSETS[ENTRY]

    def cfa_from_frame_pointer(self, dso: Int32Column, file_offset: UInt64Column) -> BoolColumn:
        return file_offset == LOOKUP_OFFSETS[LINKED]


def states(*stacks_root_first: list[int], max_frames: int = 127) -> list[StackState]:
    prefix: list[int] = []
    frame: list[int] = []
    leaves = []
    for stack in stacks_root_first:
        for depth, row in enumerate(stack):
            prefix.append(len(prefix) - 1 if depth else -1)
            frame.append(row)
        leaves.append(len(prefix) - 1)
    frames = FrameTable(
        np.zeros(5, np.int32),
        np.array([0x100, 0x200, 0x300, 2**63, 0x400], np.uint64),
        np.array([True, False, False, False, True]),
        np.array([CpuMode.USER, CpuMode.USER, CpuMode.USER, CpuMode.KERNEL, CpuMode.USER], np.uint8),
        np.full(5, -1, np.int32),
    )
    tables = StackFrames(StackTable(np.array(prefix, np.int32), np.array(frame, np.int32)), frames, np.zeros(5, np.int32))
    found = frame_pointer_states(np.array(leaves, np.int32), tables, Answers(), max_frames)
    return [StackState(value) for value in found.tolist()]


def test_both_ends_decide() -> None:
    assert states([ENTRY, LEAF, LINKED], [ENTRY, LINKED, LEAF], [LOST, LINKED], [LEAF]) == [
        StackState.COMPLETE,
        StackState.GAP_POSSIBLE,
        StackState.ROOTLESS,
        StackState.ROOTLESS,
    ]


def test_the_innermost_user_frame_is_meant_not_the_kernels() -> None:
    assert states([ENTRY, LINKED, KERNEL, KERNEL], [ENTRY, LEAF, KERNEL], [KERNEL, KERNEL]) == [
        StackState.COMPLETE,
        StackState.GAP_POSSIBLE,
        StackState.NO_USER_STACK,
    ]


def test_a_stack_as_long_as_the_kernel_records_was_cut_unless_it_reaches_an_entry() -> None:
    assert states([LOST, *[LINKED] * 4], [ENTRY, *[LINKED] * 4], [LOST, LINKED], max_frames=5) == [
        StackState.TRUNCATED,
        StackState.COMPLETE,
        StackState.ROOTLESS,
    ]


@given(st.lists(st.integers(-1, 30), min_size=1, max_size=40))
def test_depths_and_roots(drawn: list[int]) -> None:
    prefix = [min(value, row - 1) for row, value in enumerate(drawn)]
    depth, root = depths_and_roots(np.array(prefix, np.int32))
    for row in range(len(prefix)):
        callers, node = 0, row
        while prefix[node] >= 0:
            callers, node = callers + 1, prefix[node]
        assert (int(depth[row]), int(root[row])) == (callers, node)
