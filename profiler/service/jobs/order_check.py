"""Whether an agent can do what it is asked: told at once instead of by its refusal.  The agent checks all the same."""

from __future__ import annotations

from profiler.protocol.hello import AgentHello, TargetProfiler
from profiler.protocol.job import JobKind, JobOrder
from profiler.protocol.python_orders import python_refusal


def refusal_of(order: JobOrder, hello: AgentHello) -> str:
    """Why this agent would refuse the order, "" = it would not."""
    return _wrong_form(order) or _not_offered(order, hello) or _beyond_limits(order, hello) or _not_for_python(order, hello)


def length_s(order: JobOrder) -> float:
    """How long the order's windows take, 0 where only the end of runs says it."""
    return order.window_s * order.windows if order.kind is JobKind.ATTACH else 0.0


def _wrong_form(order: JobOrder) -> str:
    if order.windows < 1 or order.runs < 1 or order.round < 0:
        return "`windows` and `runs` begin at 1, `round` at 0"
    if order.kind is JobKind.ATTACH and order.window_s <= 0:
        return "`window_s` must be positive"
    if order.frequency_hz < 0 or order.start_at_ns < 0:
        return "`frequency_hz` and `start_at_ns` cannot be negative"
    return ""


def _not_offered(order: JobOrder, hello: AgentHello) -> str:
    offered = hello.workloads if order.kind is JobKind.RUN else hello.targets
    what = "workload" if order.kind is JobKind.RUN else "target"
    named = next((offer for offer in offered if offer.name == order.name), None)
    if named is None:
        names = ", ".join(offer.name for offer in offered) or "none"
        return f"the agent offers no {what} {order.name!r} (it offers {names})"
    if order.kind is not JobKind.ATTACH and order.variant not in named.variants:
        return f"{what} {order.name!r} has no variant {order.variant!r} (it has {', '.join(named.variants) or 'none'})"
    return ""


def _not_for_python(order: JobOrder, hello: AgentHello) -> str:
    of_python = {target.name for target in hello.targets if target.profiler is TargetProfiler.PYSPY}
    return python_refusal(order) if order.name in of_python else ""


def _beyond_limits(order: JobOrder, hello: AgentHello) -> str:
    limits, seconds = hello.limits, length_s(order)
    if limits.longest_job_s and seconds > limits.longest_job_s:
        return f"{seconds:g} s are more than the {limits.longest_job_s:g} s that the agent allows"
    if limits.highest_frequency_hz and order.frequency_hz > limits.highest_frequency_hz:
        return f"{order.frequency_hz} Hz are more than the {limits.highest_frequency_hz} Hz that the agent allows"
    return ""
