"""What the operator of an aggregator may choose, and the limits that protect it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """``json_bytes``: the largest JSON body.  ``connections``: at most so many at once; where one more comes, the one that has
    been idle longest goes."""

    json_bytes: int = 1 << 20
    connections: int = 512


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """``hello_s``: how often an agent is to say hello; after three times as long of silence it is lost.
    ``is_behind_proxy``: requests come from a proxy, so that an address of loopback says nothing about who asks."""

    hello_s: float = 15.0
    is_behind_proxy: bool = False
    limits: Limits = field(default_factory=Limits)
