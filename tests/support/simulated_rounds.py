"""An experiment over simulated agents, carried out to its end by an aggregator that may be killed at any change it makes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from profiler.experiment.plan.experiment_plan import ExperimentPlan
from profiler.experiment.plan.plan_file import parse_plan
from profiler.service.experiments.coordinator import Coordinator
from profiler.service.experiments.course import Course
from profiler.service.experiments.experiment_board import SubmittedExperiment
from profiler.service.experiments.settings import RoundSettings
from support.simulated_agents import (
    Deed,
    Fuse,
    KilledError,
    MemoryAgents,
    MemoryExperiments,
    MemoryJobs,
    MemoryShelf,
    SimulatedHosts,
    hello,
)

SESSION = "20261201-120000-abcd"
STEP_S = 5.0
SETTINGS = RoundSettings(arrival_s=300.0)


def agent_plan(
    nodes: dict[str, str], *, design: str = "parallel", profile: str = "none", runs: int = 2, more: str = "", excluded: str = ""
) -> str:
    """A plan of one process per node.  ``nodes``: name -> variant, of a parallel design; ignored values in a crossover."""
    variants = sorted(set(nodes.values())) if design == "parallel" else ["base", "fat"]
    text = f'[experiment]\nname = "x"\ndesign = "{design}"\nprofile = "{profile}"\nruns = {runs}\nwindow = "30 s"\n{more}\n'
    text += "".join(f'[[variant]]\nname = "{name}"\n' for name in variants)
    for node, variant in nodes.items():
        for each in [variant] if design == "parallel" else variants:
            text += f'[[target]]\nvariant = "{each}"\nagent = "{node}"\nprocess = "node"\n'
            text += "exclude = true\n" if node == excluded else ""
    return text


@dataclass(slots=True)
class SimulatedExperiment:
    plan: ExperimentPlan
    hosts: SimulatedHosts
    experiments: MemoryExperiments
    kills: int = 0

    @property
    def course(self) -> Course:
        return self.experiments.stored[SESSION].course

    @property
    def shelf(self) -> MemoryShelf:
        return self.hosts.shelf

    def coordinator(self) -> Coordinator:
        hosts = self.hosts
        return Coordinator(
            self.experiments, hosts.jobs, hosts.agents, hosts.shelf, lambda: hosts.now_ns, SETTINGS, started_ns=hosts.now_ns
        )

    def counted(self) -> list[tuple[str, str, int, str]]:
        """(node, variant, round, mode) of every window that counts, sorted."""
        return sorted(
            (each.node, each.variant, each.round, each.mode) for each in self.shelf.windows.values() if not each.failure
        )


def simulated(text: str, deed_of: Callable[[str, int], Deed], fuse: Fuse | None = None) -> SimulatedExperiment:
    """Submitted, and nothing done yet."""
    plan = parse_plan(text, Path("plan.toml"))
    fuse = fuse or Fuse()
    jobs, agents, shelf = MemoryJobs(fuse), MemoryAgents(), MemoryShelf(fuse)
    hosts = SimulatedHosts(jobs, agents, shelf, deed_of)
    for name in sorted({target.agent for target in plan.targets}):
        hosts.add(name, hello(host=name))
    experiments = MemoryExperiments(fuse)
    course = Course(since_ns=hosts.now_ns, retries_left=plan.retries)
    experiments.add(SubmittedExperiment(SESSION, plan.name, "plan.toml", text, hosts.now_ns, course), lambda others: None)
    return SimulatedExperiment(plan, hosts, experiments)


def carry_out(
    text: str, deed_of: Callable[[str, int], Deed], kills_at: Collection[int] = (), down_s: float = 0.0, most_steps: int = 5000
) -> SimulatedExperiment:
    """To its end.  ``kills_at``: numbers of changes, counted anew after each kill, at which the aggregator is killed; another
    one takes its place after ``down_s``."""
    fuse, waiting = Fuse(), list(kills_at)
    experiment = simulated(text, deed_of, fuse)
    coordinator = experiment.coordinator()
    for _ in range(most_steps):
        fuse.at, fuse.passed = (waiting[0], fuse.passed) if waiting else (-1, 0)
        try:
            coordinator.tick()
        except KilledError:
            waiting.pop(0)
            fuse.passed = 0
            experiment.kills += 1
            experiment.hosts.pass_time_unheard(down_s)
            coordinator = experiment.coordinator()
        if experiment.course.state.is_final:
            experiment.hosts.pass_time(500.0)
            coordinator.leave_out_late()
            return experiment
        experiment.hosts.pass_time(STEP_S)
    raise AssertionError(f"no end: {experiment.course}")
