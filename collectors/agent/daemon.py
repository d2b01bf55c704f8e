"""The agent: jobs in the main thread, conversation, reports and uploads in one thread each, so that none waits for another."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import time
from collections.abc import Callable
from dataclasses import field

from collectors.agent.agent_log import AgentLog
from collectors.agent.config.agent_config import AgentConfig
from collectors.agent.connection.job_poll import JobPoll, PolledJobs
from collectors.agent.connection.report_delivery import ReportDelivery
from collectors.agent.connection.server_connection import ServerAddress, ServerConnection
from collectors.agent.connection.server_errors import RequestRefused
from collectors.agent.connection.trouble_log import TroubleLog
from collectors.agent.connection.worker import Worker
from collectors.agent.jobs.running_job import GRACE_S
from collectors.agent.jobs.running_jobs import RunningJobs, try_in_turn
from collectors.agent.spool.spool import Spool, open_spool
from collectors.agent.spool.spool_lock import spool_lock
from collectors.agent.upload.upload_queue import UploadQueue
from collectors.agent.upload.wanted_debug_files import WantedDebugFiles
from collectors.processes.guard import GroupGuard
from profiler.attach.stop_request import StopRequest
from profiler.errors import StoreError
from profiler.model.fitness import FitnessCheck
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.job import JobReport

TICK_S = 1.0
SPOOL_LOOK_S = 5.0
UPLOAD_LOOK_S = 15.0
WANTED_LOOK_S = 60.0
# For reports of jobs that the agent's own end ended.
LAST_WORDS_S = 3.0
MOST_UNDELIVERED = 5000


@dataclass(frozen=True, slots=True)
class AgentTools:
    """``fitness``: looks at the host.  ``version``: of slotscope."""

    log: AgentLog
    version: str
    fitness: Callable[[], tuple[FitnessCheck, ...]]


def run_agent(config: AgentConfig, tools: AgentTools, stop: StopRequest) -> None:
    """Until the end is asked for; jobs are ended then, the spool stays.  ``UsageError``, ``StoreError``: it cannot start."""
    with contextlib.ExitStack() as stack:
        connection = ServerConnection(ServerAddress(config.server, config.token, config.ca))
        stack.callback(connection.close)
        lock = stack.enter_context(spool_lock(config.spool))
        spool = open_spool(config.spool, config.limits.spool_bytes)
        guard = stack.enter_context(GroupGuard((lock,)))
        _daemon(config, tools, _Parts(spool, connection, guard, WakePipe())).run(stop)


class WakePipe:
    """Lets other threads end a ``select`` of the main one; never closed, because they end with the process only."""

    def __init__(self) -> None:
        self.descriptor, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self.descriptor, False)

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 1 << 12)


@dataclass(frozen=True, slots=True)
class _Parts:
    spool: Spool
    connection: ServerConnection
    guard: GroupGuard
    wake: WakePipe


@dataclass(slots=True)
class _Daemon:
    log: AgentLog
    spool: Spool
    wake: WakePipe
    poll: JobPoll
    delivery: ReportDelivery
    jobs: RunningJobs
    workers: tuple[Worker, ...]
    _problem: str = ""
    _spool_look_s: float = 0.0
    _ticked_s: float = 0.0

    def run(self, stop: StopRequest) -> None:
        self.spool.clean()
        self.jobs.recover()
        for worker in self.workers:
            worker.start()
        while not stop.is_asked:
            select.select([stop.descriptor, self.wake.descriptor, *self.jobs.descriptors], [], [], TICK_S)
            self.wake.drain()
            self._step()
        self._end()

    def _step(self) -> None:
        try:
            self.jobs.look()
        except StoreError as error:
            self._told_problem(str(error))
            time.sleep(TICK_S)  # what has ended stays readable
        now_s = time.monotonic()
        if now_s >= self._spool_look_s:
            self._spool_look_s = now_s + SPOOL_LOOK_S
            self._look_at_spool()
        with contextlib.suppress(queue.Empty):
            while True:
                self._take(self.poll.inbox.get_nowait())
        if now_s >= self._ticked_s + TICK_S:
            self._ticked_s = now_s
            self.jobs.keep_limits()
        self.poll.known = (*self.jobs.ids, *(job for job in self.delivery.waiting if job not in self.jobs.ids))
        self.poll.is_busy = bool(self.jobs.ids)
        for worker in self.workers:
            if not worker.is_alive():
                raise RuntimeError(f"the agent's thread for {worker.name} ended")

    def _look_at_spool(self) -> None:
        """A full one takes no job, and ends those that fill it; what they have captured is kept."""
        problem = self.spool.problem()
        self._told_problem(problem)
        if problem:
            self.jobs.end_all(problem)

    def _told_problem(self, problem: str) -> None:
        if problem and not self._problem:
            # A full disk may show first in what could not be written.
            problem = self.spool.problem() or problem
        if bool(problem) != bool(self._problem):
            self.log(f"no job is taken: {problem}" if problem else "jobs are taken again")
        self._problem = problem

    def _take(self, polled: PolledJobs) -> None:
        has_much_to_tell = len(self.delivery.waiting) > MOST_UNDELIVERED
        ended = [job for job in polled.jobs.cancelled if job in self.jobs.ids or not has_much_to_tell]
        problem = try_in_turn(ended, self.jobs.cancel)
        if problem:
            self._told_problem(problem)
        if self._problem or has_much_to_tell:
            return
        cancelled = frozenset(polled.jobs.cancelled)
        orders = tuple(order for order in polled.jobs.orders if order.id not in cancelled)
        problem = try_in_turn(orders, lambda order: self.jobs.take(order, polled.clock, time.monotonic_ns()))
        if problem:
            self._told_problem(problem)

    def _end(self) -> None:
        """In order: jobs end, their captures stay in the spool, and the server is told if it listens."""
        self.log("ending")
        self.jobs.end_all("the agent was told to end")
        deadline = time.monotonic() + GRACE_S
        while self.jobs.ids and time.monotonic() < deadline:
            select.select(self.jobs.descriptors, [], [], TICK_S)
            with contextlib.suppress(StoreError):  # reported by the next agent on this spool
                self.jobs.look()
        self.jobs.kill_all()
        deadline = time.monotonic() + LAST_WORDS_S
        while self.delivery.waiting and time.monotonic() < deadline:
            time.sleep(0.05)


def _daemon(config: AgentConfig, tools: AgentTools, parts: _Parts) -> _Daemon:
    troubles = TroubleLog(tools.log)
    connection, spool, wake = parts.connection, parts.spool, parts.wake
    delivery = ReportDelivery(connection, spool.tables, tools.log)
    poll = JobPoll(config, spool, connection, tools.version, tools.fitness, troubles, wake.wake)
    uploads = _Uploads(UploadQueue(spool, connection, tools.log), WantedDebugFiles(spool, connection, tools.log), poll)
    reporter = Worker("reports", delivery.deliver, troubles)
    uploader = Worker("uploads", uploads.step, troubles)
    delivery.arrived = wake.wake

    def tell(job: str, report: JobReport) -> None:
        delivery.put(job, report)
        reporter.wake()
        uploader.wake()

    jobs = RunningJobs(config, spool, parts.guard, tools.log, tell)
    workers = (Worker("jobs", poll.step, troubles), reporter, uploader)
    return _Daemon(tools.log, spool, wake, poll, delivery, jobs, workers)


@dataclass(slots=True)
class _Uploads:
    """Captures first; then files that the server wants, if it knows how to want some.  Nothing is sent, and so nothing refused,
    before the server has taken the agent's hello: it may be another server, or the token one of another kind."""

    queue: UploadQueue
    wanted: WantedDebugFiles
    poll: JobPoll
    _wanted_at_s: float = field(default=0.0)

    def step(self) -> float:
        if not self.poll.is_welcome:
            return TICK_S
        dealt_with = self.queue.send_waiting()
        self.queue.spool.clean()
        if dealt_with or time.monotonic() >= self._wanted_at_s:
            self._wanted_at_s = time.monotonic() + WANTED_LOOK_S
            with contextlib.suppress(RequestRefused):
                self.wanted.send()
        return UPLOAD_LOOK_S
