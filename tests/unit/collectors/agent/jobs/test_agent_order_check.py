"""Orders from the network: only what the agent's file names, within its limits.  Which are refused, and how both sides say so:
``test_order_refusals``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.agent.config.agent_config import AgentConfig, ConfiguredTarget, ConfiguredWorkload, WorkloadVariant
from collectors.agent.jobs.job_values import JobTask
from collectors.agent.jobs.order_check import is_job_id, longest_s, refusal
from collectors.agent.jobs.run_job import swap_command
from collectors.targets.target_finder import TargetFinder
from profiler.protocol.hello import AgentLimits
from profiler.protocol.job import JobKind, JobOrder

NOW_NS = 1_800_000_000 * 10**9
CONFIG = AgentConfig(
    server="https://a:1",
    token="t" * 20,
    spool=Path("/nowhere"),
    limits=AgentLimits(longest_job_s=100.0, highest_frequency_hz=999, spool_bytes=1 << 20, cpu_percent=20.0),
    targets=(
        ConfiguredTarget("node", TargetFinder(comm="node"), "http://127.0.0.1:1/metrics", ("a", "b"), ("deploy", "{variant}")),
        ConfiguredTarget("plain", TargetFinder(pid=1)),
    ),
    workloads=(ConfiguredWorkload("load", ("{binary}", "x"), (WorkloadVariant("base", "/opt/base"),)),),
)
ATTACH = JobOrder("id", JobKind.ATTACH, "node", "a", "s1", "i1", 3, window_s=10.0, windows=10, frequency_hz=999)
RUN = JobOrder("id", JobKind.RUN, "load", "base", "s1", "i1", 0)
SWAP = JobOrder("id", JobKind.SWAP, "node", "b", "s1", "i1", 0)


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
    assert order.name in ("node", "plain", "load")
    assert order.frequency_hz <= 999
    if order.kind is JobKind.RUN:
        assert (order.name, order.variant) == ("load", "base")
    if order.kind is JobKind.SWAP:
        assert order.variant in ("a", "b")
        task = JobTask(order, "", 0, 1.0, CONFIG.target(order.name))
        assert task.target is not None
        assert swap_command(task.target, order) == ("deploy", order.variant)
    assert re.fullmatch(r"[A-Za-z0-9_.:@+,-]*", order.session + order.instance)
