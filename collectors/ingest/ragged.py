"""Ragged columns: rows of different length stored one behind the other."""

from __future__ import annotations

import numpy as np

from profiler.model.arrays import Int64Column


def row_starts(lengths: Int64Column) -> Int64Column:
    """int64[n + 1]: where each row begins when rows of these lengths follow one another, and the end of the last."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def row_positions(first: Int64Column, lengths: Int64Column) -> tuple[Int64Column, Int64Column]:
    """(position of every element of rows that begin at ``first``, row after row; starts of the rows in that list)."""
    starts = row_starts(lengths)
    positions = np.repeat(first - starts[:-1], lengths)
    positions += np.arange(len(positions))
    return positions, starts


def reversed_positions(first: Int64Column, lengths: Int64Column) -> tuple[Int64Column, Int64Column]:
    """``row_positions`` with every row from its last element to its first."""
    starts = row_starts(lengths)
    positions = np.repeat(first + lengths - 1 + starts[:-1], lengths)
    positions -= np.arange(len(positions))
    return positions, starts
