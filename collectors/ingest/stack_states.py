"""How complete frame-pointer stacks are, judged by their outermost frame and their innermost user frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from profiler.model.arrays import BoolColumn, Int32Column, UInt8Column, UInt64Column, distinct
from profiler.model.frame_table import CpuMode, FrameTable, lookup_offsets
from profiler.model.quick_dataclass import dataclass
from profiler.model.sample_table import StackState
from profiler.model.stack_table import StackTable, depths_and_roots
from symbolize.unwind.unwinder import Unwinder

UNDECIDED = 255
# Only whether a thread starts at the outermost frame is open: no caller can be missing in between.
UNDECIDED_BUT_LINKED = 254


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StackFrames:
    """The stacks of a capture with their frames.  ``unwinder_dso``: the DSO of each frame as the unwinder numbers them."""

    stacks: StackTable
    frames: FrameTable
    unwinder_dso: Int32Column


def frame_pointer_states(leaves: Int32Column, tables: StackFrames, unwinder: Unwinder, max_frames: int) -> UInt8Column:
    """``StackState`` of each stack whose innermost frame is at ``leaves``.

    A stack is complete when a thread starts at its outermost frame, and the frame pointer leads to the caller at its
    innermost user frame.  ``max_frames``: as many as the kernel records; longer stacks were cut.
    """
    stacks = tables.stacks
    depth, root = depths_and_roots(stacks.prefix)
    user_leaf = innermost_user(leaves, stacks, tables.frames)
    outermost, innermost = stacks.frame[root[leaves]], stacks.frame[np.maximum(user_leaf, 0)]
    is_entry = _asked_once(outermost, tables, unwinder.is_thread_entry)
    is_linked = _asked_once(innermost, tables, unwinder.cfa_from_frame_pointer)
    state = np.where(is_linked, StackState.COMPLETE, StackState.GAP_POSSIBLE)
    is_cut = depth[leaves] + 1 >= max_frames
    state = np.where(is_entry, state, np.where(is_cut, StackState.TRUNCATED, StackState.ROOTLESS))
    return np.where(user_leaf < 0, StackState.NO_USER_STACK, state).astype(np.uint8)


def _asked_once(frames: Int32Column, tables: StackFrames, ask: Callable[[Int32Column, UInt64Column], BoolColumn]) -> BoolColumn:
    """The unwinder's answer for each frame; False for kernel frames and unmapped ones."""
    asked = distinct(frames)
    table = tables.frames
    asked = asked[(table.mode[asked] == CpuMode.USER) & (tables.unwinder_dso[asked] >= 0)]
    answer = np.zeros(len(table), np.bool_)
    answer[asked] = ask(tables.unwinder_dso[asked], lookup_offsets(table.offset[asked], table.is_return_address[asked]))
    return answer[frames]


def innermost_user(leaves: Int32Column, stacks: StackTable, frames: FrameTable) -> Int32Column:
    """The innermost node of each stack whose frame is user code, -1 for a stack of the kernel alone."""
    nodes = leaves.copy()
    pending = np.flatnonzero(nodes >= 0)
    while len(pending):
        at = nodes[pending]
        is_inner = frames.mode.take(stacks.frame.take(at)) != CpuMode.USER
        pending, above = pending[is_inner], stacks.prefix.take(at[is_inner])
        nodes[pending] = above
        pending = pending[above >= 0]
    return nodes
