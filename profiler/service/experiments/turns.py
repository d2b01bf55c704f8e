"""Who does what when in an experiment over agents; pure.

A turn is what all nodes do at the same moment: one window or run each, plain or under a profiler.  A round has a turn for each
of them, as the plan's ``profile`` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from profiler.experiment.plan.experiment_plan import ExperimentPlan, MetricKind, PlanMetric, PlanTarget
from profiler.experiment.plan.schedule import PASSES
from profiler.experiment.targets.target_periods import target_periods
from profiler.model.experiment import Design
from profiler.model.run import RunMode
from profiler.protocol.job import JobKind, JobOrder, OrderedMetric


@dataclass(frozen=True, slots=True)
class Turn:
    """``round``: of the captures, from 0; ``roles``: each node as the variant that it is in this ``period``; ``ends_round``:
    no other turn of the round follows."""

    round: int
    period: int
    mode: RunMode
    roles: tuple[PlanTarget, ...]
    ends_round: bool


@dataclass(frozen=True)
class TurnPlan:
    """A plan over agents and its turns."""

    plan: ExperimentPlan

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """In order of time."""
        passes = PASSES[self.plan.profile]
        return tuple(
            Turn(number, place, mode, period.targets, mode is passes[-1])
            for place, period in enumerate(target_periods(self.plan))
            for number in period.rounds
            for mode in passes
        )

    @property
    def needs_swaps(self) -> bool:
        """Whether nodes are made another variant between periods; workloads are simply run in another one."""
        return self.plan.design is Design.CROSSOVER and not self.plan.has_workloads

    def measure_order(self, turn: Turn, role: PlanTarget, job: str, session: str, start_at_ns: int) -> JobOrder:
        """The window or run of one node."""
        plan = self.plan
        mode = plan.call_graph.mode
        return JobOrder(
            id=job,
            kind=JobKind.RUN if role.workload else JobKind.ATTACH,
            name=role.workload or role.process,
            variant=role.variant,
            session=session,
            instance=role.node,
            round=turn.round,
            start_at_ns=start_at_ns,
            window_s=0.0 if role.workload else plan.window_s,
            is_profiled=turn.mode is RunMode.PROFILED,
            event=plan.event,
            frequency_hz=plan.frequency_hz,
            call_graph=f"{mode},{plan.call_graph.dump_bytes}" if mode == "dwarf" else mode,
            phase=plan.phase,
            metrics=tuple(OrderedMetric(metric.name, _spec(metric), metric.pick) for metric in plan.metrics),
            settle_s=0.0 if role.workload else plan.settle_s,
        )

    def swap_order(self, turn: Turn, role: PlanTarget, job: str, session: str) -> JobOrder:
        """Makes one node the variant that it is in the turn's period."""
        return JobOrder(job, JobKind.SWAP, role.process, role.variant, session, role.node, turn.round)


def _spec(metric: PlanMetric) -> str:
    return metric.spec if metric.kind is MetricKind.PROMETHEUS else f"{metric.kind}:{metric.spec}"
