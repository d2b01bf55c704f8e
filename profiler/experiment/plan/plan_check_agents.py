"""What no single key of a plan shows about targets on agents: see ``plan_check``.  Whether an agent is known and offers what
the plan names is for the aggregator to say."""

from __future__ import annotations

from profiler.errors import UsageError
from profiler.experiment.plan.experiment_plan import ExperimentPlan, MetricKind
from profiler.experiment.plan.plan_check_services import (
    check_both_variants,
    check_no_run_settings,
    check_one_variant_each,
    check_replicates,
    check_target_variants,
    given,
)
from profiler.model.experiment import Design
from profiler.store.records import check_variant_name
from profiler.toml.toml_table import TomlSource


def check_agent_targets(plan: ExperimentPlan, source: TomlSource) -> None:
    """``UsageError`` at the first setting or target that cannot work, or cannot reach a verdict."""
    _check_kinds(plan, source)
    _check_settings(plan, source)
    _check_variants(plan, source)
    check_target_variants(plan, source)
    _check_metrics(plan, source)
    _check_nodes(plan, source)
    _check_processes(plan, source)
    if plan.design is Design.CROSSOVER:
        check_both_variants(plan, source)
        _check_same_process(plan, source)
    else:
        check_one_variant_each(plan, source)
    check_replicates(plan, source)


def _check_kinds(plan: ExperimentPlan, source: TomlSource) -> None:
    for number, target in enumerate(plan.targets):
        if not target.agent:
            source.fail("targets are here or on agents: this one has no agent, others have", "target", number)
        if bool(target.workload) != plan.has_workloads:
            message = "processes are watched and workloads are run: their costs have no common measure; use one of them"
            source.fail(message, "target", number, "process")


def _check_settings(plan: ExperimentPlan, source: TomlSource) -> None:
    for table, has_some in (("load", plan.loads), ("condition", plan.conditions), ("input", plan.inputs)):
        if has_some:
            source.fail(f"agents run and watch what their own agent.toml names: no [[{table}]] beside it", table)
    if plan.swap:
        message = "agents swap their processes by the command of their own agent.toml: leave swap out"
        source.fail(message, "experiment", 0, "swap")
    check_no_run_settings(plan, source, "is nothing that an agent can be asked for")
    if plan.has_workloads and plan.window_s != 60.0:
        source.fail("window is for processes: a workload runs until it ends", "experiment", 0, "window")
    if plan.timeout_s and not plan.has_workloads:
        source.fail("timeout is for workloads: a window of a process ends by itself", "experiment", 0, "timeout")


def _check_variants(plan: ExperimentPlan, source: TomlSource) -> None:
    for number, variant in enumerate(plan.variants):
        made = given(
            ("binary", variant.binary),
            ("source", variant.source),
            ("build", variant.build),
            ("build_env", variant.build_env),
            ("profile_build", variant.profile_build),
            ("rebuild", variant.rebuild),
        )
        for key in made:
            message = f"agents have the builds of their own agent.toml: leave {key} out"
            source.fail(message, "variant", number, key)


def _check_metrics(plan: ExperimentPlan, source: TomlSource) -> None:
    what = "of processes on agents only prometheus metrics can be read"
    if plan.has_workloads:
        what = "of workloads only regex and json metrics can be read"
    for number, metric in enumerate(plan.metrics):
        is_of_output = metric.kind in (MetricKind.REGEX, MetricKind.JSON)
        if is_of_output is not plan.has_workloads or metric.kind in (MetricKind.STAT, MetricKind.COMMAND):
            source.fail(what, "metric", number, "command" if metric.command else metric.kind.value)


def _check_nodes(plan: ExperimentPlan, source: TomlSource) -> None:
    for number, target in enumerate(plan.targets):
        for key, name in (("node", target.node), ("agent", target.agent)):
            try:
                check_variant_name(name)
            except UsageError as error:
                source.fail(str(error).replace("variant name", f"{key} name"), "target", number, key)


def _check_processes(plan: ExperimentPlan, source: TomlSource) -> None:
    """A process is one node: under two names its windows would count twice, or in both arms.  (A workload is a process of its
    own for every node.)"""
    nodes: dict[tuple[str, str], str] = {}
    for number, target in enumerate(plan.targets):
        known = nodes.setdefault((target.agent, target.process), target.node)
        if target.process and known != target.node:
            place = f"{target.process} of agent {target.agent}"
            message = f"nodes {known!r} and {target.node!r} are one process, {place}: it would count twice"
            source.fail(message, "target", number, "node")


def _check_same_process(plan: ExperimentPlan, source: TomlSource) -> None:
    """A node is one process, or one place where a workload runs, under both variants."""
    places = {target.node: (target.agent, target.process, target.workload) for target in plan.targets}
    for number, target in enumerate(plan.targets):
        if places[target.node] != (target.agent, target.process, target.workload):
            source.fail(f"node {target.node!r} is two different things under its two variants", "target", number, "node")
