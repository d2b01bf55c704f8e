"""The functions of a capture: those with names, and behind them the places without one.

Stripped files have thousands of such places.  They are told apart by numbers; what one is called is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from profiler.model.arrays import Int32Column, UInt8Column, UInt64Column
from profiler.model.function import Function, NameSource
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionTable:
    """``named``: the first rows.  Each further row is a place: ``file``, row of ``file_names`` (short names, each once), and
    ``offset``, its file offset."""

    named: tuple[Function, ...]
    file_names: tuple[str, ...]
    file: Int32Column
    offset: UInt64Column

    def __len__(self) -> int:
        return len(self.named) + len(self.file)

    def __getitem__(self, row: int) -> Function:
        if row < len(self.named):
            return self.named[row]
        place = row - len(self.named)
        return _nameless(self.file_names[self.file[place]], int(self.offset[place]))

    def __iter__(self) -> Iterator[Function]:
        yield from self.named
        for file, offset in zip(self.file.tolist(), self.offset.tolist(), strict=True):
            yield _nameless(self.file_names[file], offset)

    def sources(self) -> UInt8Column:
        """``NameSource`` of each row."""
        sources = np.full(len(self), NameSource.UNRESOLVED, np.uint8)
        sources[: len(self.named)] = [function.name_source for function in self.named]
        return sources


def _nameless(file_name: str, offset: int) -> Function:
    """Runtime addresses differ from run to run, so only file offsets become part of a name."""
    name = f"{file_name}+0x{offset:x}"
    return Function(name, name, name, "", NameSource.UNRESOLVED)


def table_of_named(functions: Iterable[Function]) -> FunctionTable:
    """A table of these alone, in the order given."""
    return FunctionTable(tuple(functions), (), np.zeros(0, np.int32), np.zeros(0, np.uint64))
