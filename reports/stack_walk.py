"""Walks a prefix tree of call stacks from the roots, in an order that depends on names only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profiler.model.arrays import Int64Column
from profiler.model.call_stacks import CallStacks


def walk(stacks: CallStacks) -> Iterator[tuple[int, list[int]]]:
    """(row, its frames root first) for every stack with weight in some run, depth first, children ordered by the name, file
    and line of their frames.  The list is the walker's own: it changes with the next step."""
    has_weight = (stacks.weight.sum(axis=1) > 0).tolist()
    children, start = _children(stacks)
    frame = stacks.frame.tolist()
    path: list[int] = []
    pending = [(row, 0) for row in reversed(children[start[0] : start[1]])]
    while pending:
        row, depth = pending.pop()
        del path[depth:]
        path.append(frame[row])
        if has_weight[row]:
            yield row, path
        pending += [(child, depth + 1) for child in reversed(children[start[row + 1] : start[row + 2]])]


def run_sums(stacks: CallStacks) -> Int64Column:
    """Self weight per stack, summed over the runs, exact."""
    return np.asarray(stacks.weight.sum(axis=1), np.int64)


def _children(stacks: CallStacks) -> tuple[list[int], list[int]]:
    """Rows grouped by parent: those of row p are ``children[start[p + 1]:start[p + 2]]``, the roots' group is the first."""
    frames = stacks.frames
    by_name = sorted(range(len(frames)), key=lambda row: (frames[row].name, frames[row].file, frames[row].line))
    rank = np.zeros(len(frames), np.int64)
    rank[by_name] = np.arange(len(frames))
    order = np.lexsort((rank[stacks.frame], stacks.prefix))
    start = np.searchsorted(stacks.prefix[order], np.arange(-1, len(stacks.prefix) + 1))
    return order.tolist(), start.tolist()
