"""Names for the numpy column types that the tables are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

BoolColumn = npt.NDArray[np.bool_]
Int8Column = npt.NDArray[np.int8]
Int16Column = npt.NDArray[np.int16]
Int32Column = npt.NDArray[np.int32]
Int64Column = npt.NDArray[np.int64]
UInt8Column = npt.NDArray[np.uint8]
UInt32Column = npt.NDArray[np.uint32]
UInt64Column = npt.NDArray[np.uint64]
FloatColumn = npt.NDArray[np.float64]


def frozen(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same column, marked read-only, so that a table cannot change after it was made."""
    column.flags.writeable = False
    return column
