"""The prefix tree holds exactly the stacks that were put in, also when hashes collide."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest.frame_lists import FrameLists
from collectors.ingest.stack_builder import StackBuilder, StackNodes
from profiler.model.arrays import UInt64Column
from profiler.model.interner import mixed

Stack = list[int]
BATCHES = st.lists(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=7), min_size=1, max_size=12), max_size=5)


def lists_of(stacks: list[Stack]) -> FrameLists:
    start = np.cumsum([0] + [len(stack) for stack in stacks])
    return FrameLists(np.array([frame for stack in stacks for frame in stack], np.int32), start.astype(np.int64))


def path(nodes: StackNodes, node: int) -> Stack:
    frames = []
    while node >= 0:
        frames.append(int(nodes.frame[node]))
        node = int(nodes.prefix[node])
    return frames[::-1]


def zeros(values: UInt64Column) -> UInt64Column:
    return np.zeros_like(values)


def one_bit(values: UInt64Column) -> UInt64Column:
    return values & np.uint64(2)


@pytest.mark.parametrize("mix", [mixed, one_bit, zeros])
@given(BATCHES)
def test_every_stack_comes_back(mix: Callable[[UInt64Column], UInt64Column], batches: list[list[Stack]]) -> None:
    builder = StackBuilder(mix)
    leaves = [builder.add(lists_of(batch)) for batch in batches]
    stacks = [stack for batch in batches for stack in batch]
    nodes, leaf = builder.finish(np.concatenate([np.zeros(0, np.int32), *leaves]))
    assert [path(nodes, node) for node in leaf.tolist()] == stacks
    assert (nodes.prefix < np.arange(len(nodes.prefix))).all()


@pytest.mark.parametrize("mix", [mixed, one_bit, zeros])
@given(BATCHES, BATCHES)
def test_nodes_of_another_builder_keep_their_stacks(
    mix: Callable[[UInt64Column], UInt64Column], own: list[list[Stack]], others: list[list[Stack]]
) -> None:
    builder, other = StackBuilder(mix), StackBuilder()
    nothing = np.zeros(0, np.int32)
    own_leaves = [builder.add(lists_of(batch)) for batch in own]
    nodes, leaves = other.finish(np.concatenate([nothing, *(other.add(lists_of(batch)) for batch in others)]))
    numbers = builder.add_nodes(nodes)
    later = [builder.add(lists_of(batch)) for batch in own]
    found, leaf = builder.finish(np.concatenate([nothing, *own_leaves, numbers[leaves], *later]))
    stacks = [stack for batch in (*own, *others, *own) for stack in batch]
    assert [path(found, node) for node in leaf.tolist()] == stacks
    assert (found.prefix < np.arange(len(found.prefix))).all()


@given(BATCHES)
def test_one_row_per_distinct_stack_and_outer_part(batches: list[list[Stack]]) -> None:
    builder = StackBuilder()
    for batch in batches:
        builder.add(lists_of(batch))
    nodes, _ = builder.finish(np.zeros(0, np.int32))
    expected = {tuple(stack[: length + 1]) for batch in batches for stack in batch for length in range(len(stack))}
    assert sorted(tuple(path(nodes, node)) for node in range(len(nodes.prefix))) == sorted(expected)


def test_very_deep_stacks_and_large_frame_codes() -> None:
    builder = StackBuilder()
    stacks = [list(range(8000)), list(range(8000))[:-1], [2_000_000] * 5000]
    leaves = builder.add(lists_of(stacks))
    nodes, leaf = builder.finish(leaves)
    assert [path(nodes, node) for node in leaf.tolist()] == stacks
    assert len(nodes.prefix) == 13_000
