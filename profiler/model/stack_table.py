"""Stacks as a prefix tree: one row per distinct stack and per distinct outer part of one.

Row i is the stack of row ``prefix[i]`` (its callers) plus ``frame[i]`` innermost; ``prefix[i] == -1`` marks an outermost
frame and ``prefix[i] < i`` always holds, so one forward pass visits callers before callees.
"""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import Int32Column
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StackTable:
    """``prefix``: row of the caller's stack or -1.  ``frame``: row of the frame table."""

    prefix: Int32Column
    frame: Int32Column

    def __len__(self) -> int:
        return len(self.prefix)

    def frames_leaf_first(self, stack: int) -> list[int]:
        """Frame rows of one stack, innermost first (for display; hot code walks the columns)."""
        frames = []
        while stack >= 0:
            frames.append(int(self.frame[stack]))
            stack = int(self.prefix[stack])
        return frames


def stack_depths(prefix: Int32Column) -> Int32Column:
    """How many callers each row's stack has."""
    depth = np.zeros(len(prefix), np.int32)
    pending = np.flatnonzero(prefix >= 0)
    # Pointer doubling: after step k every row knows its distance to the ancestor 2**k above it.
    jump = prefix.copy()
    depth[pending] = 1
    while len(pending):
        above = jump[pending]
        depth_above = depth[above]
        next_jump = jump[above]
        depth[pending] += depth_above
        jump[pending] = next_jump
        pending = pending[next_jump >= 0]
    return depth


def depth_levels(prefix: Int32Column) -> list[Int32Column]:
    """Rows grouped by depth, outermost first: level k holds the rows whose stack has k + 1 frames.

    Code that passes values from callers to callees handles one level per numpy step.  Shape: a list of index columns that
    together hold every row once.
    """
    depth = stack_depths(prefix)
    # numpy sorts 16-bit numbers by counting.
    is_shallow = int(depth.max(initial=0)) < 1 << 16
    order = np.argsort(depth.astype(np.uint16) if is_shallow else depth, kind="stable").astype(np.int32)
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    return [order[a:b] for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]


def depths_and_roots(prefix: Int32Column) -> tuple[Int32Column, Int32Column]:
    """(number of callers, outermost node) of every node, by pointer doubling."""
    root = np.where(prefix >= 0, prefix, np.arange(len(prefix), dtype=np.int32))
    depth = (prefix >= 0).astype(np.int32)
    while True:
        step = depth.take(root)
        if not step.any():
            return depth, root
        depth = depth + step
        root = root.take(root)
