"""Integer sums by group, exact: floats (``numpy.bincount`` with weights) lose nanoseconds beyond 2**53."""

from __future__ import annotations

import numpy as np

from profiler.errors import AnalysisError
from profiler.model.arrays import FloatColumn, Int32Column, Int64Column

_LIMIT = 2.0**62


def sums_by_group(group: Int32Column | Int64Column, values: Int64Column, group_count: int) -> Int64Column:
    """int64[group_count]: sum of the values of each group.  Raises ``AnalysisError`` when a sum could leave 64 bits."""
    check_range(values)
    sums = np.zeros(group_count, np.int64)
    np.add.at(sums, group, values)
    return sums


def float_sums_by_group(group: Int32Column | Int64Column, values: FloatColumn, group_count: int) -> FloatColumn:
    """float64[group_count]: sum of the values of each group, for what need not be exact."""
    sums: FloatColumn = np.bincount(group, weights=values, minlength=group_count).astype(np.float64, copy=False)
    return sums


def check_range(values: Int64Column) -> None:
    """Raises ``AnalysisError`` when the values are negative or their sum could leave 64 bits."""
    if len(values) and (int(values.min()) < 0 or float(values.astype(np.float64).sum()) > _LIMIT):
        raise AnalysisError("the sample weights are negative or add up beyond 62 bits; the recording is damaged")
