"""Orders from the network: only what the agent's file names, within its limits."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.agent.config.agent_config import AgentConfig, ConfiguredTarget, ConfiguredWorkload, WorkloadVariant
from collectors.agent.jobs.job_values import JobTask
from collectors.agent.jobs.order_check import is_job_id, longest_s, refusal
from collectors.agent.jobs.run_job import swap_command
from collectors.targets.target_finder import TargetFinder
from profiler.protocol.hello import AgentLimits, TargetProfiler
from profiler.protocol.job import JobKind, JobOrder, OrderedMetric

NOW_NS = 1_800_000_000 * 10**9
SOON_NS = NOW_NS + 5 * 10**9
CONFIG = AgentConfig(
    server="https://a:1",
    token="t" * 20,
    spool=Path("/nowhere"),
    limits=AgentLimits(longest_job_s=100.0, highest_frequency_hz=999, spool_bytes=1 << 20, cpu_percent=20.0),
    targets=(
        ConfiguredTarget("node", TargetFinder(comm="node"), "http://127.0.0.1:1/metrics", ("a", "b"), ("deploy", "{variant}")),
        ConfiguredTarget("plain", TargetFinder(pid=1)),
        ConfiguredTarget("tasks", TargetFinder(comm="celery"), profiler=TargetProfiler.PYSPY),
    ),
    workloads=(ConfiguredWorkload("load", ("{binary}", "x"), (WorkloadVariant("base", "/opt/base"),)),),
)
ATTACH = JobOrder("id", JobKind.ATTACH, "node", "a", "s1", "i1", 3, window_s=10.0, windows=10, frequency_hz=999)
TASKS = replace(ATTACH, name="tasks")
RUN = JobOrder("id", JobKind.RUN, "load", "base", "s1", "i1", 0)
SWAP = JobOrder("id", JobKind.SWAP, "node", "b", "s1", "i1", 0)


@pytest.mark.parametrize(
    "order",
    [ATTACH, RUN, SWAP, replace(ATTACH, start_at_ns=SOON_NS), TASKS, replace(TASKS, start_at_ns=SOON_NS, is_profiled=False)],
)
def test_what_the_file_allows_is_done(order: JobOrder) -> None:
    assert refusal(order, CONFIG, NOW_NS) == ""


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (replace(ATTACH, name="nod"), "no target 'nod'; this agent's file has node, plain, tasks"),
        (replace(ATTACH, name="load"), "no target"),
        (replace(RUN, name="node"), "no workload"),
        (replace(RUN, name="../../bin/sh"), "no workload"),
        (replace(RUN, variant="/bin/sh"), "variant"),
        (replace(RUN, variant="fat"), "no variant of load 'fat'; this agent's file has base"),
        (replace(SWAP, variant="c"), "no variant of node 'c'"),
        (replace(SWAP, name="plain"), "cannot be swapped"),
        (replace(ATTACH, frequency_hz=1000), "999 Hz at most"),
        (replace(ATTACH, frequency_hz=-1), "999 Hz at most"),
        (replace(ATTACH, windows=11), "110 s: jobs of this agent take 100 s at most"),
        (replace(ATTACH, window_s=math.inf, windows=1), "windows of inf s"),
        (replace(ATTACH, window_s=math.nan, windows=1), "windows of nan s"),
        (replace(ATTACH, windows=0), "0 windows"),
        (replace(ATTACH, start_at_ns=NOW_NS + 25 * 3600 * 10**9), "more than a day ahead"),
        (replace(ATTACH, start_at_ns=-1), "none"),
        (replace(ATTACH, session="../../etc"), "session '../../etc' is no name"),
        (replace(ATTACH, instance="a/b"), "instance 'a/b' is no name"),
        (replace(ATTACH, instance="x" * 201), "is no name"),
        (replace(ATTACH, round=-1), "round -1"),
        # perf compiles C files and loads BPF objects that are named as events, and reads PMU descriptions by path.
        (replace(ATTACH, event="/tmp/x.c"), "names of events only"),
        (replace(ATTACH, event="x.o"), "names of events only"),
        (replace(ATTACH, event="cycles,instructions"), "names of events only"),
        (replace(ATTACH, event="-o/etc/passwd"), "names of events only"),
        (replace(ATTACH, event="sched:sched_switch"), "names of events only"),
        (replace(ATTACH, call_graph="fp -o x"), "--call-graph"),
        (replace(ATTACH, phase="("), "not a regular expression"),
        (replace(ATTACH, phase="x" * 501), "longer than 500"),
        (replace(ATTACH, metrics=(OrderedMetric("m", "a b c"),)), "expected a series"),
        (replace(ATTACH, name="plain", metrics=(OrderedMetric("m", "x_seconds"),)), "no page of metrics"),
        (replace(ATTACH, metrics=(OrderedMetric("m", "x"),) * 65), "65 metrics"),
        (replace(RUN, metrics=(OrderedMetric("m", "regex:" + "(a+)+" * 200),)), "longer than 500"),
        (replace(RUN, metrics=(OrderedMetric("m", "regex:("),)), "not a regular expression"),
        (replace(RUN, metrics=(OrderedMetric("m", "stat:cycles"),)), "live processes"),
        (replace(TASKS, start_at_ns=SOON_NS), "begins when it has found the interpreter"),
        (replace(TASKS, event="cycles"), "which counts samples of non-idle wall time and no event: leave event 'cycles' out"),
        (replace(TASKS, call_graph="fp"), "reads stacks from the interpreter: leave call graph 'fp' out"),
        (replace(TASKS, metrics=(OrderedMetric("m", "x_seconds"),)), "no page of metrics"),
        (replace(RUN, runs=0), "0 runs"),
        (replace(RUN, runs=10_001), "10001 runs"),
    ],
)
def test_the_rest_is_refused_with_the_reason(order: JobOrder, words: str) -> None:
    found = refusal(order, CONFIG, NOW_NS)
    assert words in found
    assert "\n" not in found


@pytest.mark.parametrize("text", ["", "../x", "a/b", "a b", "x" * 101, "a?b", "a\n", "é"])
def test_an_id_that_is_no_part_of_an_address_is_none(text: str) -> None:
    assert not is_job_id(text)


def test_how_long_a_job_may_take() -> None:
    assert longest_s(ATTACH, CONFIG) == 100.0
    assert longest_s(SWAP, CONFIG) == 100.0  # the file allows less than the ten minutes of a swap
    assert longest_s(RUN, CONFIG) == 100.0


@given(
    st.builds(
        JobOrder,
        id=st.text(),
        kind=st.sampled_from(JobKind),
        name=st.one_of(st.sampled_from(["node", "plain", "load"]), st.text()),
        variant=st.one_of(st.sampled_from(["a", "b", "base"]), st.text()),
        session=st.text(max_size=5),
        instance=st.text(max_size=5),
        round=st.integers(),
        start_at_ns=st.integers(),
        window_s=st.floats(),
        windows=st.integers(),
        runs=st.integers(),
        event=st.one_of(st.just("auto"), st.text()),
        frequency_hz=st.integers(),
        call_graph=st.one_of(st.just("auto"), st.text()),
        phase=st.text(max_size=20),
    )
)
def test_whatever_is_ordered_only_names_of_the_file_pass(order: JobOrder) -> None:
    if refusal(order, CONFIG, NOW_NS):
        return
    assert order.name in ("node", "plain", "load", "tasks")
    assert order.frequency_hz <= 999
    if order.kind is JobKind.RUN:
        assert (order.name, order.variant) == ("load", "base")
    if order.kind is JobKind.SWAP:
        assert order.variant in ("a", "b")
        task = JobTask(order, "", 0, 1.0, CONFIG.target(order.name))
        assert task.target is not None
        assert swap_command(task.target, order) == ("deploy", order.variant)
    assert re.fullmatch(r"[A-Za-z0-9_.:@+,-]*", order.session + order.instance)
