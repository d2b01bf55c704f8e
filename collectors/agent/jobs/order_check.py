"""Whether this agent carries out an order, and for how long; pure."""

from __future__ import annotations

import re

from collectors.agent.config.agent_config import AgentConfig
from profiler.orders import refusal as orders
from profiler.protocol.job import JobKind, JobOrder

LONGEST_SWAP_S = 600.0
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


def is_job_id(text: str) -> bool:
    """Whether it can stand in an address."""
    return _ID.fullmatch(text) is not None


def refusal(order: JobOrder, config: AgentConfig, server_now_ns: int) -> str:
    """Why not, one line; "" = the order may be carried out.  ``server_now_ns``: by the aggregator's clock."""
    return orders.refusal(order, config.offer, server_now_ns)


def longest_s(order: JobOrder, config: AgentConfig) -> float:
    """How long the job may take from its beginning."""
    if order.kind is JobKind.ATTACH:
        return order.windows * order.window_s
    return min(LONGEST_SWAP_S, config.limits.longest_job_s) if order.kind is JobKind.SWAP else config.limits.longest_job_s
