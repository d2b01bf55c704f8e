"""What the renderers of an experiment are given."""

from __future__ import annotations

from profiler.model.costs import ArmCosts
from profiler.model.experiment_result import ConditionResult, ExperimentResult
from profiler.model.quick_dataclass import dataclass
from reports.comparison_report import ComparisonReport


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """``arms``: the costs behind the result, by condition and then by variant, the baseline first.  ``limit``: rows of a table
    before the remainder is summed up, 0 = all."""

    result: ExperimentResult
    arms: tuple[ArmCosts, ...]
    limit: int = 0

    def arms_of(self, condition: ConditionResult) -> tuple[ArmCosts, ...]:
        """The baseline's, then each candidate's."""
        names = {condition.comparison.baseline_name, *(found.name for found in condition.comparison.candidates)}
        return tuple(arm for arm in self.arms if arm.name in names)

    def comparison(self, condition: ConditionResult) -> ComparisonReport:
        better_higher = self.result.record.better_higher
        return ComparisonReport(condition.comparison, self.arms_of(condition), self.limit, better_higher=better_higher)
