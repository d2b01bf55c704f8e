"""Which orders py-spy can carry out."""

from __future__ import annotations

from profiler.model.event import HIGHEST_PYTHON_FREQUENCY_HZ, NON_IDLE_SAMPLES
from profiler.protocol.job import JobKind, JobOrder


def python_refusal(order: JobOrder) -> str:
    """Why a target that py-spy records cannot be profiled as ordered, "" = it can."""
    if order.kind is not JobKind.ATTACH or not order.is_profiled:
        return ""
    target, most = f"target {order.name!r} is recorded by py-spy", HIGHEST_PYTHON_FREQUENCY_HZ
    if order.start_at_ns:
        return f"{target}, which begins when it has found the interpreter, not at a given moment: only a plain window does"
    if order.event != "auto":
        return f"{target}, which counts {NON_IDLE_SAMPLES} and no event: leave event {order.event[:60]!r} out"
    if order.call_graph != "auto":
        return f"{target}, which reads stacks from the interpreter: leave call graph {order.call_graph[:60]!r} out"
    if order.frequency_hz > most:
        return f"{target}, which stops it for every sample: {most} Hz are the most, not {order.frequency_hz}"
    return ""
