"""Agents and an aggregator's tables in memory, under a clock of the test's own: what hosts can do to an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from profiler.model.run import HostFacts
from profiler.protocol.clock import ClockOffset
from profiler.protocol.hello import PROTOCOL_VERSION, AgentHello, AgentLimits, OfferedTarget, OfferedWorkload, SpoolState
from profiler.protocol.job import JobKind, JobOrder, JobReport, JobState
from profiler.service.agents.agent_registry import KnownAgent
from profiler.service.experiments.capture_shelf import MissedWindow
from profiler.service.experiments.course import Course
from profiler.service.experiments.experiment_board import Check, SubmittedExperiment
from profiler.service.jobs.job_board import StoredJob
from profiler.service.jobs.unjudged import UNJUDGED
from profiler.store.records import SessionState

SECOND = 1_000_000_000
LOST_AFTER_S = 45.0


class Deed(Enum):
    """What an agent makes of one job.  LOST_BEFORE, LOST_WHILE, LOST_AFTER: it falls silent before it takes the job, while it
    works, and when the work is done and nobody was told; it comes back after ``AWAY_S``."""

    DONE = auto()
    LATE = auto()
    EARLY = auto()
    REFUSED = auto()
    FAILED = auto()
    LOST_BEFORE = auto()
    LOST_WHILE = auto()
    LOST_AFTER = auto()
    NO_CAPTURE = auto()
    BAD_CAPTURE = auto()
    SLOW_CAPTURE = auto()
    NEVER_ARRIVES = auto()


AWAY_S = 120.0
GOOD_DEEDS = (Deed.DONE, Deed.SLOW_CAPTURE)


class KilledError(Exception):
    """The aggregator ends here."""


@dataclass(slots=True)
class Fuse:
    """Every change of anything kept passes here; the ``at``-th kills the aggregator."""

    at: int = -1
    passed: int = 0

    def burn(self) -> None:
        self.passed += 1
        if self.passed - 1 == self.at:
            raise KilledError


@dataclass(slots=True)
class Window:
    """One entry of the session in the store.  ``origin``: of the capture, or the key of a missed window."""

    origin: str
    node: str
    variant: str
    round: int
    mode: str
    failure: str


def hello(targets: Sequence[OfferedTarget] = (), workloads: Sequence[OfferedWorkload] = (), host: str = "h") -> AgentHello:
    """Of an agent whose clock is known to a millisecond."""
    return AgentHello(
        protocol=PROTOCOL_VERSION,
        version="0",
        host=HostFacts(hostname=host),
        fitness=(),
        targets=tuple(targets),
        workloads=tuple(workloads),
        limits=AgentLimits(3600.0, 4999, 1 << 30, 0.0),
        spool=SpoolState(0, 0),
        clock=ClockOffset(0, 1_000_000),
    )


@dataclass(slots=True)
class MemoryJobs:
    """A ``JobBoard``."""

    fuse: Fuse = field(default_factory=Fuse)
    stored: dict[str, StoredJob] = field(default_factory=dict)

    def add(self, agent: str, order: JobOrder, ordered_ns: int) -> None:
        self.fuse.burn()
        assert order.id not in self.stored, "IDs are unique"
        self.stored[order.id] = StoredJob(agent, order, JobReport(JobState.WAITING), ordered_ns)

    def report(self, agent: str, job: str, report: JobReport, reported_ns: int) -> bool:
        stored = self.stored[job]
        if not stored.report.state.is_final:
            self.stored[job] = replace(stored, report=report, reported_ns=reported_ns)
        return stored.agent == agent

    def cancel(self, job: str, detail: str, now_ns: int) -> None:
        self.fuse.burn()
        stored = self.stored[job]
        self.report(stored.agent, job, replace(stored.report, state=JobState.CANCELLED, detail=detail), now_ns)

    def lose(self, agent: str, detail: str, now_ns: int) -> tuple[str, ...]:
        lost = [job for job in self.jobs(agent=agent, only_open=True) if job.report.state is not JobState.WAITING]
        for job in lost:
            self.report(agent, job.order.id, replace(job.report, state=JobState.LOST, detail=detail), now_ns)
        return tuple(job.order.id for job in lost)

    def to_end(self, agent: str) -> tuple[str, ...]:
        return ()

    def job(self, job: str) -> StoredJob | None:
        return self.stored.get(job)

    def jobs(self, session: str = "", agent: str = "", only_open: bool = False, newest: int = 0) -> tuple[StoredJob, ...]:
        found = [
            job
            for job in self.stored.values()
            if session in ("", job.order.session) and agent in ("", job.agent) and not (only_open and job.report.state.is_final)
        ]
        return tuple(found[-newest:])


@dataclass(slots=True)
class MemoryAgents:
    """An ``AgentRegistry``."""

    known: dict[str, KnownAgent] = field(default_factory=dict)

    def greet(self, name: str, hello: AgentHello, heard_ns: int) -> None:
        self.known[name] = KnownAgent(name, hello, heard_ns)

    def heard(self, name: str, heard_ns: int) -> None:
        self.known[name] = replace(self.known[name], heard_ns=heard_ns)

    def agents(self) -> tuple[KnownAgent, ...]:
        return tuple(self.known[name] for name in sorted(self.known))


@dataclass(slots=True)
class MemoryShelf:
    """A ``CaptureShelf``."""

    fuse: Fuse = field(default_factory=Fuse)
    windows: dict[str, Window] = field(default_factory=dict)
    rounds: list[int] = field(default_factory=list)
    state: SessionState = SessionState.RECORDING

    def arrived(self, session: str, captures: Sequence[str]) -> Mapping[str, str]:
        found = {capture: self.windows[capture].failure for capture in captures if capture in self.windows}
        return {capture: "" if failure == UNJUDGED else failure for capture, failure in found.items()}

    def unmarked(self, session: str) -> tuple[str, ...]:
        return tuple(origin for origin, window in self.windows.items() if window.failure in ("", UNJUDGED))

    def count(self, session: str, capture: str) -> None:
        self.fuse.burn()
        if self.windows[capture].failure == UNJUDGED:
            self.windows[capture].failure = ""

    def leave_out(self, session: str, capture: str, failure: str) -> bool:
        self.fuse.burn()
        if capture in self.unmarked(session):
            self.windows[capture].failure = failure
        return capture in self.windows

    def add_missed(self, window: MissedWindow, key: str) -> None:
        self.fuse.burn()
        identity = window.identity
        assert window.failure
        entry = Window(key, identity.instance, identity.variant, identity.round, identity.mode, window.failure)
        self.windows.setdefault(key, entry)

    def finish_round(self, session: str, round_number: int) -> None:
        self.fuse.burn()
        self.rounds.append(round_number)

    def finish_session(self, session: str, state: SessionState) -> None:
        self.fuse.burn()
        self.state = state


@dataclass(slots=True)
class MemoryExperiments:
    """An ``ExperimentBoard``."""

    fuse: Fuse = field(default_factory=Fuse)
    stored: dict[str, SubmittedExperiment] = field(default_factory=dict)
    counts: set[str] = field(default_factory=set)

    def add(self, experiment: SubmittedExperiment, check: Check) -> None:
        check(self.experiments(only_open=True))
        self.stored[experiment.session] = experiment

    def experiment(self, session: str) -> SubmittedExperiment | None:
        return self.stored.get(session)

    def experiments(self, only_open: bool = False) -> tuple[SubmittedExperiment, ...]:
        return tuple(found for found in self.stored.values() if not (only_open and found.course.state.is_final))

    def keep(self, session: str, course: Course) -> None:
        self.fuse.burn()
        self.stored[session] = replace(self.stored[session], course=course)

    def ask_cancel(self, session: str) -> None:
        self.stored[session] = replace(self.stored[session], is_cancelled=True)

    def count(self, session: str, captures: Sequence[str]) -> None:
        self.fuse.burn()
        self.counts.update(captures)

    def counted(self, session: str) -> frozenset[str]:
        return frozenset(self.counts)


@dataclass(slots=True)
class SimulatedHosts:
    """All agents.  ``deed_of``: (node, how many jobs of the node came before) -> what it does.  ``deeds``: by job, of those
    that were taken or lost."""

    jobs: MemoryJobs
    agents: MemoryAgents
    shelf: MemoryShelf
    deed_of: Callable[[str, int], Deed]
    now_ns: int = 1_000 * SECOND
    deeds: dict[str, Deed] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _away_until_ns: dict[str, int] = field(default_factory=dict)
    _arrivals: list[tuple[int, Window]] = field(default_factory=list)

    def add(self, name: str, said: AgentHello) -> None:
        self.agents.greet(name, said, self.now_ns)

    def pass_time(self, seconds: float) -> None:
        """Agents look at their jobs, work, upload; those that are silent for too long are lost."""
        self.now_ns += round(seconds * SECOND)
        for name, known in self.agents.known.items():
            if self.now_ns >= self._away_until_ns.get(name, 0):
                self.agents.heard(name, self.now_ns)
                for job in self.jobs.jobs(agent=name, only_open=True):
                    self._work(name, job)
            elif self.now_ns - known.heard_ns > LOST_AFTER_S * SECOND:
                self.jobs.lose(name, "silent", self.now_ns)
        for due_ns, window in [entry for entry in self._arrivals if entry[0] <= self.now_ns]:
            self.shelf.windows.setdefault(window.origin, window)
            self._arrivals.remove((due_ns, window))

    def pass_time_unheard(self, seconds: float) -> None:
        """Nobody answers the agents meanwhile."""
        self.now_ns += round(seconds * SECOND)

    def _work(self, name: str, job: StoredJob) -> None:
        order, state = job.order, job.report.state
        if order.id not in self.deeds:
            number = self._counts.get(order.instance, 0)
            self._counts[order.instance] = number + 1
            self.deeds[order.id] = self.deed_of(order.instance, number)
        deed = self.deeds[order.id]
        if deed is Deed.LOST_BEFORE and state is JobState.WAITING:
            self._leave(name)
        elif state is JobState.WAITING and deed is Deed.REFUSED:
            self._say(job, JobReport(JobState.REFUSED, "may not"))
        elif state is JobState.WAITING and 0 < order.start_at_ns < self.now_ns:
            self._say(job, JobReport(JobState.FAILED, "the moment had passed"))
        elif state is JobState.WAITING:
            self._say(job, JobReport(JobState.ACCEPTED))
        elif deed is Deed.FAILED or (order.kind is JobKind.SWAP and deed not in GOOD_DEEDS):
            self._say(job, JobReport(JobState.FAILED, "broke"))
        elif order.kind is JobKind.SWAP:
            self._say(job, JobReport(JobState.DONE))
        elif deed is Deed.LOST_WHILE and self.now_ns >= order.start_at_ns:
            self._leave(name)
        elif self.now_ns >= order.start_at_ns + order.window_s * SECOND:
            self._finish(name, job, deed)

    def _finish(self, name: str, job: StoredJob, deed: Deed) -> None:
        order = job.order
        skew_ns = {Deed.LATE: 80_000_000, Deed.EARLY: -80_000_000}.get(deed, 20_000_000)
        origin = f"capture of {order.id}"
        if deed is Deed.NO_CAPTURE:
            self._say(job, JobReport(JobState.DONE, begun_at_ns=order.start_at_ns))
            return
        failure = "target restarted" if deed is Deed.BAD_CAPTURE else UNJUDGED
        mode = "profiled" if order.is_profiled else "plain"
        window = Window(origin, order.instance, order.variant, order.round, mode, failure)
        delay_s = {Deed.SLOW_CAPTURE: 100.0, Deed.LOST_AFTER: AWAY_S, Deed.NEVER_ARRIVES: 1e9}.get(deed, 0.0)
        self._arrivals.append((self.now_ns + round(delay_s * SECOND), window))
        if deed is Deed.LOST_AFTER:
            self._leave(name)
        else:
            self._say(job, JobReport(JobState.DONE, "", order.start_at_ns + skew_ns, (origin,)))

    def _say(self, job: StoredJob, report: JobReport) -> None:
        """Twice: an agent whose first report was not answered says it again."""
        for _ in range(2):
            self.jobs.report(job.agent, job.order.id, report, self.now_ns)

    def _leave(self, name: str) -> None:
        self._away_until_ns[name] = self.now_ns + round(AWAY_S * SECOND)
