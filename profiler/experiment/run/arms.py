"""The arms of an experiment: every variant under every condition, and the baseline once more where that is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.experiment.binaries.builds import BuiltVariant
from profiler.experiment.plan.experiment_plan import ExperimentPlan, PlanCondition, PlanLoad, PlanVariant
from profiler.experiment.plan.placeholders import replaced
from profiler.experiment.plan.plan_check import AA_SUFFIX
from profiler.experiment.plan.recording_plan import Arm
from profiler.experiment.run.arm_metrics import ArmMetrics, arm_metrics
from profiler.model.quick_dataclass import dataclass

_NO_CONDITION = PlanCondition("")


@dataclass(frozen=True, slots=True)
class ArmCondition:
    """What every variant is run under: a condition of the plan, "" = none, and a load, None = it is no service.  ``name``: that
    of the condition, of the load where there are several, or of both with a + between."""

    name: str
    condition: PlanCondition
    load: PlanLoad | None


@dataclass(frozen=True, slots=True)
class ExperimentArm:
    """``load_command``: as run, empty where there is no load.  ``metrics``: what is read beside the program's output."""

    arm: Arm
    load: PlanLoad | None
    load_command: tuple[str, ...]
    metrics: ArmMetrics


def arm_conditions(plan: ExperimentPlan) -> tuple[ArmCondition, ...]:
    """By condition, then by load, both in the plan's order."""
    found = []
    for condition in plan.conditions or (_NO_CONDITION,):
        if len(plan.loads) < 2:
            found.append(ArmCondition(condition.name, condition, plan.loads[0] if plan.loads else None))
            continue
        for load in plan.loads:
            name = f"{condition.name}+{load.name}" if condition.name else load.name
            found.append(ArmCondition(name, condition, load))
    return tuple(found)


def arm_variants(plan: ExperimentPlan) -> tuple[tuple[str, PlanVariant], ...]:
    """(Name, variant) in the plan's order; a second baseline stands behind the first."""
    found = []
    for variant in plan.variants:
        found.append((variant.name, variant))
        if plan.is_aa and variant.name == plan.baseline:
            found.append((variant.name + AA_SUFFIX, variant))
    return tuple(found)


def arm_labels(plan: ExperimentPlan) -> tuple[str, ...]:
    """Of ``experiment_arms``, without building anything."""
    names = [name for name, _ in arm_variants(plan)]
    return tuple(Arm(name, (), condition=held.name).label for held in arm_conditions(plan) for name in names)


def experiment_arms(plan: ExperimentPlan, built: Sequence[BuiltVariant]) -> tuple[ExperimentArm, ...]:
    """By condition and load, then by variant."""
    of_variant = {variant.plan.name: variant for variant in built}
    return tuple(
        _arm(plan, of_variant[variant.name], held, name)
        for held in arm_conditions(plan)
        for name, variant in arm_variants(plan)
    )


def _arm(plan: ExperimentPlan, variant: BuiltVariant, held: ArmCondition, name: str) -> ExperimentArm:
    values = {f"input.{given.name}": str(given.path) for given in plan.inputs} | {"binary": variant.binary}
    of_profile = values | {"binary": variant.profile_binary}
    words = (*(held.load.service if held.load is not None else plan.command), *held.condition.args)
    arm = Arm(
        variant=name,
        command=replaced(words, values),
        binary=variant.binary,
        condition=held.name,
        environment=held.condition.env,
        profiled_command=replaced(words, of_profile) if variant.profile_binary else (),
        profiled_binary=variant.profile_binary,
    )
    load_command = replaced(held.load.command, values) if held.load is not None else ()
    return ExperimentArm(arm, held.load, load_command, arm_metrics(plan, held.load, values))
