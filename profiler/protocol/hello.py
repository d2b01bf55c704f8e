"""What an agent says of itself, at its start and now and again, and what it is answered."""

from __future__ import annotations

from enum import StrEnum

from profiler.model.fitness import FitnessCheck
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import HostFacts
from profiler.protocol.clock import ClockOffset

# 2: orders say for how long a process must have been running (settle).
PROTOCOL_VERSION = 2


class TargetProfiler(StrEnum):
    """What records a target.  PERF: CPU time, or another event.  PYSPY: moments of wall time in which a Python process is not
    idle."""

    PERF = "perf"
    PYSPY = "py-spy"


@dataclass(frozen=True, slots=True)
class OfferedTarget:
    """A running process that the agent may profile, by its name in agent.toml.  ``variants``: what it may be swapped to, empty
    = it is what it is.  ``has_metrics``: whether a page of Prometheus metrics is known for it."""

    name: str
    variants: tuple[str, ...] = ()
    has_metrics: bool = False
    profiler: TargetProfiler = TargetProfiler.PERF


@dataclass(frozen=True, slots=True)
class OfferedWorkload:
    """A command that the agent may run, by its name in agent.toml, in one of these variants."""

    name: str
    variants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """What the agent does not exceed, whatever it is asked: the length of a job, the sampling rate, what its spool may take of
    the disk, and its own and its profiler's CPU time in percent of one CPU, 0 = not limited."""

    longest_job_s: float
    highest_frequency_hz: int
    spool_bytes: int
    cpu_percent: float


@dataclass(frozen=True, slots=True)
class AgentOffer:
    """All that an agent may be asked for."""

    targets: tuple[OfferedTarget, ...]
    workloads: tuple[OfferedWorkload, ...]
    limits: AgentLimits


@dataclass(frozen=True, slots=True)
class SpoolState:
    """``waiting``: captures and debug files not yet taken by the aggregator.  ``problem``: why no job is taken, "" = none."""

    waiting: int
    waiting_bytes: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AgentHello:
    """``version``: of slotscope.  ``clock``: None while it has not been measured."""

    protocol: int
    version: str
    host: HostFacts
    fitness: tuple[FitnessCheck, ...]
    targets: tuple[OfferedTarget, ...]
    workloads: tuple[OfferedWorkload, ...]
    limits: AgentLimits
    spool: SpoolState
    clock: ClockOffset | None = None

    @property
    def offer(self) -> AgentOffer:
        return AgentOffer(self.targets, self.workloads, self.limits)


@dataclass(frozen=True, slots=True)
class Welcome:
    """``agent``: the name that the token stands for.  ``hello_s``: after how many seconds the next hello is expected; an agent
    that is silent for three times as long counts as lost."""

    protocol: int
    agent: str
    hello_s: float


def version_problem(protocol: int) -> str:
    """Why nothing can be asked of an agent that speaks this version of the protocol, "" = it can: another version would not
    understand an order, or not all of it."""
    if protocol == PROTOCOL_VERSION:
        return ""
    older = "agent" if protocol < PROTOCOL_VERSION else "aggregator"
    return f"the agent speaks version {protocol}, this aggregator {PROTOCOL_VERSION}: upgrade slotscope of the {older}"
