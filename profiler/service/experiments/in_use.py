"""What open experiments measure.  Another experiment, or a swap beside them, would change it under their hands: a node would be
another variant than its experiment believes, or work for two."""

from __future__ import annotations

from pathlib import Path

from profiler.errors import UsageError
from profiler.experiment.plan.experiment_plan import ExperimentPlan
from profiler.experiment.plan.plan_file import parse_plan
from profiler.service.experiments.experiment_board import ExperimentBoard

Offer = tuple[str, str]


def in_use(experiments: ExperimentBoard) -> dict[Offer, str]:
    """Sessions of open experiments, by the agent and the name of its process or workload.  ``StoreError``."""
    found: dict[Offer, str] = {}
    for experiment in experiments.experiments(only_open=True):
        try:
            plan = parse_plan(experiment.plan_text, Path(experiment.plan_name))
        except UsageError:  # of another version perhaps: it ends with its next step
            continue
        found |= dict.fromkeys(_offers(plan), experiment.session)
    return found


def check_free(plan: ExperimentPlan, experiments: ExperimentBoard) -> None:
    """``UsageError`` when an open experiment measures one of the plan's targets.  ``StoreError``."""
    taken = in_use(experiments)
    for agent, name in _offers(plan):
        if (agent, name) in taken:
            session = taken[agent, name]
            raise UsageError(f"experiment {session} measures {name} of agent {agent}: wait for its end, or cancel it")


def _offers(plan: ExperimentPlan) -> list[Offer]:
    return [(target.agent, target.process or target.workload) for target in plan.targets]
