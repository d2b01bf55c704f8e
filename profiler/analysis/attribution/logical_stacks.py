"""Logical stacks: physical frames expanded into their inline chains, as one prefix tree per capture."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from profiler.analysis.attribution.level_order import Levels, stable_order
from profiler.analysis.attribution.prefix_merge import MergedTree, merge_equal_paths
from profiler.model.arrays import Int32Column, Int64Column, UInt8Column, ranked
from profiler.model.category import Places
from profiler.model.quick_dataclass import dataclass
from profiler.model.stack_table import depth_levels
from profiler.model.symbols import SymbolizedCapture

_IDENTITY_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LogicalStacks:
    """A prefix tree with one row per inline frame, sorted by depth (``prefix[i] < i``, -1 = outermost); the innermost frame
    of an inline chain is the innermost row.  Stacks that differ only inside one source line are one row.

    ``place``: row of ``places``.  ``line``: 1-based, 0 = unknown or not kept.  ``symbol``: function row of the physical
    function that the row lies in (the outermost of its chain).  ``mode``: ``CpuMode``.  ``has_debug_info``: 1 where the
    code lies in a unit with DWARF.  ``innermost``: row of the innermost frame of each stack of the capture.  ``levels``:
    the rows of each depth, outermost first.
    """

    prefix: Int32Column
    place: Int32Column
    line: Int32Column
    symbol: Int32Column
    mode: UInt8Column
    has_debug_info: UInt8Column
    innermost: Int32Column
    places: Places
    levels: Levels

    def __len__(self) -> int:
        return len(self.prefix)

    def function(self) -> Int32Column:
        """Function row of each row."""
        return self.places.function[self.place]

    def rows_leaf_first(self, row: int) -> list[int]:
        """The rows of one stack, innermost first (for display and explanations; hot code walks the levels)."""
        rows = []
        while row >= 0:
            rows.append(row)
            row = int(self.prefix[row])
        return rows


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Spots:
    """The distinct chains: ``frame`` is one frame row per chain, ``chain_of_frame`` the chain of every frame."""

    frame: Int32Column
    chain_of_frame: Int64Column


def expand(symbolized: SymbolizedCapture, keep_lines: bool = True) -> LogicalStacks:
    """The logical stacks of a capture.  Without ``keep_lines`` the tree is smaller and ``line`` is 0 throughout."""
    stacks, chains, frames = symbolized.capture.stacks, symbolized.chains, symbolized.capture.frames
    place_of_entry, places = _places(symbolized)
    lines = chains.line if keep_lines else np.zeros_like(chains.line)
    spots = _distinct_chains(symbolized, place_of_entry, lines)
    merged = merge_equal_paths(stacks.prefix, spots.chain_of_frame[stacks.frame], depth_levels(stacks.prefix))
    frame = spots.frame[merged.label]
    rows = _expanded(merged, np.diff(chains.start)[frame])
    entry = (chains.start[1:] - 1)[frame][rows.physical] - rows.position
    return LogicalStacks(
        prefix=rows.prefix,
        place=place_of_entry[entry],
        line=lines[entry],
        symbol=chains.function[chains.start[1:] - 1][frame][rows.physical],
        mode=frames.mode[frame][rows.physical],
        has_debug_info=symbolized.has_debug_info[frame][rows.physical],
        innermost=rows.innermost[merged.row_of],
        places=places,
        levels=rows.levels,
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _ExpandedRows:
    """Logical rows sorted by depth.  ``physical``: the merged physical row each belongs to, ``position``: its place in the
    inline chain, 0 = outermost.  ``innermost``: per physical row, its innermost logical row."""

    prefix: Int32Column
    physical: Int32Column
    position: Int32Column
    innermost: Int32Column
    levels: Levels


def _expanded(merged: MergedTree, length: Int32Column) -> _ExpandedRows:
    """``length``: of the inline chain of each physical row."""
    end = np.cumsum(length, dtype=np.int64).astype(np.int32)
    physical = np.repeat(np.arange(len(length), dtype=np.int32), length)
    position = np.arange(len(physical), dtype=np.int32) - (end - length)[physical]
    depth_before = np.zeros(len(length) + 1, np.int32)  # logical frames outside the chain; the last answers for prefix -1
    for level in merged.levels:
        caller = merged.prefix[level]
        depth_before[level] = np.where(caller >= 0, depth_before[caller] + length[caller], 0)
    depth = depth_before[physical] + position
    order = stable_order(depth)
    rank = np.empty(len(order) + 1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    rank[-1] = -1
    # The outermost row of a chain hangs on the innermost row of the caller's chain, the others on the row before.
    prefix = np.arange(-1, len(order) - 1, dtype=np.int32)
    first = position == 0
    callers = merged.prefix[physical[first]]
    prefix[first] = np.where(callers >= 0, end[callers] - 1, -1)
    bounds = np.cumsum([0, *np.bincount(depth)]).tolist()
    return _ExpandedRows(
        prefix=rank[prefix[order]],
        physical=physical[order],
        position=position[order],
        innermost=rank[end - 1],
        levels=tuple(slice(low, high) for low, high in itertools.pairwise(bounds)),
    )


def _places(symbolized: SymbolizedCapture) -> tuple[Int32Column, Places]:
    """The place of each chain entry, and the distinct places in ascending (function, file, DSO) order."""
    chains, frames = symbolized.chains, symbolized.capture.frames
    dso = np.repeat(frames.dso, np.diff(chains.start))
    inverse, first = _distinct([chains.function, chains.file, dso])
    return inverse, Places(chains.function[first], chains.file[first], dso[first])


def _distinct_chains(symbolized: SymbolizedCapture, place_of_entry: Int32Column, lines: Int32Column) -> _Spots:
    """Frames with equal chains (places, lines), mode and debug information get one number.

    Chains are interned from the outside inward, position by position, so equality is exact.
    """
    frames, chains = symbolized.capture.frames, symbolized.chains
    entry_label, _ = _distinct([place_of_entry, lines])
    length = np.diff(chains.start)
    chain, _ = _distinct([frames.mode, symbolized.has_debug_info])
    chain = chain.astype(np.int32)
    for position in range(int(length.max(initial=0))):
        longer = np.flatnonzero(length > position)
        label = entry_label[chains.start[1:][longer] - 1 - position]
        numbers, _ = _distinct([chain[longer], label])
        chain[longer] = numbers + (int(chain.max(initial=0)) + 1)
    chain_of_frame, frame = ranked(chain)
    return _Spots(frame.astype(np.int32), chain_of_frame.astype(np.int64))


def _distinct(columns: Sequence[Int32Column | UInt8Column]) -> tuple[Int32Column, Int64Column]:
    """(number of each row among the distinct rows, one row per number); values may be -1."""
    identity, limit = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        width = int(column.max(initial=0)) + 2
        if limit * width > _IDENTITY_LIMIT:
            identity = ranked(identity)[0].astype(np.int64)
            limit = len(identity)
        identity = identity * width + (column + np.int64(1))
        limit *= width
    return ranked(identity)
