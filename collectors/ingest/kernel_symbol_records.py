"""Names of kernel code that came and went while recording: BPF programs and trampolines, from PERF_RECORD_KSYMBOL."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collectors.ingest.frame_builder import KernelNames
from collectors.perf_data import spec
from collectors.perf_data.side_band import KernelSymbolRecord
from profiler.model.arrays import BoolColumn, Int64Column, UInt64Column

BPF_MODULE = "bpf"


class RecordedKernelNames:
    """The recorded symbols, and behind them those of the kernel itself (``None`` when not at hand).

    An address that held different code at different times has no name.
    """

    def __init__(self, records: Sequence[KernelSymbolRecord], kernel: KernelNames | None) -> None:
        spans = {(record.start, record.start + record.length, record.name, record.type) for record in records}
        self._kernel = kernel
        self._spans = sorted(span for span in spans if span[0] < span[1] < 1 << 64)
        self._start = np.array([span[0] for span in self._spans], np.uint64)
        self._end = np.array([span[1] for span in self._spans], np.uint64)
        # Row i: how far the spans before span i reach.
        self._reached = np.maximum.accumulate(np.concatenate([np.zeros(1, np.uint64), self._end]))

    def names(self, addresses: UInt64Column) -> list[str]:
        """Name of the function at each address, "" when unknown or not certain."""
        names = self._kernel.names(addresses) if self._kernel is not None else [""] * len(addresses)
        row, is_covered, is_certain = self._rows(addresses)
        for place in np.flatnonzero(is_covered).tolist():
            names[place] = self._spans[row[place]][2] if is_certain[place] else ""
        return names

    def modules(self, addresses: UInt64Column) -> list[str]:
        """Name of the module that holds each address, "" for the kernel itself; BPF programs are in "bpf"."""
        modules = self._kernel.modules(addresses) if self._kernel is not None else [""] * len(addresses)
        row, is_covered, _ = self._rows(addresses)
        for place in np.flatnonzero(is_covered).tolist():
            modules[place] = BPF_MODULE if self._spans[row[place]][3] == spec.PERF_RECORD_KSYMBOL_TYPE_BPF else ""
        return modules

    def _rows(self, addresses: UInt64Column) -> tuple[Int64Column, BoolColumn, BoolColumn]:
        """(the last span that starts before each address; whether any span covers it; whether that one and no other does)."""
        if not self._spans:
            nothing = np.zeros(len(addresses), np.bool_)
            return np.zeros(len(addresses), np.int64), nothing, nothing
        row = np.searchsorted(self._start, addresses, "right") - 1
        is_covered: BoolColumn = addresses < self._reached[row + 1]
        is_certain: BoolColumn = (addresses < self._end[np.maximum(row, 0)]) & (addresses >= self._reached[np.maximum(row, 0)])
        return np.maximum(row, 0), is_covered & (row >= 0), is_certain & (row >= 0)
