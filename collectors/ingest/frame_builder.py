"""Frame codes into the frame table, with the names of kernel frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from collectors.ingest.dso_table import DsoTable
from collectors.ingest.places import PlaceColumns
from collectors.ingest.thread_names import StringTable
from profiler.model.arrays import BoolColumn, Int32Column, Int64Column, UInt8Column, UInt64Column, distinct
from profiler.model.dso import Dso, DsoKind
from profiler.model.frame_table import CpuMode, FrameTable, lookup_offsets
from profiler.model.quick_dataclass import dataclass

_LAST_ADDRESS = 2**64 - 1


class KernelNames(Protocol):
    """Symbols of the kernel that was recorded."""

    def names(self, addresses: UInt64Column) -> list[str]:
        """Name of the function at each address, "" when unknown."""

    def modules(self, addresses: UInt64Column) -> list[str]:
        """Name of the module that holds each address, "" for the kernel itself."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BuiltFrames:
    """``frame_of``: row of the frame table for every frame code that was asked for.  ``unwinder_dso``: per frame, the row
    of its DSO in the table that was used while ingesting."""

    frames: FrameTable
    dsos: tuple[Dso, ...]
    frame_of: Int32Column
    unwinder_dso: Int32Column


def build_frames(
    codes: Int32Column, places: PlaceColumns, dsos: DsoTable, modules: Sequence[tuple[int, int, int]], kernel: KernelFrames
) -> BuiltFrames:
    """The frame table of the codes in use; DSOs without a frame are left out."""
    used = distinct(codes)
    place, is_return_address = used >> 1, (used & 1).astype(np.bool_)
    offset = places.offset[place]
    dso = _with_modules(places.dso[place], offset, modules)
    symbol = kernel.symbols(dso, offset, is_return_address)
    dso = kernel.with_named_modules(dso, offset, dsos)
    mode = _modes(dso, dsos.rows)
    used_dsos, final_dso = np.unique(dso, return_inverse=True)
    frame_of = np.full(int(used[-1]) + 1 if len(used) else 0, -1, np.int32)
    frame_of[used] = np.arange(len(used), dtype=np.int32)
    return BuiltFrames(
        frames=FrameTable(final_dso.astype(np.int32), offset, is_return_address, mode, symbol),
        dsos=tuple(dsos.rows[row] for row in used_dsos.tolist()),
        frame_of=frame_of,
        unwinder_dso=dso,
    )


def _with_modules(dso: Int32Column, address: UInt64Column, modules: Sequence[tuple[int, int, int]]) -> Int32Column:
    """Kernel frames inside a module's mapping, moved to the module."""
    is_kernel = dso == DsoTable.KERNEL
    if not modules or not is_kernel.any():
        return dso
    # A damaged record may give a module a length that reaches beyond the last address.
    ranges = np.array([(start, min(end, _LAST_ADDRESS), row) for start, end, row in sorted(set(modules))], np.uint64)
    row = np.maximum(np.searchsorted(ranges[:, 0], address, "right") - 1, 0)
    inside = is_kernel & (address >= ranges[row, 0]) & (address < ranges[row, 1])
    return np.where(inside, ranges[row, 2].astype(np.int32), dso)


def _modes(dso: Int32Column, rows: Sequence[Dso]) -> UInt8Column:
    mode_of = np.array(
        [CpuMode.KERNEL if row.kind in (DsoKind.KERNEL, DsoKind.MODULE) else CpuMode.USER for row in rows], np.uint8
    )
    mode_of[DsoTable.GUEST] = CpuMode.GUEST
    return mode_of[dso]


@dataclass(frozen=True, slots=True)
class KernelFrames:
    """Names for kernel frames; ``kernel`` is ``None`` when the symbols of the recorded kernel are not at hand."""

    kernel: KernelNames | None
    dsos: DsoTable
    strings: StringTable

    def symbols(self, dso: Int32Column, address: UInt64Column, is_return_address: BoolColumn) -> Int32Column:
        """String number of each kernel frame's function, -1 elsewhere."""
        symbol = np.full(len(dso), -1, np.int32)
        rows = self._kernel_rows(dso)
        if self.kernel is not None and len(rows):
            names = self.kernel.names(lookup_offsets(address[rows], is_return_address[rows]))
            symbol[rows] = [self.strings.number(name) if name else -1 for name in names]
        return symbol

    def with_named_modules(self, dso: Int32Column, address: UInt64Column, dsos: DsoTable) -> Int32Column:
        """Frames that only the symbol table knows to be in a module, moved to it."""
        rows = np.flatnonzero(dso == DsoTable.KERNEL)
        if self.kernel is None or not len(rows):
            return dso
        dso = dso.copy()
        modules = self.kernel.modules(address[rows])
        dso[rows] = [dsos.module(f"[{name.strip('[]')}]", b"") if name else DsoTable.KERNEL for name in modules]
        return dso

    def _kernel_rows(self, dso: Int32Column) -> Int64Column:
        is_kernel = np.array([row.kind in (DsoKind.KERNEL, DsoKind.MODULE) for row in self.dsos.rows])
        return np.flatnonzero(is_kernel[dso])
