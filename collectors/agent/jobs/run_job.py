"""Jobs that run a program to its end: a workload, or the command that makes a target another variant."""

from __future__ import annotations

import os
import time
from pathlib import Path

from collectors.agent.config.agent_config import ConfiguredTarget, ConfiguredWorkload
from collectors.agent.jobs.job_events import JobEvents
from collectors.agent.jobs.job_values import JobTask
from collectors.agent.spool.spool import session_command
from collectors.metrics import parse_metric
from collectors.processes.process_output import output_tail, with_last_line
from collectors.processes.process_tree import TreeCommand, run_tree
from collectors.processes.start_moment import StartMoment
from profiler.errors import CaptureError
from profiler.experiment.plan.call_graph_request import parse_call_graph
from profiler.experiment.plan.placeholders import replaced
from profiler.experiment.plan.recording_plan import DEFAULT_EVENT, ProfilePolicy, RecordPlan, variant_arms
from profiler.experiment.plan.schedule import Schedule, ScheduledRun
from profiler.experiment.run.executor import Executor, RunExecutor
from profiler.experiment.run.preparation import Preparation
from profiler.experiment.run.program_workload import ProgramWorkload
from profiler.experiment.run.progress import FinishedRun, SessionSummary
from profiler.experiment.run.runner import record_session
from profiler.experiment.run.workplace import Workplace
from profiler.orders.refusal import sampling_rate_hz
from profiler.protocol.job import JobOrder
from profiler.store.store import Store
from reports.quantities import counted


def run_job(task: JobTask, workload: ConfiguredWorkload, store: Store, events: JobEvents) -> None:
    """Runs the workload as often as ordered.  Errors of ``record_session``; the runs so far are in the store."""
    order = task.order
    if workload.directory:
        _enter(workload.directory)
    moment = StartMoment(task.begin_at_ns, events.ready, events.begun)

    def make_executor(preparation: Preparation, place: Workplace) -> Executor:
        return RunExecutor(preparation, place, ProgramWorkload(preparation.plan, place, moment=moment))

    progress = _Progress(events, order.runs)
    summary = record_session(_plan(task, workload), store, progress, make_executor)
    failures = [run.outcome.failure for run in summary.runs if run.outcome.failure]
    if failures:
        events.failed(f"{len(failures)} of {counted(order.runs, 'run')} failed: {failures[-1]}")
    else:
        events.done(counted(len(summary.runs), "run"))


def _plan(task: JobTask, workload: ConfiguredWorkload) -> RecordPlan:
    order = task.order
    return RecordPlan(
        command=session_command(order.id),
        arms=variant_arms(workload.command, ((order.variant, workload.binary(order.variant)),)),
        seed=0,
        runs=order.runs,
        profile=ProfilePolicy.SAME if order.is_profiled else ProfilePolicy.NONE,
        event=DEFAULT_EVENT if order.event == "auto" else order.event,
        frequency_hz=sampling_rate_hz(order),
        call_graph=parse_call_graph(order.call_graph),
        metrics=tuple(parse_metric(f"{metric.name}={metric.spec}", metric.pick) for metric in order.metrics),
        phase=order.phase,
        timeout_s=task.longest_s,
    )


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise CaptureError(f"{directory}: {error.strerror}") from None


class _Progress:
    """Tells the agent after every run."""

    def __init__(self, events: JobEvents, runs: int) -> None:
        self._events = events
        self._runs = runs
        self._done = 0

    def session_started(self, session: str, preparation: Preparation, schedule: Schedule) -> None:
        """The agent knows."""

    def run_started(self, scheduled: ScheduledRun, variant: str) -> None:
        """Told when it has really begun."""

    def run_finished(self, run: FinishedRun) -> None:
        self._done += 1
        self._events.progress(f"{self._done} of {counted(self._runs, 'run')}")

    def session_ended(self, summary: SessionSummary) -> None:
        """Told by whoever began it."""


def swap_job(task: JobTask, target: ConfiguredTarget, store: Store, events: JobEvents) -> None:
    """Makes the target the ordered variant.  ``CaptureError`` when the command cannot be run."""
    moment = StartMoment(task.begin_at_ns, events.ready, events.begun)
    moment.wait()
    with store.working_directory() as directory:
        output = directory / "swap"
        moment.passed(time.monotonic_ns())
        command = TreeCommand(swap_command(target, task.order), Path.cwd(), output, timeout_s=task.longest_s)
        done = run_tree(command)
        printed = output_tail(output)
    if done.timed_out:
        events.failed(with_last_line(f"the swap took more than {task.longest_s:g} s", printed))
    elif done.exit_code:
        events.failed(with_last_line(f"the swap ended with {done.exit_code}", printed))
    else:
        events.done(with_last_line(f"{target.name} is {task.order.variant}", printed))


def swap_command(target: ConfiguredTarget, order: JobOrder) -> tuple[str, ...]:
    return replaced(target.swap, {"variant": order.variant})
