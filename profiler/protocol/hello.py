"""What an agent says of itself, at its start and now and again, and what it is answered."""

from __future__ import annotations

from profiler.model.fitness import FitnessCheck
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import HostFacts
from profiler.protocol.clock import ClockOffset

PROTOCOL_VERSION = 1


@dataclass(frozen=True, slots=True)
class OfferedTarget:
    """A running process that the agent may profile, by its name in agent.toml.  ``variants``: what it may be swapped to, empty
    = it is what it is.  ``has_metrics``: whether a page of Prometheus metrics is known for it."""

    name: str
    variants: tuple[str, ...] = ()
    has_metrics: bool = False


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


@dataclass(frozen=True, slots=True)
class Welcome:
    """``agent``: the name that the token stands for.  ``hello_s``: after how many seconds the next hello is expected; an agent
    that is silent for three times as long counts as lost."""

    protocol: int
    agent: str
    hello_s: float
