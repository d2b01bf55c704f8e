"""How complete frame-pointer stacks are, judged by their outermost frame and their innermost user frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from collectors.ingest.thread_roots import ThreadRoots
from profiler.model.arrays import BoolColumn, Int32Column, UInt8Column, UInt64Column, distinct
from profiler.model.frame_table import CpuMode, FrameTable, lookup_offsets
from profiler.model.sample_table import StackState
from profiler.model.stack_table import StackTable
from symbolize.unwind.unwinder import Unwinder

UNDECIDED = 255


@dataclass(frozen=True, slots=True)
class StackFrames:
    """The stacks of a capture with their frames.  ``unwinder_dso``: the DSO of each frame as the unwinder numbers them."""

    stacks: StackTable
    frames: FrameTable
    unwinder_dso: Int32Column


@dataclass(frozen=True, slots=True)
class RootJudge:
    """Who is asked about single frames."""

    unwinder: Unwinder
    roots: ThreadRoots

    def is_entry(self, dso: Int32Column, lookup_offset: UInt64Column) -> BoolColumn:
        """Does a thread begin in the function there."""
        found = self.roots.contain(dso, lookup_offset)
        # Asked last, because the unwinder reads the symbol tables of the binaries.
        found[~found] = self.unwinder.is_thread_entry(dso[~found], lookup_offset[~found])
        return found

    def is_linked(self, dso: Int32Column, lookup_offset: UInt64Column) -> BoolColumn:
        """Does the frame pointer lead to the caller there."""
        return self.unwinder.cfa_from_frame_pointer(dso, lookup_offset)


def frame_pointer_states(leaves: Int32Column, tables: StackFrames, judge: RootJudge, max_frames: int) -> UInt8Column:
    """``StackState`` of each stack whose innermost frame is at ``leaves``.

    A stack is complete when a thread starts at its outermost frame, and the frame pointer leads to the caller at its
    innermost user frame.  ``max_frames``: as many as the kernel records; longer stacks were cut.
    """
    stacks = tables.stacks
    depth, root = depths_and_roots(stacks.prefix)
    user_leaf = innermost_user(leaves, stacks, tables.frames)
    outermost, innermost = stacks.frame[root[leaves]], stacks.frame[np.maximum(user_leaf, 0)]
    is_entry = _asked_once(outermost, tables, judge.is_entry)
    is_linked = _asked_once(innermost, tables, judge.is_linked)
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
    while True:
        inner = np.flatnonzero((nodes >= 0) & (frames.mode[stacks.frame[np.maximum(nodes, 0)]] != CpuMode.USER))
        if not len(inner):
            return nodes
        nodes[inner] = stacks.prefix[nodes[inner]]


def depths_and_roots(prefix: Int32Column) -> tuple[Int32Column, Int32Column]:
    """(number of callers, outermost node) of every node, by pointer doubling."""
    root = np.where(prefix >= 0, prefix, np.arange(len(prefix), dtype=np.int32))
    depth = (prefix >= 0).astype(np.int32)
    while True:
        step = depth[root]
        if not step.any():
            return depth, root
        depth = depth + step
        root = root[root]
