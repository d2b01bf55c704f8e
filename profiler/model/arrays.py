"""Names for the numpy column types that the tables are made of, and what numpy lacks for all of them.

Classes that hold columns are made with ``eq=False, repr=False``: a generated comparison fails on columns, and a third of the
time that a dataclass takes at every start goes into the two methods.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

BoolColumn = npt.NDArray[np.bool_]
Int16Column = npt.NDArray[np.int16]
Int32Column = npt.NDArray[np.int32]
Int64Column = npt.NDArray[np.int64]
UInt8Column = npt.NDArray[np.uint8]
UInt32Column = npt.NDArray[np.uint32]
UInt64Column = npt.NDArray[np.uint64]
FloatColumn = npt.NDArray[np.float64]

Number = TypeVar("Number", bound=np.number)


def distinct(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The values, each once, ascending; NaN is not provided for.  ``np.unique`` imports ``numpy.ma`` for this, which takes
    longer than a small recording."""
    ordered = np.sort(values, axis=None)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def ranked(values: npt.NDArray[np.integer]) -> tuple[Int32Column, Int64Column]:
    """(number of each value among the distinct ones, which ascend; a row that holds each of those).  ``np.unique`` sorts twice
    as long for the first row of each."""
    order = np.argsort(values)
    ordered = values[order]
    is_first = np.ones(len(values), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    numbers = np.empty(len(values), np.int32)
    numbers[order] = np.cumsum(is_first, dtype=np.int32) - np.int32(1)
    return numbers, order[is_first]


def is_among(values: npt.NDArray[Number], ascending: npt.NDArray[Number]) -> BoolColumn:
    """For each value whether it is one of ``ascending``.  (``np.isin`` imports ``numpy.ma`` too.)"""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    place = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: BoolColumn = ascending[place] == values
    return found


def frozen(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same column, marked read-only, so that a table cannot change after it was made."""
    column.flags.writeable = False
    return column
