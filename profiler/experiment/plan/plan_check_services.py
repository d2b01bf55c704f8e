"""What no single key of a plan shows about services and running processes: see ``plan_check``."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.prometheus import parse_series
from profiler.analysis.statistics.t_tests import MIN_REPLICATES
from profiler.errors import UsageError
from profiler.experiment.plan.experiment_plan import ExperimentPlan, MetricKind, PlanMetric, PlanTarget
from profiler.experiment.plan.placeholders import placeholders
from profiler.experiment.plan.recording_plan import ProfilePolicy
from profiler.model.experiment import Design
from profiler.store.records import check_variant_name
from profiler.toml.toml_table import TomlSource, nearest_name

CPU_TIME_METRIC = "CPU time"


def check_loads(plan: ExperimentPlan, source: TomlSource) -> None:
    """``UsageError`` at the first load, or metric of one, that cannot work."""
    for number, load in enumerate(plan.loads):
        try:
            check_variant_name(load.name)
        except UsageError as error:
            source.fail(str(error).replace("variant name", "load name"), "load", number, "name")
        for letter in "@+":
            if letter in load.name:
                source.fail(f"load name {load.name!r}: {letter} stands between other names", "load", number, "name")
        if not load.requests:
            continue
        counted = next((metric for metric in plan.metrics if metric.name == load.requests), None)
        if counted is None:
            names = [metric.name for metric in plan.metrics]
            source.fail(f"no metric {load.requests!r}{nearest_name(load.requests, names)}", "load", number, "requests")
        if counted.from_load != load.name or counted.kind not in (MetricKind.REGEX, MetricKind.JSON):
            source.fail(f"{load.requests} is not read from this load's output", "load", number, "requests")


def check_page_metric(plan: ExperimentPlan, number: int, metric: PlanMetric, source: TomlSource) -> None:
    """A metric that is read from a Prometheus page."""
    if not (plan.targets or plan.loads):
        message = "prometheus metrics are read from running services: add [[load]] or [[target]]"
        source.fail(message, "metric", number, "prometheus")
    loads = [load for load in plan.loads if metric.from_load in ("", load.name)]
    if plan.loads and not any(load.metrics for load in loads):
        source.fail("where is its page? a load needs metrics = ADDRESS", "metric", number, "prometheus")
    if any(not target.metrics for target in plan.targets if not target.agent):
        nodes = [target.node for target in plan.targets if not target.metrics]
        source.fail(f"target {nodes[0]} has no metrics = ADDRESS to read it from", "metric", number, "prometheus")
    try:
        parse_series(metric.name, metric.spec)
    except UsageError as error:
        source.fail(str(error), "metric", number, "prometheus")


def check_targets(plan: ExperimentPlan, source: TomlSource) -> None:
    """``UsageError`` at the first setting or target that cannot work, or cannot reach a verdict."""
    if not plan.targets:
        for key in given(("window", plan.window_s != 60.0), ("settle", plan.settle_s), ("swap", plan.swap)):
            source.fail(f"{key} is for running processes: add [[target]] tables", "experiment", 0, key)
        return
    _check_settings(plan, source)
    check_target_variants(plan, source)
    for number, metric in enumerate(plan.metrics):
        if metric.kind is not MetricKind.PROMETHEUS:
            message = "of running processes only prometheus metrics can be read"
            source.fail(message, "metric", number, "command" if metric.command else metric.kind.value)
    if plan.design is Design.CROSSOVER:
        _check_crossover(plan, source)
    else:
        check_one_variant_each(plan, source)
    check_replicates(plan, source)


def check_target_variants(plan: ExperimentPlan, source: TomlSource) -> None:
    """Every target is one of the plan's variants."""
    names = [variant.name for variant in plan.variants]
    for number, target in enumerate(plan.targets):
        if target.variant not in names:
            message = f"no variant {target.variant!r}{nearest_name(target.variant, names)}"
            source.fail(message, "target", number, "variant")


def _check_settings(plan: ExperimentPlan, source: TomlSource) -> None:
    if plan.profile is not ProfilePolicy.NONE:
        source.fail('targets are watched, they have no profile: profile = "none"', "experiment", 0, "profile")
    if plan.loads:
        source.fail("loads start services, targets run already: use one of them", "load")
    if plan.conditions:
        source.fail("conditions are ways to start a program, and targets run already", "condition")
    more = ("timeout", plan.timeout_s), ("phase", plan.phase), ("retries", plan.retries)
    check_no_run_settings(plan, source, "means nothing for processes that run already", *more)


def check_no_run_settings(plan: ExperimentPlan, source: TomlSource, reason: str, *more: tuple[str, object]) -> None:
    """``UsageError`` for settings of commands that are run here, and for those in ``more`` that a plan has; also for a window
    without a length.  ``reason``: goes on behind the name of a setting."""
    if plan.window_s <= 0:
        source.fail("a window takes time", "experiment", 0, "window")
    settings = (
        ("aa", plan.is_aa),
        ("warmup", plan.warmup),
        ("before", plan.before),
        ("drop_caches", plan.drop_caches),
        ("cpus", plan.cpus),
        ("keep_raw", plan.keep_raw),
    )
    for key in given(*settings, *more):
        source.fail(f"{key} {reason}", "experiment", 0, key)


def given(*settings: tuple[str, object]) -> Iterator[str]:
    """The names of those settings that a plan has."""
    return (key for key, value in settings if value)


def check_both_variants(plan: ExperimentPlan, source: TomlSource) -> None:
    """Of a crossover: every node under both of two variants."""
    if len(plan.variants) != 2:
        source.fail(f"a crossover has two variants, here are {len(plan.variants)}", "experiment", 0, "design")
    for number, target in enumerate(plan.targets):
        of_node = [other for other in plan.targets if other.node == target.node]
        if len(of_node) != 2:
            source.fail(f"node {target.node!r} must be listed under both variants", "target", number, "node")
        if of_node[0].is_excluded != of_node[1].is_excluded:
            source.fail(f"node {target.node!r} is excluded under one variant only", "target", number, "node")


def _check_crossover(plan: ExperimentPlan, source: TomlSource) -> None:
    if not plan.swap:
        source.fail('a crossover needs swap = ["command", "{node}", "{variant}"]', "experiment", 0, "design")
    for name in placeholders(plan.swap):
        if name not in ("node", "variant"):
            source.fail(f"{{{name}}} stands for nothing here{nearest_name(name, ['node', 'variant'])}", "experiment", 0, "swap")
    check_both_variants(plan, source)


def check_one_variant_each(plan: ExperimentPlan, source: TomlSource) -> None:
    """Of a parallel design: no node under two variants."""
    if plan.swap:
        source.fail('swap is for design = "crossover"', "experiment", 0, "swap")
    seen: dict[str, PlanTarget] = {}
    for number, target in enumerate(plan.targets):
        other = seen.setdefault(target.node, target)
        if other.variant != target.variant:
            message = f'node {target.node!r} is under two variants: that would be design = "crossover"'
            source.fail(message, "target", number, "node")


def check_replicates(plan: ExperimentPlan, source: TomlSource) -> None:
    """Enough processes, or places where a program is run, for a verdict."""
    replicate, replicates, each = ("host", "hosts", "runs") if plan.has_workloads else ("process", "processes", "windows")
    for variant in plan.variants:
        nodes = {target.node for target in plan.targets if target.variant == variant.name and not target.is_excluded}
        if len(nodes) < MIN_REPLICATES:
            message = (
                f"variant {variant.name} has {len(nodes)} {replicate if len(nodes) == 1 else replicates}; "
                f"the {replicate} is the replicate, so at least "
                f"{MIN_REPLICATES} are needed for a verdict, however many {each} each has"
            )
            source.fail(message, "target")
