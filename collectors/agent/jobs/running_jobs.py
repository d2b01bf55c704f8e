"""All jobs under way: taken, watched, ended, and every step of theirs reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from collectors.agent.agent_log import AgentLog
from collectors.agent.config.agent_config import AgentConfig
from collectors.agent.connection.server_clock import ServerClock
from collectors.agent.jobs.job_values import JobEvent, JobEventKind, JobTask
from collectors.agent.jobs.order_check import is_job_id, longest_s, refusal
from collectors.agent.jobs.running_job import RunningJob
from collectors.agent.spool.spool import Spool, used_bytes
from collectors.processes.guard import GroupGuard
from profiler.errors import StoreError
from profiler.protocol.job import JobKind, JobOrder, JobReport, JobState

MOST_JOBS = 16
# Of the room in the spool when a job begins, for binaries and debug files of containers.
KEPT_SHARE = 0.5
LONGEST_DETAIL = 500
_STATES = {JobEventKind.READY: JobState.READY, JobEventKind.BEGUN: JobState.RUNNING, JobEventKind.PROGRESS: JobState.RUNNING}
Item = TypeVar("Item")
Tell = Callable[[str, JobReport], None]


@dataclass(slots=True)
class RunningJobs:
    """For the main thread.  ``tell``: sends a report on its way.  ``_clocks``, ``_begun``: of each job the clock it was taken
    with, and when it began by that."""

    config: AgentConfig
    spool: Spool
    guard: GroupGuard
    log: AgentLog
    tell: Tell
    _jobs: dict[str, RunningJob] = field(default_factory=dict)
    _clocks: dict[str, ServerClock] = field(default_factory=dict)
    _begun: dict[str, int] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._jobs)

    @property
    def descriptors(self) -> list[int]:
        """One of them is readable when something has happened."""
        return [descriptor for job in self._jobs.values() for descriptor in job.descriptors]

    def take(self, order: JobOrder, clock: ServerClock, now_ns: int) -> None:
        """Carries out an order that is new, or says why not.  ``now_ns``: CLOCK_MONOTONIC.  ``StoreError``: it is not taken."""
        if not is_job_id(order.id) or order.id in self._jobs:
            return
        known = self.spool.tables.jobs(order.id)
        if known:
            if known[0].report.state.is_final:
                self.tell(order.id, known[0].report)
            return
        reason = refusal(order, self.config, clock.server_of(now_ns))
        if reason:
            self._final(order.id, JobReport(JobState.REFUSED, self._detail(reason)))
        elif len(self._jobs) < MOST_JOBS and not self._must_wait(order):
            self._begin(order, clock)

    def _must_wait(self, order: JobOrder) -> bool:
        """For another job of its target, when either makes it another variant: the server offers it again."""
        orders = [job.task.order for job in self._jobs.values()]
        of_target = [other for other in orders if other.kind is not JobKind.RUN and other.name == order.name]
        return order.kind is not JobKind.RUN and any(JobKind.SWAP in (order.kind, other.kind) for other in of_target)

    def _begin(self, order: JobOrder, clock: ServerClock) -> None:
        accepted = JobReport(JobState.ACCEPTED)
        self.spool.tables.put_report(order.id, accepted)
        total_s = longest_s(order, self.config)
        task = JobTask(
            order,
            str(self.spool.store.directory.absolute()),
            clock.monotonic_of(order.start_at_ns) if order.start_at_ns else 0,
            total_s,
            self.config.target(order.name) if order.kind is not JobKind.RUN else None,
            self.config.workload(order.name) if order.kind is JobKind.RUN else None,
            most_kept_bytes=round(KEPT_SHARE * max(0, self.spool.limit_bytes - used_bytes(self.spool.directory))),
        )
        try:
            job = RunningJob(task, total_s, self.guard)
        except OSError as error:
            self._final(order.id, JobReport(JobState.FAILED, f"no process can be started: {error.strerror}"))
            return
        self._jobs[order.id], self._clocks[order.id] = job, clock
        self.log(f"job {order.id}: {order.kind} {order.name} as {order.variant} taken")
        self.tell(order.id, accepted)

    def cancel(self, job: str) -> None:
        """Ends it.  Of one that is over, or that this agent does not know, the server is told so, else it would ask again and
        again.  ``StoreError``."""
        running = self._jobs.get(job)
        if running is None and is_job_id(job):
            known = self.spool.tables.jobs(job)
            self.tell(job, known[0].report if known else JobReport(JobState.CANCELLED, "its agent does not know it"))
        elif running is not None and not running.is_cancelled:
            running.is_cancelled = True
            running.end("cancelled")

    def end_all(self, reason: str) -> None:
        for job in self._jobs.values():
            job.end(reason)

    def kill_all(self) -> None:
        for job in self._jobs.values():
            job.kill()

    def look(self) -> None:
        """Reads what the jobs told, and finishes those that have ended.  ``StoreError``: one could not be finished yet."""
        for name, job in list(self._jobs.items()):
            for event in job.events():
                self._told(name, event)
            if job.has_ended:
                self._finish(name, job)

    def keep_limits(self) -> None:
        for job in self._jobs.values():
            job.keep_limits(self.config.limits.cpu_percent)

    def _told(self, name: str, event: JobEvent) -> None:
        if event.kind not in _STATES:
            return
        if event.kind is JobEventKind.BEGUN:
            self._begun[name] = self._clocks[name].server_of(event.monotonic_ns)
        report = JobReport(_STATES[event.kind], self._detail(event.detail), self._begun.get(name, 0))
        if event.kind is JobEventKind.BEGUN:
            self.spool.tables.put_report(name, report)
        self.tell(name, report)

    def _finish(self, name: str, job: RunningJob) -> None:
        event = job.outcome()
        if event.kind is JobEventKind.DONE:
            state, detail = JobState.DONE, event.detail
        else:
            state = JobState.CANCELLED if job.is_cancelled else JobState.FAILED
            detail = f"{job.ending}; {event.detail}" if job.ending else event.detail
        begun_ns, captures = self._begun.get(name, 0), self.spool.captures_of(name)
        self._final(name, JobReport(state, self._detail(detail), begun_ns, captures))
        job.close()
        del self._jobs[name], self._clocks[name]
        self._begun.pop(name, None)

    def _final(self, name: str, report: JobReport) -> None:
        self.spool.tables.put_report(name, report)
        self.log(f"job {name}: {report.state}{': ' + report.detail if report.detail else ''}")
        self.tell(name, report)

    def recover(self) -> None:
        """What an earlier agent left: jobs that died with it failed, and reports that did not arrive are told again."""
        for taken in self.spool.tables.jobs():
            if not taken.report.state.is_final:
                detail = "the agent ended while the job was under way; what was captured until then is uploaded"
                captures = self.spool.captures_of(taken.id)
                self._final(taken.id, JobReport(JobState.FAILED, detail, taken.report.begun_at_ns, captures))
            elif not taken.is_delivered:
                self.tell(taken.id, taken.report)

    def _detail(self, text: str) -> str:
        """On one line, and as JSON can hold it."""
        from reports.plain_text import printable

        return printable(self.log.without_secret(text))[:LONGEST_DETAIL]


def try_in_turn(items: Iterable[Item], do: Callable[[Item], None]) -> str:
    """Every item once; what kept one from being done, "" = nothing."""
    problem = ""
    for item in items:
        try:
            do(item)
        except StoreError as error:
            problem = str(error)
    return problem
