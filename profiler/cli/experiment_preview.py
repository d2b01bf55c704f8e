"""What `slotscope experiment run --dry-run` shows: the order of the runs, how long they may take, what they could show."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.context import CliContext
from profiler.model.quick_dataclass import dataclass

if TYPE_CHECKING:
    from profiler.experiment.evaluate import StoredExperiment
    from profiler.experiment.plan.experiment_plan import ExperimentPlan
    from profiler.experiment.plan.schedule import ScheduledRun
    from profiler.model.experiment_result import PowerRow, PowerTable
    from profiler.store.store import Store
    from reports.quantities import Scale


def preview(plan: ExperimentPlan, context: CliContext) -> str:
    """Lines for the terminal.  Duration and visible effects come from the latest session of the same experiment."""
    from profiler.experiment.plan.schedule import make_schedule
    from profiler.experiment.run.arms import arm_labels
    from reports.quantities import counted

    if plan.targets:
        return _targets_preview(plan, context)
    labels = arm_labels(plan)
    schedule = make_schedule(len(labels), plan.runs, plan.warmup, plan.profile, plan.seed)
    warmups = f", {len(schedule.warmups)} of them to warm up" if schedule.warmups else ""
    lines = [
        f"{plan.name}: {counted(len(labels), 'arm')}, {counted(len(schedule.rounds), 'round')}, "
        f"{counted(len(schedule), 'run')} in all{warmups}, seed {plan.seed}"
    ]
    if schedule.warmups:
        lines.append(f"warm-up: {', '.join(labels[run.arm] for run in schedule.warmups)}")
    lines += [f"round {number + 1}: {_order(runs, labels)}" for number, runs in enumerate(schedule.rounds)]
    return "\n".join([*lines, *_expectations(plan, len(schedule), context)]) + "\n"


def _targets_preview(plan: ExperimentPlan, context: CliContext) -> str:
    """Which process stands for what in which window, and what so many processes could show."""
    from profiler.experiment.targets.target_periods import target_periods
    from reports.quantities import counted

    periods = target_periods(plan)
    windows = sum(len(period.rounds) for period in periods)
    minutes = (windows * plan.window_s + len(periods) * plan.settle_s) / 60
    what = "run" if plan.has_workloads else "window"
    length = "" if plan.has_workloads else f" of {plan.window_s:g} s, about {minutes:.1f} min"
    lines = [f"{plan.name}: {plan.design}, {counted(windows, what)}{length}"]
    for period in periods:
        nodes = [f"{target.node} ({target.variant}{', excluded' if target.is_excluded else ''})" for target in period.targets]
        lines.append(f"{what}s {period.rounds.start + 1} to {period.rounds.stop}: {', '.join(nodes)}")
    counted_nodes = {(target.variant, target.node) for target in plan.targets if not target.is_excluded}
    replicates = min(sum(name == variant.name for name, _ in counted_nodes) for variant in plan.variants)
    store, earlier = _earlier(plan, context)
    if store is None or earlier is None:
        lines.append("what it could show is not known: no session of this experiment is in the store")
    else:
        lines += _visible_lines(
            plan, store, earlier, _Replicates(replicates, "nodes" if plan.is_over_agents else "processes", context)
        )
    return "\n".join(lines) + "\n"


def _order(runs: Sequence[ScheduledRun], labels: Sequence[str]) -> str:
    return ", ".join(f"{labels[run.arm]} ({run.mode})" for run in runs)


def _expectations(plan: ExperimentPlan, runs: int, context: CliContext) -> list[str]:
    store, earlier = _earlier(plan, context)
    if store is None or earlier is None:
        return ["how long it takes and what it could show is not known: no session of this experiment is in the store"]
    visible = _visible_lines(plan, store, earlier, _Replicates(plan.runs, "runs", context))
    return [_duration_line(store, earlier, runs), *visible]


def _earlier(plan: ExperimentPlan, context: CliContext) -> tuple[Store | None, StoredExperiment | None]:
    """The latest session of the same experiment."""
    from profiler.cli.context import existing_store
    from profiler.errors import UsageError
    from profiler.experiment.evaluate import find_experiment

    store = existing_store(context)
    try:
        return store, find_experiment(store, plan.name) if store is not None else None
    except UsageError:
        return store, None


def _duration_line(store: Store, earlier: StoredExperiment, runs: int) -> str:
    from profiler.cli.record_progress import rough_duration

    walls = [run.summary.wall_ns for run in store.runs(earlier.session.name) if not run.summary.failure]
    if not walls:
        return f"session {earlier.session.name} has no finished run: how long it takes is not known"
    total = runs * statistics.fmean(walls)
    return f"{rough_duration(total / 1e9)} in the programs alone, as in session {earlier.session.name}"


@dataclass(frozen=True, slots=True)
class _Replicates:
    """How many of ``what`` an arm of the plan has; ``context``: where progress is told."""

    count: int
    what: str
    context: CliContext


def _visible_lines(plan: ExperimentPlan, store: Store, earlier: StoredExperiment, replicates: _Replicates) -> list[str]:
    from profiler.cli.progress import SlowProgress
    from profiler.errors import AnalysisError
    from profiler.experiment.evaluate import Evaluator
    from profiler.experiment.experiment_power import experiment_power
    from profiler.pipeline import AnalysisOptions
    from reports.experiment_wording import power_title
    from symbolize.symbol_tools import symbol_tools

    what = f"{replicates.count} {replicates.what}"
    with SlowProgress(replicates.context.stderr) as progress:
        options = AnalysisOptions(phase=plan.phase)
        evaluator = Evaluator(
            store, options, plan.margin, symbol_tools((), replicates.context.debug_directory).symbolizer, progress
        )
        try:
            power = experiment_power(evaluator, earlier, plan.per, (replicates.count,))
        except AnalysisError as error:
            return [f"what {what} could show is not known: {error}"]
    lines = [f"smallest changes that {what} per arm would show, with the noise of session {earlier.session.name}:"]
    for table in power.tables:
        lines += [f" {power_title(table)}"] if len(power.tables) > 1 else []
        lines += _table_lines(table)
    return [*lines, *(f"not known: {line}" for line in power.unknown)]


def _table_lines(table: PowerTable) -> list[str]:
    from reports.quantities import scale_for

    scale = scale_for([row.mean for row in table.profile], table.unit)
    lines = [_visible_line(row, scale) for row in table.profile]
    return lines + [_visible_line(row, scale_for([row.mean], row.unit)) for row in table.metrics]


def _visible_line(row: PowerRow, scale: Scale) -> str:
    if not row.has_spread:
        return f"  {row.label}: not known, its runs agree exactly"
    share = f" ({100 * row.visible[0] / abs(row.mean):.1f} % of it)" if row.mean else ""
    return f"  {row.label}: {scale.quantity(row.visible[0], scale.decimals_of(row.visible[0]))}{share}"
