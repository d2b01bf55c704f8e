"""Whether an agent carries out an order: only what its file names, within its limits.  Pure.

An order comes from the network, and every text in it may hold anything.
"""

from __future__ import annotations

import math
import re

from collectors.agent.config.agent_config import AgentConfig
from collectors.metrics import parse_metric
from collectors.prometheus import parse_series
from profiler.errors import UsageError
from profiler.experiment.plan.call_graph_request import parse_call_graph
from profiler.protocol.hello import TargetProfiler
from profiler.protocol.job import JobKind, JobOrder
from profiler.protocol.python_orders import python_refusal
from profiler.store.records import check_variant_name

LONGEST_SWAP_S = 600.0
SHORTEST_WINDOW_S = 1.0
MOST_WINDOWS = 100_000
MOST_RUNS = 10_000
MOST_METRICS = 64
LONGEST_PATTERN = 500
LONGEST_NAME = 200
MOST_AHEAD_NS = 24 * 3600 * 10**9
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+,-]*")
# perf takes file names, sources to compile and addresses as events as well; only names with modifiers pass.
_EVENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,60}(:[ukhHGpPSDIW]{1,10})?")


def is_job_id(text: str) -> bool:
    """Whether it can stand in an address."""
    return _ID.fullmatch(text) is not None


def refusal(order: JobOrder, config: AgentConfig, server_now_ns: int) -> str:
    """Why not, one line; "" = the order may be carried out.  ``server_now_ns``: by the aggregator's clock."""
    try:
        _check_names(order)
        _check_amounts(order, config, server_now_ns)
        if order.kind is JobKind.RUN:
            _check_run(order, config)
        elif order.kind is JobKind.SWAP:
            _check_swap(order, config)
        else:
            _check_attach(order, config)
    except UsageError as error:
        return str(error)
    return ""


def longest_s(order: JobOrder, config: AgentConfig) -> float:
    """How long the job may take from its beginning."""
    if order.kind is JobKind.ATTACH:
        return order.windows * order.window_s
    return min(LONGEST_SWAP_S, config.limits.longest_job_s) if order.kind is JobKind.SWAP else config.limits.longest_job_s


def _check_names(order: JobOrder) -> None:
    for what, text in (("session", order.session), ("instance", order.instance)):
        if text and (len(text) > LONGEST_NAME or not _LABEL.fullmatch(text)):
            raise UsageError(f"{what} {text[:60]!r} is no name")
    if len(order.variant) > LONGEST_NAME:
        raise UsageError(f"variant {order.variant[:60]!r} is too long")
    check_variant_name(order.variant)


def _check_amounts(order: JobOrder, config: AgentConfig, server_now_ns: int) -> None:
    limits = config.limits
    if not 0 <= order.round <= 1_000_000:
        raise UsageError(f"round {order.round} is none")
    if order.start_at_ns and not 0 < order.start_at_ns <= server_now_ns + MOST_AHEAD_NS:
        raise UsageError("the moment to begin is more than a day ahead, or none")
    if not 0 <= order.frequency_hz <= limits.highest_frequency_hz:
        raise UsageError(f"{order.frequency_hz} Hz: this agent samples at {limits.highest_frequency_hz} Hz at most")
    if order.event != "auto" and not _EVENT.fullmatch(order.event):
        raise UsageError(f"event {order.event[:60]!r}: this agent takes names of events only")
    parse_call_graph(order.call_graph[:LONGEST_PATTERN])
    _check_pattern("phase", order.phase)
    if len(order.metrics) > MOST_METRICS:
        raise UsageError(f"{len(order.metrics)} metrics: at most {MOST_METRICS} are read")
    for metric in order.metrics:
        if len(metric.name) > LONGEST_NAME or len(metric.spec) > LONGEST_PATTERN:
            raise UsageError(f"metric {metric.name[:60]!r}: longer than {LONGEST_PATTERN} characters")


def _check_pattern(what: str, pattern: str) -> None:
    if len(pattern) > LONGEST_PATTERN:
        raise UsageError(f"{what}: longer than {LONGEST_PATTERN} characters")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{what}: not a regular expression ({error})") from None


def _check_attach(order: JobOrder, config: AgentConfig) -> None:
    target = config.target(order.name)
    if target is None:
        raise UsageError(_unknown("target", order.name, [known.name for known in config.targets]))
    if not 1 <= order.windows <= MOST_WINDOWS or not SHORTEST_WINDOW_S <= order.window_s < math.inf:
        raise UsageError(f"{order.windows} windows of {order.window_s:g} s: at least one of {SHORTEST_WINDOW_S:g} s is needed")
    _check_length(order.windows * order.window_s, config)
    if target.profiler is TargetProfiler.PYSPY and (reason := python_refusal(order)):
        raise UsageError(reason)
    if order.metrics and not target.metrics:
        raise UsageError(f"target {target.name} has no page of metrics in this agent's file")
    for metric in order.metrics:
        parse_series(metric.name, metric.spec)


def _check_run(order: JobOrder, config: AgentConfig) -> None:
    workload = config.workload(order.name)
    if workload is None:
        raise UsageError(_unknown("workload", order.name, [known.name for known in config.workloads]))
    if not workload.binary(order.variant):
        raise UsageError(_unknown(f"variant of {workload.name}", order.variant, [known.name for known in workload.variants]))
    if not 1 <= order.runs <= MOST_RUNS:
        raise UsageError(f"{order.runs} runs: expected 1 to {MOST_RUNS}")
    for metric in order.metrics:
        try:
            parse_metric(f"{metric.name}={metric.spec}", metric.pick)
        except (RecursionError, OverflowError):
            raise UsageError(f"metric {metric.name!r}: not a regular expression") from None


def _check_swap(order: JobOrder, config: AgentConfig) -> None:
    target = config.target(order.name)
    if target is None:
        raise UsageError(_unknown("target", order.name, [known.name for known in config.targets]))
    if not target.swap:
        raise UsageError(f"target {target.name} cannot be swapped: its table in this agent's file has no swap")
    if order.variant not in target.variants:
        raise UsageError(_unknown(f"variant of {target.name}", order.variant, target.variants))


def _check_length(seconds: float, config: AgentConfig) -> None:
    longest = config.limits.longest_job_s
    if seconds > longest:
        raise UsageError(f"{seconds:g} s: jobs of this agent take {longest:g} s at most")


def _unknown(what: str, name: str, known: list[str] | tuple[str, ...]) -> str:
    return f"there is no {what} {name[:60]!r}; this agent's file has {', '.join(known) or 'none'}"
