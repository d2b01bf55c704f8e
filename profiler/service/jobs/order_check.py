"""Whether an agent can do what it is asked: told at once instead of by its refusal.  The agent checks all the same."""

from __future__ import annotations

from profiler.orders.refusal import refusal
from profiler.protocol.hello import AgentHello, version_problem
from profiler.protocol.job import JobOrder


def refusal_of(order: JobOrder, hello: AgentHello, now_ns: int) -> str:
    """Why this agent would refuse the order, "" = it would not.  ``now_ns``: ns since 1970."""
    return version_problem(hello.protocol) or refusal(order, hello.offer, now_ns)
