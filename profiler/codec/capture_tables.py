"""The column tables of a capture: their shapes, and the checks that make indices safe to follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from profiler.codec.column_tables import BINARY, Columns, NumberColumn, TableShape
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.frame_table import CpuMode, FrameTable
from profiler.model.sample_table import SampleTable, StackState
from profiler.model.stack_table import StackTable
from profiler.model.thread_table import ThreadTable

SHAPES = (
    TableShape("strings", (("text", BINARY),)),
    TableShape("dsos", (("path", BINARY), ("build_id", BINARY), ("kind", "uint8"))),
    TableShape(
        "frames",
        (("dso", "int32"), ("offset", "uint64"), ("is_return_address", "bool"), ("mode", "uint8"), ("symbol", "int32")),
    ),
    TableShape("stacks", (("prefix", "int32"), ("frame", "int32"))),
    TableShape("threads", (("pid", "int32"), ("tid", "int32"), ("process_name", "int32"), ("thread_name", "int32"))),
    TableShape(
        "samples",
        (
            ("time_ns", "uint64"),
            ("thread", "int32"),
            ("cpu", "int16"),
            ("event", "int16"),
            ("stack", "int32"),
            ("weight", "int64"),
            ("state", "uint8"),
        ),
    ),
)
# Names are kept as the kernel gave them: bytes that are not UTF-8 come as lone surrogates and go back the same way.
_TEXT = ("utf-8", "surrogatepass")


def columns_of(capture: Capture) -> dict[str, Columns]:
    """Columns per table name, in the order of ``SHAPES``."""
    tables: dict[str, Columns] = {
        "strings": {"text": [text.encode(*_TEXT) for text in capture.strings]},
        "dsos": {
            "path": [dso.path.encode(*_TEXT) for dso in capture.dsos],
            "build_id": [dso.build_id for dso in capture.dsos],
            "kind": np.array([dso.kind for dso in capture.dsos], np.uint8),
        },
    }
    numeric = {"frames": capture.frames, "stacks": capture.stacks, "threads": capture.threads, "samples": capture.samples}
    for shape in SHAPES[len(tables) :]:
        tables[shape.name] = {column: getattr(numeric[shape.name], column) for column, _ in shape.columns}
    return tables


class CaptureTables:
    """The tables of a decoded capture, checked: every index that a column holds lies inside the table it refers to."""

    def __init__(self, tables: Mapping[str, Columns], event_count: int, name: str) -> None:
        self._tables, self._name = tables, name
        self.strings = self._texts("strings", "text")
        self.dsos = self._dsos()
        self.frames = FrameTable(**self._numbers("frames"))
        self.stacks = StackTable(**self._numbers("stacks"))
        self.threads = ThreadTable(**self._numbers("threads"))
        self.samples = SampleTable(**self._numbers("samples"))
        self._check_indices(event_count)

    def _texts(self, table: str, column: str) -> tuple[str, ...]:
        try:
            return tuple(text.decode(*_TEXT) for text in cast("Sequence[bytes]", self._tables[table][column]))
        except UnicodeDecodeError as error:
            raise FormatError(self._name, f"table {table!r} holds text that is not UTF-8 ({error.reason})") from None

    def _dsos(self) -> tuple[Dso, ...]:
        columns = self._tables["dsos"]
        kinds = cast(NumberColumn, columns["kind"])
        self._check_range("dsos.kind", kinds, 0, len(DsoKind))
        build_ids = cast("Sequence[bytes]", columns["build_id"])
        rows = zip(self._texts("dsos", "path"), build_ids, kinds.tolist(), strict=True)
        return tuple(Dso(path, build_id, DsoKind(kind)) for path, build_id, kind in rows)

    def _numbers(self, table: str) -> dict[str, NumberColumn]:
        return {column: cast(NumberColumn, values) for column, values in self._tables[table].items()}

    def _check_range(self, column: str, values: NumberColumn, low: int, end: int) -> None:
        if len(values) and not (low <= int(values.min()) and int(values.max()) < end):
            raise FormatError(self._name, f"column {column} points outside its table: damaged")

    def _check_indices(self, event_count: int) -> None:
        frames, stacks, threads, samples = self.frames, self.stacks, self.threads, self.samples
        strings = len(self.strings)
        if frames.is_return_address.dtype != np.bool_:
            raise FormatError(self._name, "column frames.is_return_address holds more than 0 and 1: damaged")
        self._check_range("frames.dso", frames.dso, 0, len(self.dsos))
        self._check_range("frames.mode", frames.mode, 0, len(CpuMode))
        self._check_range("frames.symbol", frames.symbol, -1, strings)
        self._check_range("stacks.prefix", stacks.prefix, -1, len(stacks))
        self._check_range("stacks.frame", stacks.frame, 0, len(frames))
        if (stacks.prefix >= np.arange(len(stacks))).any():
            raise FormatError(self._name, "column stacks.prefix points forward: damaged")
        self._check_range("threads.process_name", threads.process_name, 0, strings)
        self._check_range("threads.thread_name", threads.thread_name, 0, strings)
        self._check_range("samples.thread", samples.thread, 0, len(threads))
        self._check_range("samples.event", samples.event, 0, event_count)
        self._check_range("samples.stack", samples.stack, -1, len(stacks))
        self._check_range("samples.state", samples.state, 0, len(StackState))
