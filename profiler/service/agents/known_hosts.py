"""The agents, and which of them fell silent."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass
from profiler.protocol.hello import AgentHello
from profiler.service.aggregator import Aggregator

DEFAULT_HELLO_S = 15.0
SILENT_HELLOS = 3


@dataclass(frozen=True, slots=True)
class Host:
    """``is_silent``: not heard for three hello intervals.  ``heard_ns``: ns since 1970, aggregator's clock."""

    name: str
    is_silent: bool
    heard_ns: int
    hello: AgentHello


@dataclass(frozen=True, slots=True)
class Hosts:
    """By name."""

    hosts: tuple[Host, ...]


def known_hosts(aggregator: Aggregator, hello_s: float = DEFAULT_HELLO_S) -> Hosts:
    """Every agent that ever said hello.  ``StoreError``."""
    heard_since_ns = aggregator.clock_ns() - patience_ns_of(hello_s)
    agents = aggregator.agents.agents()
    return Hosts(tuple(Host(agent.name, agent.heard_ns < heard_since_ns, agent.heard_ns, agent.hello) for agent in agents))


def patience_ns_of(hello_s: float) -> int:
    """How long an agent may be silent that is to say hello every ``hello_s`` seconds."""
    return int(SILENT_HELLOS * hello_s * 1e9)
