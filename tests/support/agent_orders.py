"""What an agent offers in the tests of orders, and orders of all kinds."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from collectors.agent.config.agent_config import AgentConfig, ConfiguredTarget, ConfiguredWorkload, WorkloadVariant
from collectors.targets.target_finder import TargetFinder
from profiler.protocol.hello import AgentLimits, TargetProfiler
from profiler.protocol.job import JobKind, JobOrder, OrderedMetric

NOW_NS = 1_800_000_000 * 10**9
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
RUN = JobOrder("id", JobKind.RUN, "load", "base", "s1", "i1", 0, frequency_hz=999)
SWAP = JobOrder("id", JobKind.SWAP, "node", "b", "s1", "i1", 0)
ANY_ORDERS = st.builds(
    JobOrder,
    id=st.text(),
    kind=st.sampled_from(JobKind),
    name=st.one_of(st.sampled_from(["node", "plain", "tasks", "load"]), st.text()),
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
    settle_s=st.one_of(st.just(0.0), st.floats()),
    metrics=st.one_of(st.just(()), st.lists(st.builds(OrderedMetric, st.text(), st.text(), st.text()), max_size=2).map(tuple)),
)
