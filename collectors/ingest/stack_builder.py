"""The prefix tree of all stacks, built from batches of frame lists.

Every node (a stack, or the outer part of one) is known by a 64-bit hash of its frames and their positions, counted from the
outermost.  The hash of an outer part is the running sum, so all nodes of a batch are hashed and looked up at once.  A node
that was found by its hash is used only after its frames have been compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from collectors.ingest.frame_lists import FrameLists
from collectors.ingest.interner import Interner, mixed
from collectors.ingest.ragged import row_positions
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt64Column
from profiler.model.stack_table import depth_levels

_POSITION_BITS = np.uint64(20)


@dataclass(frozen=True, slots=True)
class StackNodes:
    """``prefix``, ``frame`` (a frame code) per node, with ``prefix[i] < i``."""

    prefix: Int32Column
    frame: Int32Column


@dataclass(frozen=True, slots=True)
class _Batch:
    """Frame lists with the hash of every frame (leaf first) and of every whole list."""

    lists: FrameLists
    frame_hash: UInt64Column
    stack_hash: UInt64Column


class StackBuilder:
    """``mix`` turns u64 columns into hashes; a poor one costs time, never correctness."""

    def __init__(self, mix: Callable[[UInt64Column], UInt64Column] = mixed) -> None:
        self._mix = mix
        self._nodes = Interner()
        self._prefix = np.zeros(1 << 12, np.int32)
        self._frame = np.zeros(1 << 12, np.int32)
        self._count = 0
        self._by_path: dict[tuple[int, int], int] = {}

    def add(self, lists: FrameLists) -> Int32Column:
        """The node of each list; lists must not be empty."""
        batch = self._hashed(lists)
        distinct, first, inverse = np.unique(batch.stack_hash, return_index=True, return_inverse=True)
        nodes = self._find_nodes(distinct)
        is_known = nodes >= 0
        is_known[is_known] = self._is_path(nodes[is_known], lists, first[is_known])
        unknown = np.flatnonzero(~is_known)
        nodes[unknown] = self._insert(batch, first[unknown])
        result = nodes[inverse]
        self._resolve_collisions(lists, result, first, inverse)
        return result

    def _hashed(self, lists: FrameLists) -> _Batch:
        from_root = np.repeat(lists.start[1:] - 1, lists.lengths)
        from_root -= np.arange(len(from_root))
        hashes = lists.codes_leaf_first.astype(np.uint64)
        hashes <<= _POSITION_BITS
        hashes |= from_root.view(np.uint64)
        hashes = self._mix(hashes)
        return _Batch(lists, hashes, np.add.reduceat(hashes, lists.start[:-1]) if len(hashes) else hashes)

    def _find_nodes(self, hashes: UInt64Column) -> Int32Column:
        return self._nodes.find(np.maximum(hashes, np.uint64(1)))

    def _is_path(self, nodes: Int32Column, lists: FrameLists, rows: Int64Column) -> BoolColumn:
        """Whether each node's frames are those of the list in that row."""
        good = np.ones(len(nodes), np.bool_)
        going_on = np.arange(len(nodes))
        position, end = lists.start[:-1][rows], lists.start[1:][rows]
        while len(going_on):
            good[going_on] &= self._frame[nodes] == lists.codes_leaf_first[position]
            nodes, position = self._prefix[nodes], position + 1
            ended = (nodes < 0) | (position == end)
            good[going_on[ended]] &= (nodes[ended] < 0) & (position[ended] == end[ended])
            going_on, nodes, position, end = going_on[~ended], nodes[~ended], position[~ended], end[~ended]
        return good

    def _insert(self, batch: _Batch, rows: Int64Column) -> Int32Column:
        """Nodes of the lists in these rows, made where they are missing."""
        lengths = batch.lists.lengths[rows]
        # Outermost first: positions run backwards through each list.
        forward, start = row_positions(np.zeros(len(rows), np.int64), lengths)
        positions = np.repeat(batch.lists.start[1:][rows] - 1, lengths) - forward
        hashes = np.cumsum(batch.frame_hash[positions])
        before = np.concatenate([np.zeros(1, np.uint64), hashes])[start[:-1]]
        hashes -= np.repeat(before, lengths)
        np.maximum(hashes, np.uint64(1), out=hashes)
        frames = batch.lists.codes_leaf_first[positions]
        nodes = self._nodes.find(hashes)
        missing = np.flatnonzero(nodes < 0)
        if len(missing):
            nodes[missing] = self._number(hashes, missing, forward)
        prefixes = np.empty(len(nodes), np.int32)
        prefixes[1:] = nodes[:-1]
        prefixes[start[:-1]] = -1
        if len(missing):
            self._store(nodes, prefixes, frames)
        is_right = (self._frame[nodes] == frames) & (self._prefix[nodes] == prefixes)
        leaves = nodes[start[1:] - 1]
        if not is_right.all():
            wrong = np.logical_and.reduceat(is_right, start[:-1])
            for row in np.flatnonzero(~wrong).tolist():
                leaves[row] = self._exact_path(frames[start[row] : start[row + 1]].tolist())
        return leaves

    def _number(self, hashes: UInt64Column, missing: Int64Column, depth: Int64Column) -> Int32Column:
        """Numbers the missing nodes, callers before callees."""
        new, first, inverse = np.unique(hashes[missing], return_index=True, return_inverse=True)
        order = np.argsort(depth[missing[first]].astype(np.uint16), kind="stable")
        rank = np.empty(len(new), np.int32)
        rank[order] = self._nodes.add(new[order])
        return rank[inverse]

    def _store(self, nodes: Int32Column, prefixes: Int32Column, frames: Int32Column) -> None:
        """Writes the rows of the nodes that are new; of several writers of one row any will do, as all are checked."""
        new = nodes >= self._count
        self._count = len(self._nodes)
        if self._count > len(self._prefix):
            more = np.zeros(max(self._count, 2 * len(self._prefix)) - len(self._prefix), np.int32)
            self._prefix, self._frame = np.concatenate([self._prefix, more]), np.concatenate([self._frame, more])
        self._prefix[nodes[new]] = prefixes[new]
        self._frame[nodes[new]] = frames[new]

    def _resolve_collisions(self, lists: FrameLists, nodes: Int32Column, first: Int64Column, inverse: Int64Column) -> None:
        """Compares every list with the first one of the same hash and corrects ``nodes`` where they differ."""
        repeated = np.flatnonzero(first[inverse] != np.arange(len(nodes)))
        model = first[inverse[repeated]]
        lengths = lists.lengths
        differs = lengths[repeated] != lengths[model]
        same = np.flatnonzero(~differs)
        positions, start = row_positions(lists.start[:-1][repeated[same]], lengths[repeated[same]])
        models = row_positions(lists.start[:-1][model[same]], lengths[repeated[same]])[0]
        if len(same):
            unequal = lists.codes_leaf_first[positions] != lists.codes_leaf_first[models]
            differs[same] = np.logical_or.reduceat(unequal, start[:-1])
        for row in repeated[differs].tolist():
            nodes[row] = self._exact_path(lists.codes_leaf_first[lists.start[row] : lists.start[row + 1]][::-1].tolist())

    def _exact_path(self, frames_root_first: list[int]) -> int:
        """The node of a stack whose hash is taken by another one, looked up by the frames themselves."""
        node = -1
        for frame in frames_root_first:
            child = self._by_path.get((node, frame))
            if child is None:
                child = self._by_path[node, frame] = int(self._nodes.add(self._unused_key())[0])
                self._store(np.array([child], np.int32), np.array([node], np.int32), np.array([frame], np.int32))
            node = child
        return node

    def _unused_key(self) -> UInt64Column:
        key = np.array([len(self._nodes) + 1], np.uint64)
        while self._nodes.find(key)[0] >= 0:
            key += np.uint64(1)
        return key

    def finish(self, leaves: Int32Column) -> tuple[StackNodes, Int32Column]:
        """(all nodes, ``leaves`` in their numbering).  Only collisions leave nodes behind that belong to no stack."""
        prefix, frame = self._prefix[: self._count], self._frame[: self._count]
        if not self._by_path:
            return StackNodes(prefix.copy(), frame.copy()), leaves
        used = np.zeros(self._count, np.bool_)
        frontier = np.unique(leaves)
        while len(frontier):
            used[frontier] = True
            above = np.unique(prefix[frontier])
            frontier = above[(above >= 0) & ~used[above]]
        kept = np.flatnonzero(used).astype(np.int32)
        number = np.full(self._count + 1, -1, np.int32)  # the last element answers for prefix -1
        number[kept] = np.arange(len(kept), dtype=np.int32)
        order = np.concatenate(depth_levels(number[prefix[kept]]))
        number[kept[order]] = np.arange(len(kept), dtype=np.int32)
        return StackNodes(number[prefix[kept[order]]], frame[kept[order]]), number[leaves]
