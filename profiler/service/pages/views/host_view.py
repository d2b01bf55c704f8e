"""What is shown of the hosts: what each agent said of itself, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from profiler.model.fitness import Fitness, FitnessCheck
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.clock import ClockOffset
from profiler.protocol.hello import AgentHello, AgentLimits, SpoolState
from profiler.service.agents.agent_registry import KnownAgent
from profiler.service.agents.known_hosts import SILENT_HELLOS
from profiler.service.pages.views.times import ago, moment, span
from reports.experiment_tables import bytes_text
from reports.fitness_report import is_fit
from reports.quantities import counted, scale_for

_SECOND_NS = 1_000_000_000


class Presence(StrEnum):
    """HERE: heard as often as expected.  LATE: a hello is due.  LOST: silent for three times as long."""

    HERE = "here"
    LATE = "late"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class HostRow:
    """``is_fit``: recording works there.  ``troubles``: checks that are not in order, the worst first.  ``problem``: why no
    jobs are taken, "" = none.  The rest is in words."""

    name: str
    presence: Presence
    heard: str
    heard_at: str
    hostname: str
    system: str
    version: str
    clock: str
    spool: str
    problem: str
    limits: str
    targets: tuple[str, ...]
    workloads: tuple[str, ...]
    is_fit: bool
    troubles: tuple[FitnessCheck, ...]
    checks: tuple[FitnessCheck, ...]

    @property
    def fitness(self) -> str:
        if not self.is_fit:
            return "cannot record"
        return counted(len(self.troubles), "remark") if self.troubles else "fit"


def host_rows(agents: Sequence[KnownAgent], now_ns: int, hello_s: float) -> tuple[HostRow, ...]:
    """In the order of ``agents``; ``hello_s``: how often an agent is to say hello."""
    return tuple(_row(agent, now_ns, hello_s) for agent in agents)


def _row(agent: KnownAgent, now_ns: int, hello_s: float) -> HostRow:
    hello = agent.hello
    host = hello.host
    system = (host.kernel, host.architecture, host.cpu, counted(host.cpu_count, "CPU") if host.cpu_count else "")
    return HostRow(
        name=agent.name,
        presence=_presence(now_ns - agent.heard_ns, hello_s),
        heard=ago(agent.heard_ns, now_ns),
        heard_at=moment(agent.heard_ns),
        hostname=host.hostname,
        system=", ".join(fact for fact in system if fact),
        version=hello.version,
        clock=_clock(hello.clock),
        spool=_spool(hello.spool),
        problem=hello.spool.problem,
        limits=_limits(hello.limits),
        targets=_targets(hello),
        workloads=tuple(f"{offered.name}: {', '.join(offered.variants) or 'one variant'}" for offered in hello.workloads),
        is_fit=is_fit(hello.fitness),
        troubles=tuple(sorted((check for check in hello.fitness if check.fitness is not Fitness.OK), key=_gravity)),
        checks=hello.fitness,
    )


def _presence(silent_ns: int, hello_s: float) -> Presence:
    hellos = silent_ns / (hello_s * _SECOND_NS)
    # One hello may take its time; half of another is no sign of anything.
    return Presence.LOST if hellos > SILENT_HELLOS else Presence.LATE if hellos > 1.5 else Presence.HERE


def _gravity(check: FitnessCheck) -> tuple[bool, bool]:
    return not check.is_fatal, check.fitness is not Fitness.MISSING


def _clock(clock: ClockOffset | None) -> str:
    """ "+1,204.0 ms ± 0.3 ms": the server's clock less the agent's."""
    if clock is None:
        return "not measured"
    offset, error = scale_for([clock.offset_ns, clock.error_ns], "ns"), scale_for([clock.error_ns], "ns")
    return f"{offset.signed(clock.offset_ns)} {offset.unit} ± {error.quantity(clock.error_ns)}"


def _spool(spool: SpoolState) -> str:
    return f"{counted(spool.waiting, 'file')} waiting, {bytes_text(spool.waiting_bytes)}" if spool.waiting else "empty"


def _limits(limits: AgentLimits) -> str:
    parts = [
        f"jobs up to {span(round(limits.longest_job_s * _SECOND_NS))}",
        f"up to {limits.highest_frequency_hz:,} Hz",
        f"spool up to {bytes_text(limits.spool_bytes)}",
        f"up to {limits.cpu_percent:g} % of one CPU" if limits.cpu_percent else "CPU not limited",
    ]
    return ", ".join(parts)


def _targets(hello: AgentHello) -> tuple[str, ...]:
    shown = []
    for target in hello.targets:
        facts = [f"swaps between {', '.join(target.variants)}"] if target.variants else []
        facts += ["metrics"] if target.has_metrics else []
        shown.append(f"{target.name} ({'; '.join(facts)})" if facts else target.name)
    return tuple(shown)
