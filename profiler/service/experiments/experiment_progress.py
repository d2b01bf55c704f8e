"""How far an experiment over agents is, in words and numbers, for pages and commands; pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from profiler.experiment.plan.plan_file import parse_plan
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.job import JobState
from profiler.service.experiments.course import Course, CourseState, NodeTask, Stage
from profiler.service.experiments.experiment_board import SubmittedExperiment
from profiler.service.experiments.turns import Turn, TurnPlan
from profiler.service.jobs.job_board import StoredJob

_STAGES = {
    Stage.GATHERING: "waits for its hosts",
    Stage.SWAPPING: "makes its nodes the variants of this period",
    Stage.SETTLING: "waits until everything has settled",
    Stage.MEASURING: "measures",
    Stage.ARRIVING: "waits for captures",
    Stage.KEEPING: "keeps the round",
}


@dataclass(frozen=True, slots=True)
class NodeProgress:
    """``variant``: what the node is in this round.  ``doing``: the state of its job, or why it has none."""

    node: str
    agent: str
    variant: str
    doing: str


@dataclass(frozen=True, slots=True)
class ExperimentProgress:
    """``round``, ``rounds``: which one is under way, from 1, and how many there are; ``attempt``: from 1, and ``again``: why
    there is another.  ``doing``: what the experiment does now.  ``detail``: why it ended, "" = it goes on, or went through.
    ``retries_left``: rounds that may be made again.  ``submitted_ns``: ns since 1970."""

    session: str
    name: str
    state: CourseState
    round: int
    rounds: int
    attempt: int
    doing: str
    detail: str
    nodes: tuple[NodeProgress, ...]
    retries_left: int
    submitted_ns: int
    again: str = ""


@dataclass(frozen=True, slots=True)
class Experiments:
    """Oldest first."""

    experiments: tuple[ExperimentProgress, ...]


def experiment_progress(experiment: SubmittedExperiment, jobs: Mapping[str, StoredJob]) -> ExperimentProgress:
    """``jobs``: at least those of the course's tasks, by ID."""
    course = experiment.course
    turns = TurnPlan(parse_plan(experiment.plan_text, Path(experiment.plan_name))).turns
    turn = turns[course.turn]
    is_ending = experiment.is_cancelled and not course.state.is_final
    return ExperimentProgress(
        session=experiment.session,
        name=experiment.name,
        state=course.state,
        round=turn.round + 1,
        rounds=turns[-1].round + 1,
        attempt=course.attempt + 1,
        doing="" if course.state.is_final else "is being cancelled" if is_ending else _STAGES[course.stage],
        detail=course.detail,
        nodes=() if course.state.is_final else _nodes(course, turn, jobs),
        retries_left=course.retries_left,
        submitted_ns=experiment.submitted_ns,
        again=course.again,
    )


def _nodes(course: Course, turn: Turn, jobs: Mapping[str, StoredJob]) -> tuple[NodeProgress, ...]:
    tasks = {task.node: task for task in course.tasks}
    return tuple(
        NodeProgress(role.node, role.agent, role.variant, _doing(course, tasks.get(role.node), jobs)) for role in turn.roles
    )


def _doing(course: Course, task: NodeTask | None, jobs: Mapping[str, StoredJob]) -> str:
    if task is None:
        return ""
    if task.problem or task.job not in jobs:
        return task.problem
    report = jobs[task.job].report
    if report.state is JobState.DONE and course.stage is Stage.ARRIVING:
        return "done, its capture may be on its way"
    return f"{report.state}: {report.detail}" if report.detail else report.state.value
