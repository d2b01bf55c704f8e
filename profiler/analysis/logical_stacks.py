"""Logical stacks: physical frames expanded into their inline chains, as one prefix tree per capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.analysis.prefix_merge import MergedTree, merge_equal_paths
from profiler.model.arrays import Int32Column, Int64Column, UInt8Column
from profiler.model.category import Places
from profiler.model.stack_table import depth_levels
from profiler.model.symbols import SymbolizedCapture


@dataclass(frozen=True, slots=True)
class LogicalStacks:
    """A prefix tree with one row per inline frame (``prefix[i] < i``, -1 = outermost); the innermost frame of an inline
    chain is the innermost row.  Stacks that differ only inside one source line are one row.

    ``place``: row of ``places``.  ``line``: 1-based, 0 = unknown or not kept.  ``symbol``: function row of the physical
    function that the row lies in (the outermost of its chain).  ``mode``: ``CpuMode``.  ``has_debug_info``: 1 where the
    code lies in a unit with DWARF.  ``innermost``: row of the innermost frame of each stack of the capture.  ``levels``:
    rows by depth, outermost first.
    """

    prefix: Int32Column
    place: Int32Column
    line: Int32Column
    symbol: Int32Column
    mode: UInt8Column
    has_debug_info: UInt8Column
    innermost: Int32Column
    places: Places
    levels: tuple[Int32Column, ...]

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


@dataclass(frozen=True, slots=True)
class _Spots:
    """The distinct chains: ``frame`` is one frame row per chain, ``chain_of_frame`` the chain of every frame."""

    frame: Int32Column
    chain_of_frame: Int64Column


def expand(symbolized: SymbolizedCapture, keep_lines: bool = True) -> LogicalStacks:
    """The logical stacks of a capture.  Without ``keep_lines`` the tree is smaller and ``line`` is 0 throughout."""
    stacks = symbolized.capture.stacks
    place_of_entry, places = _places(symbolized)
    lines = symbolized.chains.line if keep_lines else np.zeros_like(symbolized.chains.line)
    spots = _distinct_chains(symbolized, place_of_entry, lines)
    merged = merge_equal_paths(stacks.prefix, spots.chain_of_frame[stacks.frame], depth_levels(stacks.prefix))
    frame = spots.frame[merged.label]
    chain_start = symbolized.chains.start
    length = (chain_start[1:] - chain_start[:-1])[frame]
    end = np.cumsum(length, dtype=np.int64).astype(np.int32)
    owner = np.repeat(np.arange(len(length), dtype=np.int32), length)
    position = np.arange(len(owner), dtype=np.int32) - (end - length)[owner]  # 0 = outermost of the chain
    entry = chain_start[1:][frame][owner] - 1 - position
    prefix = _expanded_prefix(merged, end, owner, position)
    outermost_entry = chain_start[1:][frame] - 1
    return LogicalStacks(
        prefix=prefix,
        place=place_of_entry[entry],
        line=lines[entry],
        symbol=symbolized.chains.function[outermost_entry][owner],
        mode=symbolized.capture.frames.mode[frame][owner],
        has_debug_info=symbolized.has_debug_info[frame][owner],
        innermost=(end - 1)[merged.row_of],
        places=places,
        levels=tuple(depth_levels(prefix)),
    )


def _expanded_prefix(merged: MergedTree, end: Int32Column, owner: Int32Column, position: Int32Column) -> Int32Column:
    """The outermost row of a chain hangs on the innermost row of the caller's chain, the others on the row before."""
    prefix = np.arange(-1, len(owner) - 1, dtype=np.int32)
    callers = merged.prefix
    base = np.where(callers >= 0, end[callers] - 1, -1).astype(np.int32)
    first = position == 0
    prefix[first] = base[owner[first]]
    return prefix


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
    _, frame, chain_of_frame = np.unique(chain, return_index=True, return_inverse=True)
    return _Spots(frame.astype(np.int32), chain_of_frame.astype(np.int64))


def _distinct(columns: Sequence[Int32Column | UInt8Column]) -> tuple[Int32Column, Int64Column]:
    """(number of each row among the distinct rows, one row per number); values may be -1."""
    identity = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        shifted = column.astype(np.int64) + 1
        _, identity = np.unique(identity * (int(shifted.max(initial=0)) + 1) + shifted, return_inverse=True)
    _, first, inverse = np.unique(identity, return_index=True, return_inverse=True)
    return inverse.astype(np.int32), first.astype(np.int64)
