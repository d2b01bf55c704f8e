"""An experiment is submitted: its plan is checked against what the agents offer, and its session begins."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from profiler.errors import UsageError
from profiler.experiment.binaries.builds import BuiltVariant
from profiler.experiment.experiment_session import DOCUMENT, encode_record, experiment_record
from profiler.experiment.plan.experiment_plan import ExperimentPlan, PlanTarget
from profiler.experiment.plan.plan_file import parse_plan
from profiler.model.experiment import VariantFacts
from profiler.model.run import RunMode
from profiler.protocol.hello import AgentHello
from profiler.service.agents.agent_registry import AgentRegistry
from profiler.service.experiments.course import Course
from profiler.service.experiments.experiment_board import ExperimentBoard, SubmittedExperiment
from profiler.service.experiments.in_use import check_free
from profiler.service.experiments.turns import TurnPlan
from profiler.service.jobs.order_check import refusal_of
from profiler.store.records import SessionStart
from profiler.store.store import Store
from profiler.toml.toml_positions import toml_positions
from profiler.toml.toml_table import nearest_name

# Of orders that are made to be looked at only: all turns begin at a moment, whichever it is.
_SOME_MOMENT_NS = 1


def checked_plan(text: str, name: str, agents: AgentRegistry) -> ExperimentPlan:
    """The plan in ``text``, of a file called ``name``.  ``UsageError``, with name and line, for one that cannot be carried out
    by the agents that are known."""
    plan = parse_plan(text, Path(name))
    if not plan.is_over_agents:
        raise UsageError(f"{name}: its targets are not on agents: run it where they are, without --server")
    known = {agent.name: agent.hello for agent in agents.agents()}
    positions, turns = toml_positions(text), TurnPlan(plan)
    for number, target in enumerate(plan.targets):
        refusal, key = _refusal(turns, target, known)
        if refusal:
            raise UsageError(f"{name}:{positions.line_of('target', number, key)}: {refusal}")
    return plan


def _refusal(turns: TurnPlan, target: PlanTarget, known: dict[str, AgentHello]) -> tuple[str, str]:
    """(why the agent would not do what the target asks, the key that says so); ("", "") = it would."""
    hello = known.get(target.agent)
    if hello is None:
        return f"no agent {target.agent!r} has said hello{nearest_name(target.agent, sorted(known))}", "agent"
    kind = "workload" if target.workload else "process"
    # The most that is asked for.
    turn = next((turn for turn in turns.turns if turn.mode is RunMode.PROFILED), turns.turns[0])
    refusal = refusal_of(turns.measure_order(turn, target, "", "", _SOME_MOMENT_NS), hello, _SOME_MOMENT_NS)
    if not refusal and turns.needs_swaps:
        refusal = refusal_of(turns.swap_order(turn, target, "", ""), hello, _SOME_MOMENT_NS)
    return (f"agent {target.agent}: {refusal}" if refusal else ""), kind


def submit(plan: ExperimentPlan, store: Store, experiments: ExperimentBoard, now_ns: int) -> SubmittedExperiment:
    """Begins the session of a checked plan; the coordinator does the rest.

    ``UsageError``: an open experiment measures one of its targets; of plans that are submitted at the same moment one begins.
    ``StoreError``.
    """
    started_at = datetime.fromtimestamp(now_ns // 1_000_000_000, UTC).isoformat(timespec="seconds")
    session = store.begin_session(SessionStart(started_at, "", (), plan.seed, has_rounds=True))
    plan = replace(plan, path=Path(plan.path.name))
    store.put_document(session, DOCUMENT, encode_record(experiment_record(plan, _variants(plan))))
    course = Course(since_ns=now_ns, retries_left=plan.retries)
    submitted = SubmittedExperiment(session, plan.name, plan.path.name, plan.text, now_ns, course)
    try:
        experiments.add(submitted, lambda others: check_free(plan, others))
    except UsageError:
        store.remove_session(session)
        raise
    return submitted


def _variants(plan: ExperimentPlan) -> tuple[BuiltVariant, ...]:
    """Agents have the builds; what is known of them here is what the plan says."""
    return tuple(
        BuiltVariant(variant, "", "", VariantFacts(variant.name, variant.note, variant.revision)) for variant in plan.variants
    )
