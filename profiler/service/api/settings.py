"""What the operator of an aggregator may choose, and the limits that protect it."""

from __future__ import annotations

from dataclasses import field

from profiler.model.quick_dataclass import dataclass
from profiler.service.agents.known_hosts import DEFAULT_HELLO_S
from profiler.service.experiments.settings import RoundSettings
from profiler.store.prune import RetentionRule


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A bucket that holds ``burst`` requests and gains ``per_s`` of them every second."""

    per_s: float
    burst: float


@dataclass(frozen=True, slots=True)
class Limits:
    """``json_bytes``: the largest JSON body.  ``body_s``: a body must be there after so many seconds, and one second more for
    every ``body_bytes_per_s`` that came.  ``head_s``: the same for a request's head, from when the connection was ready for
    it.  ``stalled_s``: for so long may a client not read.  ``connections``: at most so many; where one more comes, the one
    that has been idle longest goes."""

    json_bytes: int = 1 << 20
    body_s: float = 20.0
    body_bytes_per_s: int = 8192
    head_s: float = 15.0
    stalled_s: float = 30.0
    connections: int = 500
    by_address: RateLimit = RateLimit(200, 400)
    by_token: RateLimit = RateLimit(100, 200)


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """``hello_s``: how often an agent is to say hello; after three times as long of silence it is lost.
    ``longest_wait_s``: an agent that waits for jobs is answered by then.  ``retention``: which sessions go when they are old.
    ``is_behind_proxy``: requests come from a proxy: addresses say nothing about who asks, and are the proxy's to limit."""

    hello_s: float = DEFAULT_HELLO_S
    longest_wait_s: float = 30.0
    is_behind_proxy: bool = False
    limits: Limits = field(default_factory=Limits)
    rounds: RoundSettings = field(default_factory=RoundSettings)
    retention: RetentionRule = field(default_factory=RetentionRule)
