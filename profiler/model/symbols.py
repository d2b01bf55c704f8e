"""Symbols: what a frame resolves to, and a capture with all of its frames resolved."""

from __future__ import annotations

from profiler.model.arrays import Int32Column, UInt8Column
from profiler.model.capture import Capture
from profiler.model.function_table import FunctionTable
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InlineChains:
    """The inline chain of each of n frames, concatenated; within a chain innermost first.

    ``start``: int32[n + 1], chain i is ``start[i]:start[i + 1]``, never empty.  ``function``: index into a function table.
    ``file``: index into a file table, -1 unknown.  ``line``, ``column``: 1-based, 0 in the column = unknown.
    """

    start: Int32Column
    function: Int32Column
    file: Int32Column
    line: Int32Column
    column: Int32Column


@dataclass(frozen=True, slots=True)
class FileCaveats:
    """Why the names of a file that was used may be wrong or too few.

    ``unverified``: path of the file when the recording holds no build ID to check it by, else ""; ``changed_ns``: when that
    file was last changed, in ns since 1970.  ``incomplete``: "" or one line, which part of its debug information is missing.
    """

    unverified: str = ""
    changed_ns: int = 0
    incomplete: str = ""


NO_CAVEATS = FileCaveats()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DsoSymbols:
    """The answer of a symbolizer for one DSO: chains for the offsets asked, in the order asked.

    ``has_debug_info``: uint8[n], 1 where the offset lies in a compilation unit with DWARF.  ``status``: "" or the one-line
    reason why names are missing ("no such file", "build ID ... recorded, ... found", "stripped: no symbol table").
    """

    functions: FunctionTable
    files: tuple[str, ...]
    chains: InlineChains
    has_debug_info: UInt8Column
    status: str
    caveats: FileCaveats = NO_CAVEATS


@dataclass(frozen=True, slots=True)
class DsoOutcome:
    """How symbolization of one DSO ended: frames asked, frames without a name, and the reason ("" = fine)."""

    dso: int
    frames: int
    unresolved: int
    status: str
    caveats: FileCaveats = NO_CAVEATS


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SymbolizedCapture:
    """A capture whose frame i has chain i.  ``functions`` and ``files`` are deduplicated over all DSOs;
    ``has_debug_info`` is per frame."""

    capture: Capture
    functions: FunctionTable
    files: tuple[str, ...]
    chains: InlineChains
    has_debug_info: UInt8Column
    outcomes: tuple[DsoOutcome, ...]
