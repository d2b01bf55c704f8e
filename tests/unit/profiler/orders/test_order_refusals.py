"""Hostile and odd orders: the aggregator says at once what the agent would say, and both say it of the same ones."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given

from collectors.agent.jobs import order_check as agents_check
from profiler.codec.json_values import from_json, to_json
from profiler.protocol.hello import AgentHello
from profiler.protocol.job import JobOrder, OrderedMetric
from profiler.service.jobs import order_check as aggregators_check
from support.agent_orders import ANY_ORDERS, ATTACH, CONFIG, NOW_NS, RUN, SWAP
from support.aggregators import hello

TASKS = replace(ATTACH, name="tasks")
TAKEN = {
    "windows": ATTACH,
    "any variant of a process that is what it is": replace(ATTACH, variant="whatever"),
    "in five seconds": replace(ATTACH, start_at_ns=NOW_NS + 5 * 10**9),
    "settled": replace(ATTACH, settle_s=300.0),
    "at the usual 99 Hz": replace(ATTACH, frequency_hz=0),
    "metrics": replace(ATTACH, metrics=(OrderedMetric("m", 'x_seconds{path="/"}'),)),
    "a Python process": TASKS,
    "a settled Python process": replace(TASKS, settle_s=300.0),
    "a Python process without samples, at a moment": replace(TASKS, start_at_ns=NOW_NS + 5 * 10**9, is_profiled=False),
    "runs": RUN,
    "runs without samples": replace(RUN, frequency_hz=0, is_profiled=False),
    "swap": SWAP,
}
REFUSED = [
    (replace(ATTACH, name="nod"), "the agent offers no target 'nod' (it offers node, plain, tasks)"),
    (replace(ATTACH, name="load"), "no target"),
    (replace(RUN, name="node"), "no workload 'node' (it offers load)"),
    (replace(RUN, name="../../bin/sh"), "no workload"),
    (replace(RUN, variant="/bin/sh"), "variant"),
    (replace(RUN, variant="fat"), "workload 'load' has no variant 'fat' (it has base)"),
    (replace(SWAP, variant="c"), "target 'node' has no variant 'c' (it has a, b)"),
    (replace(SWAP, name="plain"), "target 'plain' cannot be swapped"),
    (replace(SWAP, variant=""), "variant name ''"),
    (replace(ATTACH, variant="last"), "variant name 'last'"),
    (replace(ATTACH, variant="x" * 201), "too long"),
    (replace(ATTACH, frequency_hz=1000), "1000 Hz are more than the 999 Hz that the agent allows"),
    (replace(ATTACH, frequency_hz=-1), "-1 Hz"),
    # Runs are sampled 1,999 times a second when nothing is said.
    (replace(RUN, frequency_hz=0), "1999 Hz are more than the 999 Hz"),
    (replace(ATTACH, windows=11), "110 s are more than the 100 s that the agent allows"),
    (replace(ATTACH, windows=100_001, window_s=1.0), "100001 windows"),
    (replace(ATTACH, window_s=math.inf, windows=1), "windows of inf s"),
    (replace(ATTACH, window_s=math.nan, windows=1), "windows of nan s"),
    (replace(ATTACH, window_s=0.5), "at least one of 1 s"),
    (replace(ATTACH, windows=0), "0 windows"),
    (replace(ATTACH, settle_s=-1.0), "settle of -1 s"),
    (replace(ATTACH, settle_s=math.inf), "settle of inf s"),
    (replace(ATTACH, settle_s=math.nan), "settle of nan s"),
    (replace(RUN, settle_s=5.0), "of a process that is watched"),
    (replace(SWAP, settle_s=5.0), "of a process that is watched"),
    (replace(ATTACH, start_at_ns=NOW_NS + 25 * 3600 * 10**9), "more than a day ahead"),
    (replace(ATTACH, start_at_ns=-1), "none"),
    (replace(TASKS, start_at_ns=NOW_NS + 5 * 10**9), "begins when it has found the interpreter"),
    (replace(TASKS, event="cycles"), "which counts samples of non-idle wall time and no event: leave event 'cycles' out"),
    (replace(TASKS, call_graph="fp"), "reads stacks from the interpreter: leave call graph 'fp' out"),
    (replace(TASKS, metrics=(OrderedMetric("m", "x_seconds"),)), "no page of metrics"),
    (replace(ATTACH, session="../../etc"), "session '../../etc' is no name"),
    (replace(ATTACH, instance="a/b"), "instance 'a/b' is no name"),
    (replace(ATTACH, instance="x" * 201), "is no name"),
    (replace(ATTACH, round=-1), "round -1"),
    (replace(ATTACH, round=1_000_001), "round 1000001"),
    # perf compiles C files and loads BPF objects that are named as events, and reads PMU descriptions by path.
    (replace(ATTACH, event="/tmp/x.c"), "names of events only"),
    (replace(ATTACH, event="x.o"), "names of events only"),
    (replace(ATTACH, event="cycles,instructions"), "names of events only"),
    (replace(ATTACH, event="-o/etc/passwd"), "names of events only"),
    (replace(ATTACH, event="sched:sched_switch"), "names of events only"),
    (replace(ATTACH, event="cycles\n-o x"), "names of events only"),
    (replace(ATTACH, event=""), "names of events only"),
    (replace(ATTACH, call_graph="fp -o x"), "--call-graph"),
    (replace(ATTACH, call_graph="dwarf," + "9" * 600), "--call-graph"),
    (replace(ATTACH, call_graph=""), "--call-graph"),
    (replace(ATTACH, phase="("), "not a regular expression"),
    (replace(ATTACH, phase="(" * 400 + ")" * 400), "longer than 500"),
    (replace(ATTACH, phase="x" * 501), "longer than 500"),
    (replace(ATTACH, metrics=(OrderedMetric("m", "a b c"),)), "expected a series"),
    (replace(ATTACH, name="plain", metrics=(OrderedMetric("m", "x_seconds"),)), "its agent.toml names no page of metrics"),
    (replace(ATTACH, metrics=(OrderedMetric("m", "x"),) * 65), "65 metrics"),
    (replace(ATTACH, metrics=(OrderedMetric("m" * 201, "x"),)), "longer than 500"),
    (replace(RUN, metrics=(OrderedMetric("m", "regex:" + "(a+)+" * 200),)), "longer than 500"),
    (replace(RUN, metrics=(OrderedMetric("m", "regex:("),)), "not a regular expression"),
    (replace(RUN, metrics=(OrderedMetric("m", "regex:(a)", pick="worst"),)), "--pick 'worst'"),
    (replace(RUN, metrics=(OrderedMetric("m", "stat:cycles"),)), "live processes"),
    (replace(RUN, runs=0), "0 runs"),
    (replace(RUN, runs=10_001), "10001 runs"),
]


def said_hello() -> AgentHello:
    """What the aggregator knows of the agent, as it came over the network."""
    offer = CONFIG.offer
    said = hello(targets=offer.targets, workloads=offer.workloads, limits=offer.limits)
    return from_json(AgentHello, json.loads(json.dumps(to_json(said))))


def answers(order: JobOrder) -> tuple[str, str]:
    """Of the agent and of the aggregator."""
    return agents_check.refusal(order, CONFIG, NOW_NS), aggregators_check.refusal_of(order, said_hello(), NOW_NS)


@pytest.mark.parametrize("order", TAKEN.values(), ids=TAKEN)
def test_what_the_file_allows_is_taken(order: JobOrder) -> None:
    assert answers(order) == ("", "")


@pytest.mark.parametrize(("order", "words"), REFUSED)
def test_the_rest_is_refused_on_both_sides_for_the_same_reason(order: JobOrder, words: str) -> None:
    by_agent, by_aggregator = answers(order)
    assert words in by_agent
    assert by_aggregator == by_agent
    assert "\n" not in by_agent
    assert len(by_agent) < 1000


@given(ANY_ORDERS)
def test_whatever_is_ordered_both_sides_agree(order: JobOrder) -> None:
    by_agent, by_aggregator = answers(order)
    assert by_agent == by_aggregator
