"""What the rows of logical stacks are called in a dimension: by function, physical symbol, DSO, source file or line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.analysis.statistics.exact_sums import sums_by_group
from profiler.model.arrays import Int32Column, Int64Column
from profiler.model.quick_dataclass import dataclass

UNKNOWN_DSO = "[unknown]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowNames:
    """``name``: per logical row, the number of its name in ``names`` (distinct).  ``variant``: per logical row, which of
    ``variants`` (shown forms) it carries; ``name_of_variant`` the name each belongs to."""

    names: tuple[str, ...]
    name: Int32Column
    variants: tuple[str, ...]
    variant: Int32Column
    name_of_variant: Int32Column

    def labels_by_weight(self, weight: Int64Column) -> tuple[str, ...]:
        """For each name its heaviest shown form (``weight`` per logical row); ties by text."""
        weights = sums_by_group(self.variant, weight, len(self.variants)).tolist()
        best: dict[int, tuple[int, str]] = {}
        for shown, name, own_weight in zip(self.variants, self.name_of_variant.tolist(), weights, strict=True):
            candidate = (-own_weight, shown)
            if name not in best or candidate < best[name]:
                best[name] = candidate
        return tuple(best[name][1] for name in range(len(self.names)))


def names_of_rows(run: AttributedRun, dimension: str) -> RowNames:
    """Names in one of the stack dimensions ("function", "symbol", "dso", "file", "line")."""
    stacks = run.stacks
    if dimension in ("function", "symbol"):
        functions = run.symbolized.functions
        row = stacks.function() if dimension == "function" else stacks.symbol
        return _row_names(row, [function.key for function in functions], [function.name for function in functions])
    if dimension == "line":
        return _line_names(run)
    names = dso_names(run) if dimension == "dso" else _file_names(run)
    return _row_names(stacks.place, names, names)


def dso_names(run: AttributedRun) -> list[str]:
    """The DSO's short name of every place."""
    names = [*(dso.name for dso in run.symbolized.capture.dsos), UNKNOWN_DSO]
    return [names[row] for row in run.stacks.places.dso.tolist()]


def _file_names(run: AttributedRun) -> list[str]:
    """The source file of every place; code without one is told apart by DSO."""
    files = run.symbolized.files
    rows = zip(run.stacks.places.file.tolist(), dso_names(run), strict=True)
    return [files[row] if row >= 0 else f"[no source] {dso}" for row, dso in rows]


def _line_names(run: AttributedRun) -> RowNames:
    stacks = run.stacks
    files = _file_names(run)
    spots, number = np.unique(stacks.place.astype(np.int64) << 32 | stacks.line, return_inverse=True)
    names = []
    for place, line in zip((spots >> 32).tolist(), (spots & 0xFFFFFFFF).tolist(), strict=True):
        is_known = stacks.places.file[place] >= 0
        names.append(f"{files[place]}:{line or '?'}" if is_known else files[place])
    return _row_names(number.astype(np.int32), names, names)


def _row_names(row: Int32Column, keys: Sequence[str], shown: Sequence[str]) -> RowNames:
    """``row``: per logical row, an index of ``keys`` and ``shown``."""
    number_of: dict[str, int] = {}
    numbers = np.array([number_of.setdefault(key, len(number_of)) for key in keys], np.int32)
    return RowNames(tuple(number_of), numbers[row], tuple(shown), row, numbers)
