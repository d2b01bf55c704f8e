"""Orders from the network: only what the agent's file names, within its limits.  Which are refused, and how both sides say so:
``test_order_refusals``."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from collectors.agent.jobs.job_values import JobTask
from collectors.agent.jobs.order_check import is_job_id, longest_s, refusal
from collectors.agent.jobs.run_job import swap_command
from profiler.protocol.job import JobKind, JobOrder
from support.agent_orders import ANY_ORDERS, ATTACH, CONFIG, NOW_NS, RUN, SWAP


@pytest.mark.parametrize("text", ["", "../x", "a/b", "a b", "x" * 101, "a?b", "a\n", "é"])
def test_an_id_that_is_no_part_of_an_address_is_none(text: str) -> None:
    assert not is_job_id(text)


def test_how_long_a_job_may_take() -> None:
    assert longest_s(ATTACH, CONFIG) == 100.0
    assert longest_s(SWAP, CONFIG) == 100.0  # the file allows less than the ten minutes of a swap
    assert longest_s(RUN, CONFIG) == 100.0


@given(ANY_ORDERS)
def test_whatever_is_ordered_only_names_of_the_file_pass(order: JobOrder) -> None:
    if refusal(order, CONFIG, NOW_NS):
        return
    assert order.name in ("node", "plain", "tasks", "load")
    assert order.frequency_hz <= 999
    if order.kind is JobKind.RUN:
        assert (order.name, order.variant) == ("load", "base")
    if order.kind is JobKind.SWAP:
        assert order.variant in ("a", "b")
        task = JobTask(order, "", 0, 1.0, CONFIG.target(order.name))
        assert task.target is not None
        assert swap_command(task.target, order) == ("deploy", order.variant)
    assert re.fullmatch(r"[A-Za-z0-9_.:@+,-]*", order.session + order.instance)
