"""What no single key of a plan shows: names that must fit together, and verdicts that the plan could never reach."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.metrics import parse_metric
from profiler.analysis.statistics.t_tests import MIN_REPLICATES
from profiler.errors import UsageError
from profiler.experiment.plan.experiment_plan import ExperimentPlan, MetricKind, PlanMetric, cpu_per_request
from profiler.experiment.plan.placeholders import placeholders
from profiler.experiment.plan.plan_check_agents import check_agent_targets
from profiler.experiment.plan.plan_check_services import CPU_TIME_METRIC, check_loads, check_page_metric, check_targets
from profiler.experiment.plan.recording_plan import ProfilePolicy
from profiler.model.experiment import Design
from profiler.store.records import check_variant_name
from profiler.toml.toml_table import TomlSource, nearest_name

_TIMES = ("wall", "user", "system")
AA_SUFFIX = "-again"


def check_experiment(plan: ExperimentPlan, source: TomlSource) -> None:
    """``UsageError`` at the first thing that cannot work."""
    _check_names(plan, source)
    _check_arms(plan, source)
    _check_placeholders(plan, source)
    _check_metrics(plan, source)
    check_loads(plan, source)
    if plan.is_over_agents:
        check_agent_targets(plan, source)
    else:
        check_targets(plan, source)
    _check_reach(plan, source)


def _check_names(plan: ExperimentPlan, source: TomlSource) -> None:
    groups: tuple[tuple[str, Sequence[str]], ...] = (
        ("variant", [variant.name for variant in plan.variants]),
        ("condition", [condition.name for condition in plan.conditions]),
        ("input", [given.name for given in plan.inputs]),
        ("metric", [metric.name for metric in plan.metrics]),
        ("load", [load.name for load in plan.loads]),
        ("target", [f"{target.variant}/{target.node}" for target in plan.targets]),
    )
    for table, names in groups:
        for number, name in enumerate(names):
            if names.index(name) != number:
                source.fail(
                    f"{table} {name!r} is there twice: the first in line {source.positions.line_of(table, names.index(name))}",
                    table,
                    number,
                    "name",
                )
            if table in ("variant", "condition"):
                _check_name(source, table, number, name)


def _check_name(source: TomlSource, table: str, number: int, name: str) -> None:
    try:
        check_variant_name(name)
    except UsageError as error:
        source.fail(str(error).replace("variant name", f"{table} name"), table, number, "name")
    if "@" in name:
        source.fail(f"{table} name {name!r}: @ stands between variant and condition", table, number, "name")


def _check_arms(plan: ExperimentPlan, source: TomlSource) -> None:
    names = [variant.name for variant in plan.variants]
    if not names:
        source.fail("no [[variant]]: at least one build is needed", "experiment")
    if plan.baseline not in names:
        source.fail(f"no variant {plan.baseline!r}{nearest_name(plan.baseline, names)}", "experiment", 0, "baseline")
    if plan.is_aa and f"{plan.baseline}{AA_SUFFIX}" in names:
        source.fail(
            f"aa runs the baseline again as {plan.baseline}{AA_SUFFIX}, which is a variant already", "experiment", 0, "aa"
        )
    if len(names) == 1 and not plan.is_aa:
        source.fail("one variant compares with nothing: add a second one, or aa = true for a control", "variant")
    controls = [number for number, condition in enumerate(plan.conditions) if condition.is_control]
    if len(controls) > 1:
        source.fail("there can be one control condition", "condition", controls[1], "control")
    if controls and len(plan.conditions) == 1:
        source.fail("a control needs another condition to be held against", "condition", 0, "control")
    _check_design(plan, source)


def _check_design(plan: ExperimentPlan, source: TomlSource) -> None:
    if plan.targets and plan.design is Design.INTERLEAVED:
        source.fail('running targets are watched side by side: design = "parallel" or "crossover"', "experiment", 0, "design")
    if not plan.targets and plan.design is not Design.INTERLEAVED:
        source.fail(f"design {plan.design.value!r} is for running processes: add [[target]] tables", "experiment", 0, "design")
    if plan.targets and plan.command:
        source.fail("targets run already: no command is started for them", "experiment", 0, "command")
    if not plan.targets and not plan.command and not plan.loads:
        source.fail("command is missing: what is run", "experiment")
    if plan.loads and plan.command:
        source.fail("a load starts the service itself: no command beside it", "experiment", 0, "command")


def _check_placeholders(plan: ExperimentPlan, source: TomlSource) -> None:
    known = {"binary", *(f"input.{given.name}" for given in plan.inputs)}
    places: list[tuple[str, int, str, Sequence[str], set[str]]] = [
        ("experiment", 0, "command", plan.command, known),
        ("experiment", 0, "before", plan.before, known),
    ]
    for number, condition in enumerate(plan.conditions):
        places.append(("condition", number, "args", condition.args, known))
    for number, load in enumerate(plan.loads):
        places.append(("load", number, "service", load.service, known))
        places.append(("load", number, "command", load.command, known))
    for number, metric in enumerate(plan.metrics):
        places.append(("metric", number, "command", metric.command, known))
    for number, variant in enumerate(plan.variants):
        building = {"build_dir"}
        places.append(("variant", number, "build", variant.build, building))
        places.append(("variant", number, "profile_build", variant.profile_build, building))
        places.append(("variant", number, "binary", (variant.binary,), building))
        if variant.rebuild is not None:
            places.append(("variant", number, "rebuild", variant.rebuild.command, building))
    for table, number, key, words, allowed in places:
        for name in placeholders(words):
            if name not in allowed:
                source.fail(f"{{{name}}} stands for nothing here{nearest_name(name, sorted(allowed))}", table, number, key)
    _check_binaries(plan, source)


def _check_binaries(plan: ExperimentPlan, source: TomlSource) -> None:
    words = [*plan.command, *(word for load in plan.loads for word in load.service)]
    has_binary = "binary" in placeholders(words)
    for number, variant in enumerate(plan.variants):
        if has_binary and not variant.binary:
            source.fail("binary is missing: the command has {binary} in it", "variant", number)
        if variant.binary and not has_binary and not plan.targets:
            source.fail("there is no {binary} in the command", "variant", number, "binary")
        if (variant.rebuild or variant.profile_build) and not variant.build:
            source.fail("rebuild and profile_build follow a build, which is missing", "variant", number)
        if bool(variant.profile_build) != bool(variant.profile_binary):
            source.fail("profile_build and profile_binary belong together", "variant", number, "profile_build")
        if "build_dir" in placeholders((variant.binary,)) and not variant.build:
            source.fail("{build_dir} is empty without a build", "variant", number, "binary")


def _check_metrics(plan: ExperimentPlan, source: TomlSource) -> None:
    loads = [load.name for load in plan.loads]
    measured = (CPU_TIME_METRIC,) if plan.targets and not plan.has_workloads else _TIMES
    for number, metric in enumerate(plan.metrics):
        if metric.name in (*_TIMES, CPU_TIME_METRIC):
            source.fail(f"{metric.name} is measured anyway: choose another name", "metric", number, "name")
        if metric.from_load and metric.from_load not in loads:
            source.fail(f"no load {metric.from_load!r}{nearest_name(metric.from_load, loads)}", "metric", number, "from")
        if metric.kind is MetricKind.PROMETHEUS:
            check_page_metric(plan, number, metric, source)
        if metric.kind is MetricKind.STAT:
            _check_stat_metric(plan, number, metric, source)
        _check_output_metric(metric, number, source)
    names = [*(metric.name for metric in plan.metrics), *measured]
    names += [cpu_per_request(load) for load in plan.loads if load.requests]
    if plan.primary and plan.primary not in names:
        source.fail(f"no metric {plan.primary!r}{nearest_name(plan.primary, names)}", "experiment", 0, "primary")


def _check_stat_metric(plan: ExperimentPlan, number: int, metric: PlanMetric, source: TomlSource) -> None:
    if plan.profile is ProfilePolicy.SAME:
        message = 'perf stat counts in runs without a profile, and profile = "same" has none'
        source.fail(message, "metric", number, "stat")
    if not metric.spec.strip():
        source.fail("which event?", "metric", number, "stat")


def _check_output_metric(metric: PlanMetric, number: int, source: TomlSource) -> None:
    if metric.kind not in (MetricKind.REGEX, MetricKind.JSON, MetricKind.COMMAND):
        return
    spec = metric.spec if metric.kind is MetricKind.COMMAND else f"{metric.kind}:{metric.spec}"
    option = f"{metric.name}={spec}"
    try:
        parse_metric(option, metric.pick)
    except UsageError as error:
        source.fail(str(error).removeprefix(f"--metric {option!r}: "), "metric", number, metric.kind)


def _check_reach(plan: ExperimentPlan, source: TomlSource) -> None:
    """A plan that can never say more than "too few runs" is refused, with the number that can."""
    if not plan.targets and plan.runs < MIN_REPLICATES:
        message = f"{plan.runs} runs per arm can reach no verdict: at least {MIN_REPLICATES} are needed, 10 are usual"
        source.fail(message, "experiment", 0, "runs")
