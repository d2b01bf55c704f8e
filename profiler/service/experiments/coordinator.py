"""Carries experiments over agents out: orders on the job board, judgements into the store, one kept step after the other."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from profiler.errors import StoreError, UsageError
from profiler.experiment.plan.experiment_plan import PlanTarget
from profiler.experiment.plan.plan_file import parse_plan
from profiler.model.run import HostFacts, RunIdentity
from profiler.protocol.hello import version_problem
from profiler.service.agents.agent_registry import AgentRegistry, KnownAgent
from profiler.service.experiments.capture_shelf import CaptureShelf, MissedWindow
from profiler.service.experiments.course import Course, CourseState, NodeTask, Stage
from profiler.service.experiments.experiment_board import ExperimentBoard, SubmittedExperiment
from profiler.service.experiments.judgement import failures
from profiler.service.experiments.next_step import Stepper
from profiler.service.experiments.node_outcome import Sight, seconds_ns
from profiler.service.experiments.settings import RoundSettings
from profiler.service.experiments.turns import TurnPlan
from profiler.service.jobs.job_board import JobBoard
from profiler.service.service_log import LOG
from profiler.store.records import SessionState

LATE = "arrived after its round was over"
_CANCELLED = "the experiment was cancelled"
_GIVEN_UP = "its round was over"
# Steps that follow each other without waiting for anything are taken at once; a round has fewer.
_STEPS_AT_ONCE = 12


@dataclass(slots=True)
class Coordinator:
    """``started_ns``: when the aggregator began to listen; what agents said before tells nothing of those that could not reach
    it."""

    experiments: ExperimentBoard
    jobs: JobBoard
    agents: AgentRegistry
    shelf: CaptureShelf
    clock_ns: Callable[[], int]
    settings: RoundSettings
    started_ns: int
    _turns: dict[str, TurnPlan] = field(default_factory=dict)
    _told: dict[str, str] = field(default_factory=dict)

    def tick(self) -> None:
        """As far as every open experiment can go now.  What the store refuses waits, and the next tick tries again.

        ``StoreError`` when not even the experiments can be read."""
        for experiment in self.experiments.experiments(only_open=True):
            try:
                self._carry_on(experiment)
            except StoreError as error:
                self._say_once(experiment.session, f"waits: {error}")
            else:
                self._told.pop(experiment.session, None)

    def clock_was_set(self, step_ns: int) -> None:
        """What was to happen after some time happens after that time all the same, and what agents said by the old clock tells
        nothing of their silence.  A round that is under way keeps its common instant, which agents hold by clocks of their own,
        and may have to be made again.  ``StoreError``."""
        self.started_ns = self.clock_ns()
        for experiment in self.experiments.experiments(only_open=True):
            course = experiment.course
            moved = replace(course, since_ns=course.since_ns + step_ns, until_ns=course.until_ns and course.until_ns + step_ns)
            self.experiments.keep(experiment.session, moved)

    def _carry_on(self, experiment: SubmittedExperiment) -> None:
        for _ in range(_STEPS_AT_ONCE):
            course = self._advance(experiment)
            if course == experiment.course:
                return
            self.experiments.keep(experiment.session, course)
            experiment = replace(experiment, course=course)
            if course.state.is_final:
                LOG.info("experiment %s: %s", experiment.session, f"{course.state} {course.detail}".strip())
                self._turns.pop(experiment.session, None)
                return

    def _say_once(self, session: str, what: str) -> None:
        if self._told.get(session) != what:
            self._told[session] = what
            LOG.error("experiment %s %s", session, what)

    def leave_out_late(self) -> None:
        """Captures that came after the end of their experiment do not count."""
        for experiment in self.experiments.experiments():
            if experiment.course.state.is_final:
                self._leave_out_others(experiment.session)

    def _advance(self, experiment: SubmittedExperiment) -> Course:
        """The next course, all that must be true of the world before it being done."""
        if experiment.is_cancelled:
            course = replace(experiment.course, state=CourseState.CANCELLED, detail=_CANCELLED, tasks=())
        else:
            try:
                course = self._stepped(experiment)
            except UsageError as error:  # checked when it was submitted, by another version perhaps
                course = replace(experiment.course, state=CourseState.FAILED, detail=str(error), tasks=())
        if course.state.is_final:
            self._end(experiment.session, course.state)
        return course

    def _stepped(self, experiment: SubmittedExperiment) -> Course:
        course, stepper = experiment.course, self._stepper(experiment)
        sight = self._sight(experiment.session, course, stepper.turns)
        if course.stage is Stage.KEEPING:
            self._keep(experiment, stepper.turns, sight)
            return stepper.kept(course, sight.now_ns)
        if course.stage in (Stage.SWAPPING, Stage.MEASURING):
            missing = [task for task in course.tasks if task.job and task.job not in sight.jobs]
            if missing and course.stage is Stage.MEASURING and self._is_too_late(course, sight.now_ns):
                self._cancel(course.tasks, sight)
                return stepper.begun_again(course, sight.now_ns)
            for task in missing:
                self._order(experiment, stepper.turns, task, sight.now_ns)
            if missing:
                sight = self._sight(experiment.session, course, stepper.turns)
        following = stepper.step(course, sight)
        if course.stage is Stage.SWAPPING and following.stage is not Stage.SWAPPING:
            # Those that took too long: an agent that comes back would carry one out in the middle of another period.
            self._cancel(course.tasks, sight)
        return following

    def _stepper(self, experiment: SubmittedExperiment) -> Stepper:
        turns = self._turns.get(experiment.session)
        if turns is None:
            turns = TurnPlan(parse_plan(experiment.plan_text, Path(experiment.plan_name)))
            self._turns[experiment.session] = turns
        return Stepper(turns, self.settings, lambda: secrets.token_urlsafe(16))

    def _is_too_late(self, course: Course, now_ns: int) -> bool:
        return course.start_at_ns - now_ns < seconds_ns(self.settings.lead_s) // 2

    def _sight(self, session: str, course: Course, turns: TurnPlan) -> Sight:
        now_ns = self.clock_ns()
        known = {agent.name: agent for agent in self.agents.agents()}
        agents = sorted({role.agent for role in turns.turns[course.turn].roles})
        absent = {agent: self.absence(known.get(agent), now_ns) for agent in agents}
        jobs = {task.job: job for task in course.tasks if task.job and (job := self.jobs.job(task.job)) is not None}
        captures = [capture for job in jobs.values() for capture in job.report.captures]
        return Sight(
            now_ns=now_ns,
            absent={agent: why for agent, why in absent.items() if why},
            heard_ns={agent.name: agent.heard_ns for agent in known.values()},
            jobs=jobs,
            captures=self.shelf.arrived(session, captures) if course.stage is Stage.ARRIVING else {},
            clock_errors_ns={name: agent.hello.clock.error_ns for name, agent in known.items() if agent.hello.clock},
        )

    def absence(self, agent: KnownAgent | None, now_ns: int) -> str:
        """Why nothing can be asked of an agent now, "" = it can."""
        if agent is None:
            return "its agent never said hello"
        heard_ns = agent.heard_ns if agent.heard_ns <= now_ns else 0  # else by a clock that was set back since
        silent_ns = now_ns - max(heard_ns, self.started_ns)
        if silent_ns > seconds_ns(self.settings.silent_s):
            return f"its agent is silent for {silent_ns / 1e9:.0f} s"
        if problem := version_problem(agent.hello.protocol):
            return problem
        if agent.hello.spool.problem:
            return f"its agent takes no jobs: {agent.hello.spool.problem}"
        error_ns, most_ns = agent.hello.clock.error_ns if agent.hello.clock else 0, seconds_ns(self.settings.clock_error_s)
        if error_ns > most_ns:
            return f"its agent's clock may be wrong by {error_ns / 1e6:.0f} ms, at most {most_ns / 1e6:.0f} ms are allowed"
        return ""

    def _order(self, experiment: SubmittedExperiment, turns: TurnPlan, task: NodeTask, now_ns: int) -> None:
        course, session = experiment.course, experiment.session
        turn = turns.turns[course.turn]
        role = _role_of(turn.roles, task.node)
        if course.stage is Stage.SWAPPING:
            order = turns.swap_order(turn, role, task.job, session)
        else:
            order = turns.measure_order(turn, role, task.job, session, course.start_at_ns)
        self.jobs.add(role.agent, order, now_ns)

    def _cancel(self, tasks: tuple[NodeTask, ...], sight: Sight) -> None:
        for task in tasks:
            if task.job in sight.jobs and not sight.jobs[task.job].report.state.is_final:
                self.jobs.cancel(task.job, _GIVEN_UP, sight.now_ns)

    def _keep(self, experiment: SubmittedExperiment, turns: TurnPlan, sight: Sight) -> None:
        """Carries a judgement into the store."""
        course, session = experiment.course, experiment.session
        turn = turns.turns[course.turn]
        self._cancel(course.tasks, sight)
        reasons = failures(course, turns)
        for position, task in enumerate(course.tasks):
            job = sight.jobs.get(task.job)
            captures = job.report.captures if job is not None else ()
            if not reasons[task.node]:
                self.experiments.count(session, captures)
                for capture in captures:
                    self.shelf.count(session, capture)
                continue
            is_there = [self.shelf.leave_out(session, capture, reasons[task.node]) for capture in captures]
            if task.problem and not any(is_there):
                window = self._missed(experiment, turns, task, reasons[task.node], position)
                self.shelf.add_missed(window, f"{session} {course.turn} {course.attempt} {task.node}")
        self._leave_out_others(session)
        if turn.ends_round and not course.is_repeated:
            self.shelf.finish_round(session, turn.round)

    def _missed(
        self, experiment: SubmittedExperiment, turns: TurnPlan, task: NodeTask, failure: str, place: int
    ) -> MissedWindow:
        course, turn = experiment.course, turns.turns[experiment.course.turn]
        role = _role_of(turn.roles, task.node)
        position = course.turn * len(turn.roles) + place
        identity = RunIdentity(
            experiment.session, role.variant, turn.round, turn.mode, position, "", role.node, bool(role.workload)
        )
        known = {agent.name: agent.hello.host for agent in self.agents.agents()}
        host = known.get(role.agent, HostFacts(hostname=role.agent))
        return MissedWindow(identity, host, failure, course.start_at_ns or course.since_ns)

    def _leave_out_others(self, session: str) -> None:
        """Of jobs that were given up, whose captures nobody announced."""
        counted = self.experiments.counted(session)
        for capture in self.shelf.unmarked(session):
            if capture not in counted:
                self.shelf.leave_out(session, capture, LATE)

    def _end(self, session: str, state: CourseState) -> None:
        now_ns = self.clock_ns()
        for job in self.jobs.jobs(session, only_open=True):
            self.jobs.cancel(job.order.id, _CANCELLED if state is CourseState.CANCELLED else _GIVEN_UP, now_ns)
        self._leave_out_others(session)
        finished = state is CourseState.FINISHED
        self.shelf.finish_session(session, SessionState.FINISHED if finished else SessionState.INTERRUPTED)


def _role_of(roles: tuple[PlanTarget, ...], node: str) -> PlanTarget:
    return next(role for role in roles if role.node == node)
