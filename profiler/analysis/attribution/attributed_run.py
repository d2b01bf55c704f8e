"""One run, ready to be summed: logical stacks, their attribution, and the weight that was admitted."""

from __future__ import annotations

import numpy as np

from profiler.analysis.attribution.attribute import Attribution
from profiler.analysis.attribution.logical_stacks import LogicalStacks
from profiler.analysis.statistics.exact_sums import float_sums_by_group, sums_by_group
from profiler.model.arrays import BoolColumn, FloatColumn, Int64Column
from profiler.model.category import OTHER, RuleMatches
from profiler.model.quick_dataclass import dataclass
from profiler.model.symbols import SymbolizedCapture


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributedRun:
    """``admitted``: bool[samples] of the capture.  ``weight``, ``count``: int64[rows of stacks], summed weight (in the
    event's unit) and number of the admitted samples whose innermost frame is the row; ``squares``: float64, the sum of their
    squared weights."""

    symbolized: SymbolizedCapture
    stacks: LogicalStacks
    matches: RuleMatches
    attribution: Attribution
    admitted: BoolColumn
    weight: Int64Column
    count: Int64Column
    squares: FloatColumn

    @property
    def total(self) -> int:
        return int(self.weight.sum())

    def category_names(self) -> tuple[str, ...]:
        """The names that category numbers stand for; the last is ``other``, which -1 picks."""
        return (*self.matches.categories, OTHER)


def attributed_run(
    symbolized: SymbolizedCapture,
    stacks: LogicalStacks,
    matches: RuleMatches,
    attribution: Attribution,
    admitted: BoolColumn,
) -> AttributedRun:
    """Sums the admitted samples by stack.  Raises ``AnalysisError`` for weights that cannot be summed."""
    samples = symbolized.capture.samples
    row = stacks.innermost[samples.stack[admitted]]
    of_samples = samples.weight[admitted]
    weight = sums_by_group(row, of_samples, len(stacks))
    squares = float_sums_by_group(row, of_samples.astype(np.float64) ** 2, len(stacks))
    count = np.bincount(row, minlength=len(stacks)).astype(np.int64)
    return AttributedRun(symbolized, stacks, matches, attribution, admitted, weight, count, squares)
