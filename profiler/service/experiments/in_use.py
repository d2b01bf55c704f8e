"""What open experiments measure.  Another experiment, or a swap beside them, would change it under their hands: a node would be
another variant than its experiment believes, or work for two."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from profiler.errors import UsageError
from profiler.experiment.plan.experiment_plan import ExperimentPlan
from profiler.experiment.plan.plan_file import parse_plan
from profiler.service.experiments.experiment_board import SubmittedExperiment

Offer = tuple[str, str]


def in_use(experiments: Iterable[SubmittedExperiment]) -> dict[Offer, str]:
    """Sessions of these experiments, which are open, by the agent and the name of its process or workload."""
    found: dict[Offer, str] = {}
    for experiment in experiments:
        try:
            plan = parse_plan(experiment.plan_text, Path(experiment.plan_name))
        except UsageError:  # of another version perhaps: it ends with its next step
            continue
        found |= dict.fromkeys(_offers(plan), experiment.session)
    return found


def check_free(plan: ExperimentPlan, experiments: Iterable[SubmittedExperiment]) -> None:
    """``UsageError`` when one of these experiments, which are open, measures one of the plan's targets."""
    taken = in_use(experiments)
    for agent, name in _offers(plan):
        if (agent, name) in taken:
            session = taken[agent, name]
            raise UsageError(f"experiment {session} measures {name} of agent {agent}: wait for its end, or cancel it")


def _offers(plan: ExperimentPlan) -> list[Offer]:
    return [(target.agent, target.process or target.workload) for target in plan.targets]
