"""The prefix tree of all stacks, built from batches of frame lists.

Every node (a stack, or the outer part of one) is known by a 64-bit hash: the sum over its frames, outermost first, of a random
factor of the frame times a random factor of its depth.  The hash of an outer part is the running sum, so all nodes of a batch
are hashed and looked up at once.  A node that was found by its hash is used only after its frames have been compared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from collectors.ingest.frame_lists import FrameLists
from collectors.ingest.ragged import row_positions
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt64Column, distinct
from profiler.model.interner import Interner, first_rows, mixed
from profiler.model.quick_dataclass import dataclass
from profiler.model.stack_table import depth_levels, depths_and_roots

# Room for the nodes of most recordings: what is not used of it costs no memory, and growing means to place all keys again.
_NODE_BITS = 20


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StackNodes:
    """``prefix``, ``frame`` (a frame code) per node, with ``prefix[i] < i``."""

    prefix: Int32Column
    frame: Int32Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Batch:
    """``sums``: running sum of the hashes of all frames of the batch, lists not set apart.  ``before``: that sum before each
    list begins."""

    lists: FrameLists
    sums: UInt64Column
    before: UInt64Column

    def stack_hashes(self) -> UInt64Column:
        return self.sums[self.lists.start[1:] - 1] - self.before


class StackBuilder:
    """``mix`` turns u64 columns into hashes; a poor one costs time, never correctness."""

    def __init__(self, mix: Callable[[UInt64Column], UInt64Column] = mixed) -> None:
        self._mix = mix
        self._nodes = Interner(bits=_NODE_BITS)
        # Random factors of a frame code and of a depth; a node's hash is the sum of their products.
        self._code_factor = np.zeros(0, np.uint64)
        self._depth_factor = np.zeros(0, np.uint64)
        self._prefix = np.zeros(1 << 12, np.int32)
        self._frame = np.zeros(1 << 12, np.int32)
        self._count = 0
        self._by_path: dict[tuple[int, int], int] = {}

    def add(self, lists: FrameLists) -> Int32Column:
        """The node of each list; lists must not be empty."""
        batch = self._hashed(lists)
        hashes = _usable(batch.stack_hashes())
        model = first_rows(hashes)
        distinct = np.flatnonzero(model == np.arange(len(model)))
        result = np.empty(len(model), np.int32)
        result[distinct] = self._paths(batch, distinct, self._nodes.find(hashes[distinct]))
        result = result[model]
        self._resolve_collisions(lists, result, model)
        return result

    def add_nodes(self, nodes: StackNodes) -> Int32Column:
        """The node of each node of another builder, whose frame codes are those of this one."""
        known = len(self._nodes)
        numbers = self._nodes.intern(_usable(self._path_hashes(nodes)))[0]
        prefixes = np.where(nodes.prefix >= 0, numbers[nodes.prefix], np.int32(-1))
        new = np.flatnonzero(numbers >= known)
        if len(new):
            self._store(numbers[new], prefixes[new], nodes.frame[new])
        is_right = (self._frame.take(numbers) == nodes.frame) & (self._prefix.take(numbers) == prefixes)
        if not is_right.all():
            self._add_one_by_one(nodes, is_right, numbers)
        return numbers

    def _path_hashes(self, nodes: StackNodes) -> UInt64Column:
        """The hash of each node's path, by pointer doubling: after step k it sums over up to 2**k frames."""
        depth, _ = depths_and_roots(nodes.prefix)
        self._code_factor = self._factors(self._code_factor, int(nodes.frame.max(initial=0)), 0)
        self._depth_factor = self._factors(self._depth_factor, int(depth.max(initial=0)) + 1, 1 << 40)
        # The last element stands for what is outside of the outermost frame.
        sums = np.append(self._code_factor.take(nodes.frame) * self._depth_factor.take(depth), np.uint64(0))
        above = np.append(nodes.prefix, np.int32(-1))
        while int(above.max()) >= 0:
            sums, above = sums + sums.take(above), above.take(above)
        return sums[:-1]

    def _add_one_by_one(self, nodes: StackNodes, is_right: BoolColumn, numbers: Int32Column) -> None:
        """Corrects ``numbers`` of nodes whose hash is taken by another path, and of all nodes below such."""
        for row in range(len(numbers)):
            above = int(nodes.prefix[row])
            is_right[row] &= above < 0 or is_right[above]
            if not is_right[row]:
                path, node = [], row
                while node >= 0:
                    path.append(int(nodes.frame[node]))
                    node = int(nodes.prefix[node])
                numbers[row] = self._exact_path(path[::-1])

    def _hashed(self, lists: FrameLists) -> _Batch:
        depth = row_positions(np.zeros(len(lists.start) - 1, np.int64), lists.lengths)[0]
        self._code_factor = self._factors(self._code_factor, int(lists.codes_root_first.max(initial=0)), 0)
        self._depth_factor = self._factors(self._depth_factor, int(lists.lengths.max(initial=0)), 1 << 40)
        sums = self._code_factor.take(lists.codes_root_first)
        sums *= self._depth_factor[depth]
        np.cumsum(sums, out=sums)
        before = np.concatenate([np.zeros(1, np.uint64), sums])[lists.start[:-1]]
        return _Batch(lists, sums, before)

    def _factors(self, factors: UInt64Column, needed: int, salt: int) -> UInt64Column:
        """Factors for 0 .. ``needed``, the ones at hand kept."""
        if needed < len(factors):
            return factors
        return self._mix(np.arange(salt + 1, salt + 2 * needed + 256, dtype=np.uint64)) | np.uint64(1)

    def _paths(self, batch: _Batch, rows: Int64Column, nodes: Int32Column) -> Int32Column:
        """Nodes of the lists in these rows, made where they are missing; ``nodes``: what their hashes lead to, -1 nothing."""
        is_missing = nodes < 0
        known = np.flatnonzero(~is_missing)
        is_certain = bool(self._is_path(nodes[known], batch.lists, rows[known]).all())
        if is_certain and is_missing.any():
            shared = _shared_lengths(batch.lists, rows)[is_missing]
            nodes[is_missing], is_right = self._look_up(batch, rows[is_missing], shared)
            is_certain = bool(is_right.all())
        if is_certain:
            return nodes
        # What a list shares with the one before is right only if that one is: compare all frames of all.
        nodes, is_right = self._look_up(batch, rows, np.zeros(len(rows), np.int64))
        for row in np.flatnonzero(~is_right).tolist():
            start, end = batch.lists.start[rows[row] : rows[row] + 2].tolist()
            nodes[row] = self._exact_path(batch.lists.codes_root_first[start:end].tolist())
        return nodes

    def _is_path(self, nodes: Int32Column, lists: FrameLists, rows: Int64Column) -> BoolColumn:
        """Whether each node's frames are those of the list in that row."""
        good = np.ones(len(nodes), np.bool_)
        going_on = np.arange(len(nodes))
        position, start = lists.start[1:][rows] - 1, lists.start[:-1][rows]
        while len(going_on):
            good[going_on] &= self._frame.take(nodes) == lists.codes_root_first[position]
            nodes, position = self._prefix.take(nodes), position - 1
            ended = (nodes < 0) | (position < start)
            if ended.any():
                good[going_on[ended]] &= (nodes[ended] < 0) & (position[ended] < start[ended])
                kept = np.flatnonzero(~ended)
                going_on, nodes, position, start = going_on[kept], nodes[kept], position[kept], start[kept]
        return good

    def _look_up(self, batch: _Batch, rows: Int64Column, shared: Int64Column) -> tuple[Int32Column, BoolColumn]:
        """(node of each list, whether its path has the frames of the list from its ``shared`` outermost ones on)."""
        # One frame more leads to the node that the rest hangs on.
        has_caller = shared > 0
        lengths = batch.lists.lengths[rows] - shared + has_caller
        positions, start = row_positions(batch.lists.start[:-1][rows] + shared - has_caller, lengths)
        frames = batch.lists.codes_root_first[positions]
        # New nodes are numbered in the order of their first occurrence: callers before callees, as in every list.
        known = len(self._nodes)
        nodes, _ = self._nodes.intern(_usable(batch.sums[positions] - np.repeat(batch.before[rows], lengths)))
        prefixes = np.empty(len(nodes), np.int32)
        prefixes[1:] = nodes[:-1]
        prefixes[start[:-1]] = -1
        callers = start[:-1][has_caller]
        is_new = nodes >= known
        is_new[callers] = False
        new = np.flatnonzero(is_new)
        if len(new):
            self._store(nodes[new], prefixes[new], frames[new])
        is_right = self._frame.take(nodes) == frames
        is_right &= self._prefix.take(nodes) == prefixes
        is_right[callers] = True
        all_right: BoolColumn = np.logical_and.reduceat(is_right, start[:-1])
        return nodes[start[1:] - 1], all_right

    def _store(self, nodes: Int32Column, prefixes: Int32Column, frames: Int32Column) -> None:
        """Writes the rows of new nodes; of several writers of one row any will do, as all are checked."""
        self._count = len(self._nodes)
        if self._count > len(self._prefix):
            more = np.zeros(max(self._count, 2 * len(self._prefix)) - len(self._prefix), np.int32)
            self._prefix, self._frame = np.concatenate([self._prefix, more]), np.concatenate([self._frame, more])
        self._prefix[nodes] = prefixes
        self._frame[nodes] = frames

    def _resolve_collisions(self, lists: FrameLists, nodes: Int32Column, models: Int64Column) -> None:
        """Compares every list with its model, the first one of the same hash, and corrects ``nodes`` where they differ."""
        repeated = np.flatnonzero(models != np.arange(len(nodes)))
        model = models[repeated]
        lengths = lists.lengths
        differs = lengths[repeated] != lengths[model]
        same = np.flatnonzero(~differs)
        positions, start = row_positions(lists.start[:-1][repeated[same]], lengths[repeated[same]])
        models = row_positions(lists.start[:-1][model[same]], lengths[repeated[same]])[0]
        if len(same):
            unequal = lists.codes_root_first[positions] != lists.codes_root_first[models]
            differs[same] = np.logical_or.reduceat(unequal, start[:-1])
        for row in repeated[differs].tolist():
            nodes[row] = self._exact_path(lists.codes_root_first[lists.start[row] : lists.start[row + 1]].tolist())

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
        frontier = distinct(leaves)
        while len(frontier):
            used[frontier] = True
            above = distinct(prefix[frontier])
            frontier = above[(above >= 0) & ~used[above]]
        kept = np.flatnonzero(used).astype(np.int32)
        number = np.full(self._count + 1, -1, np.int32)  # the last element answers for prefix -1
        number[kept] = np.arange(len(kept), dtype=np.int32)
        order = np.concatenate(depth_levels(number[prefix[kept]]))
        number[kept[order]] = np.arange(len(kept), dtype=np.int32)
        return StackNodes(number[prefix[kept[order]]], frame[kept[order]]), number[leaves]


def _shared_lengths(lists: FrameLists, rows: Int64Column) -> Int64Column:
    """How many of the outermost frames each list has in common with the one in the row before; at least one is left over.

    Samples of one processor follow one another in recordings, so that is most of a deep stack.
    """
    lengths, first = lists.lengths[rows], lists.start[:-1][rows]
    shared = np.zeros(len(rows), np.int64)
    comparable = np.minimum(lengths[1:], lengths[:-1])
    positions, start = row_positions(first[1:], comparable)
    before = positions - np.repeat(np.diff(first), comparable)
    differing = np.flatnonzero(lists.codes_root_first[positions] != lists.codes_root_first[before])
    differing = np.append(differing, len(positions))
    shared[1:] = np.minimum(comparable, differing[np.searchsorted(differing, start[:-1])] - start[:-1])
    return np.minimum(shared, lengths - 1)


def _usable(hashes: UInt64Column) -> UInt64Column:
    """Hashes as keys of an interner, which cannot hold 0."""
    return np.maximum(hashes, np.uint64(1))
