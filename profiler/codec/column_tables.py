"""Tables of named columns as Arrow IPC streams (zstd), one record batch per table.

Byte strings stand in Arrow binary columns; everything else is a fixed-width integer column without nulls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

NumberColumn: TypeAlias = npt.NDArray[Any]
BytesColumn: TypeAlias = Sequence[bytes]
Columns: TypeAlias = Mapping[str, NumberColumn | BytesColumn]
BINARY = "binary"


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table's name and its columns in file order: (column, numpy type name or ``BINARY``)."""

    name: str
    columns: tuple[tuple[str, str], ...]


def write_table(shape: TableShape, columns: Columns) -> bytes:
    """The table as an Arrow IPC stream; equal columns give equal bytes.

    ``TypeError`` when a number column has another type than the shape says (a programming error).
    """
    import pyarrow as pa

    arrays = [_arrow_array(shape.name, column, kind, columns[column]) for column, kind in shape.columns]
    batch = pa.record_batch(arrays, names=[column for column, _ in shape.columns])
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def _arrow_array(table: str, column: str, kind: str, values: NumberColumn | BytesColumn) -> pa.Array:
    import pyarrow as pa

    if kind == BINARY:
        return pa.array(list(values), type=pa.binary())
    if not isinstance(values, np.ndarray) or values.dtype != np.dtype(kind):
        raise TypeError(f"{table}.{column}: expected {kind}, got {getattr(values, 'dtype', type(values).__name__)}")
    return pa.array(values.view(np.uint8) if kind == "bool" else values)


def read_table(shape: TableShape, data: memoryview, rows: int, name: str) -> Columns:
    """The columns of a section, read-only.  ``FormatError`` for anything but exactly one batch of ``rows`` rows of this
    shape."""
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            if reader.schema != _schema(shape):
                raise FormatError(name, f"table {shape.name!r} has other columns than expected")
            batches = list(reader)
        for batch in batches:
            batch.validate(full=True)
    except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
        raise FormatError(name, f"table {shape.name!r} cannot be read ({_first_line(error)}): damaged") from None
    if len(batches) != 1 or batches[0].num_rows != rows:
        raise FormatError(name, f"table {shape.name!r} does not have the {rows} rows that the head announces")
    if any(column.null_count for column in batches[0].columns):
        raise FormatError(name, f"table {shape.name!r} has missing values")
    return {column: _column(batches[0].column(index), kind) for index, (column, kind) in enumerate(shape.columns)}


def _schema(shape: TableShape) -> pa.Schema:
    import pyarrow as pa

    def arrow_type(kind: str) -> pa.DataType:
        if kind == BINARY:
            return pa.binary()
        return pa.uint8() if kind == "bool" else pa.from_numpy_dtype(np.dtype(kind))

    return pa.schema([(column, arrow_type(kind)) for column, kind in shape.columns])


def _column(array: pa.Array, kind: str) -> NumberColumn | BytesColumn:
    if kind == BINARY:
        values: list[bytes] = array.to_pylist()
        return values
    column: NumberColumn = array.to_numpy(zero_copy_only=True)
    return column.view(np.bool_) if kind == "bool" and not (column > 1).any() else column


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
