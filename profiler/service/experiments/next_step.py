"""The next step of an experiment over agents: from how far it has come, and what is known now, to how far it is then; pure.

Every step is kept before anything is done about it.  What is to be done, orders on the board and marks in the store, follows
from the kept value alone and may be done twice, so that an aggregator that was killed anywhere goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from profiler.experiment.plan.experiment_plan import PlanTarget
from profiler.model.quick_dataclass import dataclass
from profiler.service.experiments.course import Course, CourseState, NodeTask, Stage
from profiler.service.experiments.judgement import judged, nobody_left
from profiler.service.experiments.node_outcome import (
    NodeOutcome,
    Sight,
    arrival,
    measured_outcome,
    seconds_ns,
    swap_outcome,
)
from profiler.service.experiments.settings import RoundSettings
from profiler.service.experiments.turns import Turn, TurnPlan

_MOST_DOUBLINGS = 2


@dataclass(frozen=True, slots=True)
class Stepper:
    """``new_job``: an ID that nobody guesses."""

    turns: TurnPlan
    settings: RoundSettings
    new_job: Callable[[], str]

    def step(self, course: Course, sight: Sight) -> Course:
        """The same course when there is nothing to do but wait.  KEEPING is left by ``kept``."""
        if course.state.is_final:
            return course
        match course.stage:
            case Stage.GATHERING:
                return self._gather(course, sight)
            case Stage.SWAPPING:
                return self._await_swaps(course, sight)
            case Stage.SETTLING if sight.now_ns >= course.until_ns:
                return replace(course, stage=Stage.GATHERING, since_ns=sight.now_ns, is_settled=True)
            case Stage.MEASURING:
                return self._await_jobs(course, sight)
            case Stage.ARRIVING:
                return self._await_captures(course, sight)
        return course

    def kept(self, course: Course, now_ns: int) -> Course:
        """After a judgement has been carried into the store: the same turn again, the next one, or the end."""
        begun = replace(course, stage=Stage.GATHERING, since_ns=now_ns, tasks=(), start_at_ns=0, is_repeated=False)
        if course.is_repeated:
            return replace(begun, attempt=course.attempt + 1, again=_first_problem(course))
        begun = replace(begun, again="")
        if course.ending:
            return replace(begun, state=CourseState.FAILED, detail=course.ending)
        following = course.turn + 1
        if following == len(self.turns.turns):
            return replace(begun, state=CourseState.FINISHED)
        begun = replace(begun, turn=following, attempt=0)
        if self.turns.turns[following].period == self.turns.turns[course.turn].period:
            return begun
        return replace(begun, swapped=(), unswapped=(), is_settled=False)

    def begun_again(self, course: Course, now_ns: int) -> Course:
        """A turn whose orders could not be given in time is begun again, at nobody's expense."""
        return replace(course, stage=Stage.GATHERING, since_ns=now_ns, tasks=(), start_at_ns=0, attempt=course.attempt + 1)

    def _gather(self, course: Course, sight: Sight) -> Course:
        turn = self.turns.turns[course.turn]
        absent = self._absent(course, turn, sight)
        missing = [role for role in turn.roles if role.agent in absent and not role.is_excluded]
        awaited = [role.node for role in missing if role.node not in course.away]
        if awaited and sight.now_ns < course.since_ns + seconds_ns(self.settings.return_s):
            return course
        course = replace(course, away=tuple(sorted({*course.away, *awaited})))
        out = {task.node: task.problem for task in course.unswapped}
        ending = nobody_left(turn, out | {role.node: absent[role.agent] for role in missing})
        if ending:
            return replace(course, state=CourseState.FAILED, detail=ending, tasks=())
        if self.turns.needs_swaps:
            known = {*course.swapped, *out}
            to_swap = [role for role in turn.roles if role.node not in known and role.agent not in absent]
            if to_swap:
                return self._swap(course, to_swap, sight.now_ns)
        if self.turns.plan.settle_s and not course.is_settled:
            until_ns = sight.now_ns + seconds_ns(self.turns.plan.settle_s)
            return replace(course, stage=Stage.SETTLING, since_ns=sight.now_ns, until_ns=until_ns, tasks=())
        return self._measure(course, turn, replace(sight, absent=absent))

    def _absent(self, course: Course, turn: Turn, sight: Sight) -> dict[str, str]:
        """Agents with the reason.  One that had a problem a moment ago may have gone then, and not be silent for long yet."""
        absent = dict(sight.absent)
        for role in turn.roles:
            is_awaited = role.node in course.bad_before and role.node not in course.away
            if is_awaited and sight.heard_ns.get(role.agent, 0) < course.since_ns:
                absent.setdefault(role.agent, "its agent has said nothing since its last problem")
        return absent

    def _swap(self, course: Course, roles: list[PlanTarget], now_ns: int) -> Course:
        return replace(
            course,
            stage=Stage.SWAPPING,
            since_ns=now_ns,
            until_ns=now_ns + seconds_ns(self.settings.swap_s),
            tasks=tuple(NodeTask(role.node, self.new_job()) for role in roles),
            is_settled=False,
        )

    def _measure(self, course: Course, turn: Turn, sight: Sight) -> Course:
        # A host that was not ready in time may be slow today.
        lead_s = self.settings.lead_s * 2 ** min(course.attempt, _MOST_DOUBLINGS)
        start_at_ns = sight.now_ns + seconds_ns(lead_s)
        plan = self.turns.plan
        length_s = (plan.timeout_s or self.settings.longest_run_s) if plan.has_workloads else plan.window_s
        return replace(
            course,
            stage=Stage.MEASURING,
            since_ns=sight.now_ns,
            start_at_ns=start_at_ns,
            until_ns=start_at_ns + seconds_ns(length_s + self.settings.report_s),
            tasks=tuple(self._measure_task(course, role, sight) for role in turn.roles),
        )

    def _measure_task(self, course: Course, role: PlanTarget, sight: Sight) -> NodeTask:
        out = next((task.problem for task in course.unswapped if task.node == role.node), "")
        absent = sight.absent.get(role.agent, "")
        if not out and not absent and self.turns.needs_swaps and role.node not in course.swapped:
            out = "not swapped: its host was away then"
        problem = out or absent
        return NodeTask(role.node, problem=problem) if problem else NodeTask(role.node, self.new_job())

    def _await_swaps(self, course: Course, sight: Sight) -> Course:
        outcomes = {task.node: swap_outcome(sight.jobs.get(task.job), sight.now_ns, course.until_ns) for task in course.tasks}
        if not all(outcome.is_over for outcome in outcomes.values()):
            return course
        tasks = tuple(replace(task, problem=outcomes[task.node].problem) for task in course.tasks)
        done = {task.node for task in tasks if not task.problem}
        turn = self.turns.turns[course.turn]
        counted = {role.node for role in turn.roles if not role.is_excluded}
        failed = {task.node for task in tasks if task.problem}
        blocking = (failed & counted) - set(course.away)
        tried_twice = blocking & set(course.bad_before)
        course = replace(
            course,
            stage=Stage.GATHERING,
            since_ns=sight.now_ns,
            tasks=(),
            swapped=tuple(sorted({*course.swapped, *done})),
            bad_before=tuple(sorted(blocking)),
        )
        if blocking - tried_twice and course.retries_left:
            return replace(course, attempt=course.attempt + 1, retries_left=course.retries_left - 1)
        staying = tuple(NodeTask(task.node, problem=task.problem) for task in tasks if task.problem)
        return replace(course, away=tuple(sorted({*course.away, *blocking})), unswapped=(*course.unswapped, *staying))

    def _await_jobs(self, course: Course, sight: Sight) -> Course:
        agents = {role.node: role.agent for role in self.turns.turns[course.turn].roles}

        def outcome(task: NodeTask) -> NodeOutcome:
            if task.problem:
                return NodeOutcome(True, task.problem)
            error_ns = sight.clock_errors_ns.get(agents[task.node], 0)
            skew_ns = seconds_ns(self.settings.largest_skew_s) + error_ns
            return measured_outcome(sight.jobs.get(task.job), sight.now_ns, course.until_ns, skew_ns)

        outcomes = [outcome(task) for task in course.tasks]
        if not all(each.is_over for each in outcomes):
            return course
        return replace(
            course,
            stage=Stage.ARRIVING,
            since_ns=sight.now_ns,
            until_ns=sight.now_ns + seconds_ns(self.settings.arrival_s),
            tasks=tuple(replace(task, problem=each.problem) for task, each in zip(course.tasks, outcomes, strict=True)),
        )

    def _await_captures(self, course: Course, sight: Sight) -> Course:
        def outcome(task: NodeTask) -> NodeOutcome:
            if task.problem:
                return NodeOutcome(True, task.problem)
            return arrival(sight.jobs.get(task.job), sight.captures, sight.now_ns, course.until_ns)

        outcomes = [outcome(task) for task in course.tasks]
        if not all(each.is_over for each in outcomes):
            return course
        tasks = tuple(replace(task, problem=each.problem) for task, each in zip(course.tasks, outcomes, strict=True))
        return judged(replace(course, tasks=tasks), self.turns, sight.now_ns)


def _first_problem(course: Course) -> str:
    """Of the nodes for which the turn is made again."""
    return next(
        (f"{task.node}: {task.problem}" for task in course.tasks if task.problem and task.node in course.bad_before), ""
    )
