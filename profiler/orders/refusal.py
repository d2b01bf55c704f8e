"""Whether an agent carries out an order: only what it offers, within its limits.  Pure.

The agent asks with what its own file says, and has the last word; the aggregator asks with what the agent's hello said, so that
an operator is told at once.  An order comes from the network, and every text in it may hold anything.
"""

from __future__ import annotations

import math
import re
from typing import TypeVar

from collectors.metrics import parse_metric
from collectors.prometheus import parse_series
from profiler.errors import UsageError
from profiler.experiment.plan.call_graph_request import parse_call_graph
from profiler.model.sampling_defaults import ATTACHED_FREQUENCY_HZ, FREQUENCY_HZ, SHORTEST_WINDOW_S
from profiler.orders.python_orders import python_refusal
from profiler.protocol.hello import AgentLimits, AgentOffer, OfferedTarget, OfferedWorkload, TargetProfiler
from profiler.protocol.job import JobKind, JobOrder
from profiler.store.records import check_variant_name

Offered = TypeVar("Offered", OfferedTarget, OfferedWorkload)
MOST_WINDOWS = 100_000
MOST_RUNS = 10_000
MOST_METRICS = 64
MOST_ROUNDS = 1_000_000
LONGEST_PATTERN = 500
LONGEST_NAME = 200
MOST_AHEAD_NS = 24 * 3600 * 10**9
_SHOWN = 60
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+,-]*")
# perf takes file names, sources to compile and addresses as events as well; only names with modifiers pass.
_EVENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,60}(:[ukhHGpPSDIW]{1,10})?")


def refusal(order: JobOrder, offer: AgentOffer, server_now_ns: int) -> str:
    """Why not, one line; "" = the order may be carried out.  ``server_now_ns``: by the aggregator's clock."""
    try:
        _check_names(order)
        _check_amounts(order, offer.limits, server_now_ns)
        _check_recording(order)
        if order.kind is JobKind.RUN:
            _check_run(order, offer)
        elif order.kind is JobKind.SWAP:
            _check_swap(order, offer)
        else:
            _check_attach(order, offer)
    except UsageError as error:
        return str(error)
    return ""


def sampling_rate_hz(order: JobOrder) -> int:
    """What the order asks for, or what its kind of job takes when nothing is said."""
    return order.frequency_hz or (FREQUENCY_HZ if order.kind is JobKind.RUN else ATTACHED_FREQUENCY_HZ)


def _check_names(order: JobOrder) -> None:
    for what, text in (("session", order.session), ("instance", order.instance)):
        if text and (len(text) > LONGEST_NAME or not _LABEL.fullmatch(text)):
            raise UsageError(f"{what} {text[:_SHOWN]!r} is no name")
    if len(order.variant) > LONGEST_NAME:
        raise UsageError(f"variant {order.variant[:_SHOWN]!r} is too long")
    check_variant_name(order.variant)


def _check_amounts(order: JobOrder, limits: AgentLimits, server_now_ns: int) -> None:
    if not 0 <= order.round <= MOST_ROUNDS:
        raise UsageError(f"round {order.round} is none")
    if order.start_at_ns and not 0 < order.start_at_ns <= server_now_ns + MOST_AHEAD_NS:
        raise UsageError("the moment to begin is more than a day ahead, or none")
    if order.frequency_hz < 0:
        raise UsageError(f"{order.frequency_hz} Hz: no rate of sampling is below 0")
    is_sampled = order.is_profiled and order.kind is not JobKind.SWAP
    rate_hz = sampling_rate_hz(order) if is_sampled else order.frequency_hz
    if rate_hz > limits.highest_frequency_hz:
        raise UsageError(f"{rate_hz} Hz are more than the {limits.highest_frequency_hz} Hz that the agent allows")
    if not 0 <= order.settle_s < math.inf or (order.settle_s and order.kind is not JobKind.ATTACH):
        raise UsageError(f"settle of {order.settle_s:g} s: expected 0 or more, of a process that is watched")


def _check_recording(order: JobOrder) -> None:
    if order.event != "auto" and not _EVENT.fullmatch(order.event):
        raise UsageError(f"event {order.event[:_SHOWN]!r}: agents take names of events only")
    parse_call_graph(order.call_graph[:LONGEST_PATTERN])
    _check_pattern("phase", order.phase)
    if len(order.metrics) > MOST_METRICS:
        raise UsageError(f"{len(order.metrics)} metrics: at most {MOST_METRICS} are read")
    for metric in order.metrics:
        if len(metric.name) > LONGEST_NAME or len(metric.spec) > LONGEST_PATTERN:
            raise UsageError(f"metric {metric.name[:_SHOWN]!r}: longer than {LONGEST_PATTERN} characters")


def _check_pattern(what: str, pattern: str) -> None:
    if len(pattern) > LONGEST_PATTERN:
        raise UsageError(f"{what}: longer than {LONGEST_PATTERN} characters")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{what}: not a regular expression ({error})") from None


def _check_attach(order: JobOrder, offer: AgentOffer) -> None:
    target = _offered(order, "target", offer.targets)
    if not 1 <= order.windows <= MOST_WINDOWS or not SHORTEST_WINDOW_S <= order.window_s < math.inf:
        raise UsageError(f"{order.windows} windows of {order.window_s:g} s: at least one of {SHORTEST_WINDOW_S:g} s is needed")
    seconds, longest_s = order.windows * order.window_s, offer.limits.longest_job_s
    if seconds > longest_s:
        raise UsageError(f"{seconds:g} s are more than the {longest_s:g} s that the agent allows")
    if target.profiler is TargetProfiler.PYSPY and (reason := python_refusal(order)):
        raise UsageError(reason)
    if order.metrics and not target.has_metrics:
        raise UsageError(f"its agent.toml names no page of metrics for {target.name!r}")
    for metric in order.metrics:
        parse_series(metric.name, metric.spec)


def _check_run(order: JobOrder, offer: AgentOffer) -> None:
    _check_variant(order, "workload", _offered(order, "workload", offer.workloads).variants)
    if not 1 <= order.runs <= MOST_RUNS:
        raise UsageError(f"{order.runs} runs: expected 1 to {MOST_RUNS}")
    for metric in order.metrics:
        try:
            parse_metric(f"{metric.name}={metric.spec}", metric.pick)
        except (RecursionError, OverflowError):
            raise UsageError(f"metric {metric.name!r}: not a regular expression") from None


def _check_swap(order: JobOrder, offer: AgentOffer) -> None:
    variants = _offered(order, "target", offer.targets).variants
    if not variants:
        raise UsageError(f"target {order.name!r} cannot be swapped: its table in the agent's agent.toml has no swap")
    _check_variant(order, "target", variants)


def _offered(order: JobOrder, what: str, offers: tuple[Offered, ...]) -> Offered:
    named = next((each for each in offers if each.name == order.name), None)
    if named is None:
        names = ", ".join(each.name for each in offers) or "none"
        raise UsageError(f"the agent offers no {what} {order.name[:_SHOWN]!r} (it offers {names})")
    return named


def _check_variant(order: JobOrder, what: str, variants: tuple[str, ...]) -> None:
    if order.variant not in variants:
        has = ", ".join(variants)
        raise UsageError(f"{what} {order.name!r} has no variant {order.variant[:_SHOWN]!r} (it has {has})")
