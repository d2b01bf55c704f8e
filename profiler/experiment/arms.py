"""The arms of an experiment: every variant under every condition, and the baseline once more where that is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.experiment.builds import BuiltVariant
from profiler.experiment.experiment_plan import ExperimentPlan, PlanCondition
from profiler.experiment.placeholders import replaced
from profiler.experiment.plan import Arm
from profiler.experiment.plan_check import AA_SUFFIX

_NO_CONDITION = PlanCondition("")


def experiment_arms(plan: ExperimentPlan, built: Sequence[BuiltVariant]) -> tuple[Arm, ...]:
    """By condition, then by variant, both in the plan's order; a second baseline stands behind the first."""
    arms = []
    for condition in plan.conditions or (_NO_CONDITION,):
        for variant in built:
            arms.append(_arm(plan, variant, condition, variant.plan.name))
            if plan.is_aa and variant.plan.name == plan.baseline:
                arms.append(_arm(plan, variant, condition, variant.plan.name + AA_SUFFIX))
    return tuple(arms)


def _arm(plan: ExperimentPlan, variant: BuiltVariant, condition: PlanCondition, name: str) -> Arm:
    inputs = {f"input.{given.name}": str(given.path) for given in plan.inputs}
    words = (*plan.command, *condition.args)
    has_profile = bool(variant.profile_binary)
    return Arm(
        variant=name,
        command=replaced(words, inputs | {"binary": variant.binary}),
        binary=variant.binary,
        condition=condition.name,
        environment=condition.env,
        profiled_command=replaced(words, inputs | {"binary": variant.profile_binary}) if has_profile else (),
        profiled_binary=variant.profile_binary,
    )
