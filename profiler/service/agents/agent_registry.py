"""Which agents there are, and what each said of itself last."""

from __future__ import annotations

from typing import Protocol

from profiler.model.quick_dataclass import dataclass
from profiler.protocol.hello import AgentHello


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """``heard_ns``: when it was heard last, by the aggregator's clock (ns since 1970)."""

    name: str
    hello: AgentHello
    heard_ns: int


class AgentRegistry(Protocol):
    """Every method is one transaction.  All raise ``StoreError``."""

    def greet(self, name: str, hello: AgentHello, heard_ns: int) -> None:
        """What the agent says of itself replaces what it said before."""

    def heard(self, name: str, heard_ns: int) -> None:
        """It asked for jobs, or reported about one.  Nothing happens for one that never said hello."""

    def agents(self) -> tuple[KnownAgent, ...]:
        """By name."""
