"""Which running process stands for which variant, and when; pure.

In a parallel design every process stands for one variant all the time.  In a crossover every process is one variant first and
the other one then; which comes first alternates over the processes, so that neither variant has the better half of the time.
"""

from __future__ import annotations

from collections.abc import Iterator

from profiler.experiment.plan.experiment_plan import ExperimentPlan, PlanTarget
from profiler.model.experiment import Design
from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Period:
    """``rounds``: numbers of its windows, each of which all ``targets`` have at the same time."""

    rounds: range
    targets: tuple[PlanTarget, ...]


def target_periods(plan: ExperimentPlan) -> tuple[Period, ...]:
    """In order of time."""
    if plan.design is not Design.CROSSOVER:
        return (Period(range(plan.runs), plan.targets),)
    orders = [_ordered(plan, node, is_odd=bool(number % 2)) for number, node in enumerate(_nodes(plan))]
    return tuple(
        Period(range(half * plan.runs, (half + 1) * plan.runs), tuple(order[half] for order in orders)) for half in (0, 1)
    )


def _nodes(plan: ExperimentPlan) -> Iterator[str]:
    return iter(dict.fromkeys(target.node for target in plan.targets))


def _ordered(plan: ExperimentPlan, node: str, is_odd: bool) -> list[PlanTarget]:
    """A node's two roles, the baseline first for every second node."""
    roles = [target for target in plan.targets if target.node == node]
    return sorted(roles, key=lambda target: (target.variant == plan.baseline) is is_odd)
