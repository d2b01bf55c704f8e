"""The numbers that a run of an arm reports beside those in the program's own output, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from collectors.metrics import MetricSpec, parse_metric, read_metrics
from collectors.processes.process_output import output_tail, with_last_line
from collectors.processes.process_tree import TreeCommand, run_tree
from collectors.profilers.perf_stat import StatMetric
from collectors.prometheus import PageMetric, parse_series
from profiler.errors import CaptureError
from profiler.experiment.plan.experiment_plan import ExperimentPlan, MetricKind, PlanLoad, PlanMetric
from profiler.experiment.plan.placeholders import replaced
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import Metric

COMMAND_TIMEOUT_S = 60.0
_IN_OUTPUT = (MetricKind.REGEX, MetricKind.JSON)


@dataclass(frozen=True, slots=True)
class CommandMetric:
    """``command``: argument list run after the run, ``spec`` says what is read in its output."""

    spec: MetricSpec
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArmMetrics:
    """``load_output``: in what the load prints; ``pages``: on the service's Prometheus page; ``stats``: of plain runs only."""

    commands: tuple[CommandMetric, ...] = ()
    stats: tuple[StatMetric, ...] = ()
    load_output: tuple[MetricSpec, ...] = ()
    pages: tuple[PageMetric, ...] = ()


def output_metrics(plan: ExperimentPlan) -> tuple[MetricSpec, ...]:
    """What every run reads in its program's own output."""
    return tuple(_in_output(metric) for metric in plan.metrics if metric.kind in _IN_OUTPUT and not metric.from_load)


def arm_metrics(plan: ExperimentPlan, load: PlanLoad | None, values: Mapping[str, str]) -> ArmMetrics:
    """The others.  ``values``: of the placeholders in commands."""
    mine = [metric for metric in plan.metrics if not metric.from_load or (load is not None and metric.from_load == load.name)]
    return ArmMetrics(
        commands=tuple(
            CommandMetric(parse_metric(f"{metric.name}={metric.spec}", metric.pick), replaced(metric.command, values))
            for metric in mine
            if metric.kind is MetricKind.COMMAND
        ),
        stats=tuple(StatMetric(metric.name, metric.spec.strip()) for metric in mine if metric.kind is MetricKind.STAT),
        load_output=tuple(_in_output(metric) for metric in mine if metric.kind in _IN_OUTPUT and metric.from_load),
        pages=tuple(
            parse_series(metric.name, metric.spec)
            for metric in mine
            if metric.kind is MetricKind.PROMETHEUS and load is not None and load.metrics
        ),
    )


def command_metrics(metrics: tuple[CommandMetric, ...], directory: Path) -> tuple[Metric, ...]:
    """Runs the commands.  ``CaptureError`` when one fails, takes longer than a minute, or prints no such number."""
    found: list[Metric] = []
    for number, metric in enumerate(metrics):
        output = directory / f"metric-{number}"
        done = run_tree(TreeCommand(metric.command, Path.cwd(), output, timeout_s=COMMAND_TIMEOUT_S))
        if done.timed_out:
            raise CaptureError(f"metric {metric.spec.name!r}: its command took more than {COMMAND_TIMEOUT_S:.0f} s")
        if done.exit_code:
            ended = f"metric {metric.spec.name!r}: its command ended with {done.exit_code}"
            raise CaptureError(with_last_line(ended, output_tail(output)))
        found += read_metrics((metric.spec,), output)
    return tuple(found)


def _in_output(metric: PlanMetric) -> MetricSpec:
    return parse_metric(f"{metric.name}={metric.kind}:{metric.spec}", metric.pick)
