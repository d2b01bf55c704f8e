"""The agent's side of the conversation: it says what it is, asks for jobs, and measures how the clocks stand."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from dataclasses import field

from collectors.agent.config.agent_config import AgentConfig
from collectors.agent.connection.server_clock import ServerClock, measure_clock
from collectors.agent.connection.server_connection import ServerAddress, ServerConnection
from collectors.agent.connection.server_errors import ServerTrouble
from collectors.agent.connection.trouble_log import TroubleLog
from collectors.agent.spool.spool import Spool
from collectors.host import host_facts
from profiler.model.fitness import FitnessCheck
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.hello import PROTOCOL_VERSION, AgentHello
from profiler.protocol.job import JobList

WAIT_S = 25.0
LEAST_PAUSE_S = 1.0
CLOCK_AGE_S = 600.0
# A clock that is known less well is measured with every look at the jobs: the network was slow for a moment.
ROUGH_CLOCK_NS = 20_000_000
FITNESS_AGE_S = 6 * 3600.0
_HELLO_S = (1.0, 3600.0)


@dataclass(frozen=True, slots=True)
class PolledJobs:
    """``clock``: measured after the answer when one of its new orders has a moment to begin."""

    jobs: JobList
    clock: ServerClock


@dataclass(slots=True)
class JobPoll:
    """``step`` is for one thread.  ``known``: jobs that the agent needs not be told of again; ``is_busy``: some are under way.
    ``is_welcome``: the server has taken a hello.  ``fitness``: looks at the host, which takes seconds."""

    config: AgentConfig
    spool: Spool
    connection: ServerConnection
    version: str
    fitness: Callable[[], tuple[FitnessCheck, ...]]
    troubles: TroubleLog
    arrived: Callable[[], None]
    inbox: queue.SimpleQueue[PolledJobs] = field(default_factory=queue.SimpleQueue)
    known: tuple[str, ...] = ()
    is_busy: bool = False
    is_welcome: bool = False
    clock: ServerClock | None = None
    _hello_at_s: float = 0.0
    _checks: tuple[FitnessCheck, ...] = ()
    _checks_at_s: float = -FITNESS_AGE_S
    _seen: frozenset[str] = frozenset()

    def step(self) -> float:
        now_s = time.monotonic()
        if now_s >= self._hello_at_s:
            self._say_hello()
        wait_s = min(WAIT_S, max(LEAST_PAUSE_S, self._hello_at_s - now_s))
        jobs = self.connection.jobs(self.known, wait_s)
        self.troubles.is_well()
        ids = frozenset(order.id for order in jobs.orders)
        clock = self._fresh_clock(any(order.start_at_ns and order.id not in self.known for order in jobs.orders))
        if jobs.orders or jobs.cancelled:
            self.inbox.put(PolledJobs(jobs, clock))
            self.arrived()
        is_new = not ids <= self._seen
        self._seen = ids
        passed_s = time.monotonic() - now_s
        return 0.0 if is_new else max(0.0, LEAST_PAUSE_S - passed_s)

    def _say_hello(self) -> None:
        clock = self._fresh_clock(False)
        welcome = self.connection.hello(self._hello(clock))
        if welcome.protocol != PROTOCOL_VERSION:
            raise ServerTrouble(
                f"the server speaks version {welcome.protocol} of the agents' protocol, this agent {PROTOCOL_VERSION}: "
                "install the same slotscope on both"
            )
        self.is_welcome = True
        self._hello_at_s = time.monotonic() + min(max(welcome.hello_s, _HELLO_S[0]), _HELLO_S[1])

    def _hello(self, clock: ServerClock) -> AgentHello:
        if time.monotonic() >= self._checks_at_s + FITNESS_AGE_S and not self.is_busy:
            self._checks, self._checks_at_s = self.fitness(), time.monotonic()
        return AgentHello(
            protocol=PROTOCOL_VERSION,
            version=self.version,
            host=host_facts(),
            fitness=self._checks,
            targets=self.config.offered_targets(),
            workloads=self.config.offered_workloads(),
            limits=self.config.limits,
            spool=self.spool.state(),
            clock=clock.offset,
        )

    def _fresh_clock(self, is_needed_now: bool) -> ServerClock:
        """On one connection of its own, which is kept for all exchanges."""
        known = self.clock
        if known is not None and not is_needed_now and known.offset.error_ns <= ROUGH_CLOCK_NS:
            age_s = (time.monotonic_ns() - known.monotonic_ns) / 1e9
            if age_s < CLOCK_AGE_S:
                return known
        alone = ServerConnection(ServerAddress(self.config.server, self.config.token, self.config.ca), connections=1)
        try:
            self.clock = measure_clock(alone.server_time_ns)
        finally:
            alone.close()
        return self.clock
