"""From tests to verdicts: the first that holds, over one family of rows."""

from __future__ import annotations

import numpy as np

from profiler.analysis.statistics import t_tests
from profiler.model.arrays import BoolColumn, FloatColumn
from profiler.model.comparison import Verdict
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Judgement:
    """Over the rows of a family.  ``is_tested``: where p was adjusted; elsewhere ``p_adjusted`` is 1."""

    is_tested: BoolColumn
    p_adjusted: FloatColumn
    verdicts: tuple[Verdict, ...]


def judge_family(
    test: t_tests.TTest, fewest: int, margin: FloatColumn | float, may_be_equal: BoolColumn | None = None
) -> Judgement:
    """``fewest``: replicates of the smallest group.  ``margin``: differences up to it count as none, in the tests' unit.
    ``may_be_equal``: rows whose interval can show that there is no difference, all when None."""
    is_tested = test.is_testable & (fewest >= t_tests.MIN_REPLICATES)
    adjusted = np.ones(test.p.shape)
    adjusted[is_tested] = t_tests.holm(test.p[is_tested])
    is_equal = t_tests.is_within_margin(test, margin)
    if may_be_equal is not None:
        is_equal &= may_be_equal
    verdicts = []
    for row in range(len(test.p)):
        if fewest < t_tests.MIN_REPLICATES:
            verdicts.append(Verdict.TOO_FEW_RUNS)
        elif not is_tested[row]:
            verdicts.append(Verdict.UNTESTABLE)
        elif adjusted[row] < t_tests.ALPHA:
            verdicts.append(Verdict.FASTER if test.difference[row] < 0 else Verdict.SLOWER)
        else:
            verdicts.append(Verdict.EQUIVALENT if is_equal[row] else Verdict.UNDECIDED)
    return Judgement(is_tested, adjusted, tuple(verdicts))
