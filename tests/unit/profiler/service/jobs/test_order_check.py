"""Orders that an agent would not understand are refused before.  What it would refuse: ``test_order_refusals``."""

from __future__ import annotations

import pytest

from profiler.protocol.hello import PROTOCOL_VERSION
from profiler.service.jobs.order_check import refusal_of
from support.aggregators import START_NS, attach_order, hello


@pytest.mark.parametrize(("version", "older"), [(PROTOCOL_VERSION - 1, "agent"), (PROTOCOL_VERSION + 1, "aggregator")])
def test_an_agent_of_another_version_is_asked_for_nothing(version: int, older: str) -> None:
    """It would not know all that an order says: one of before ``settle_s`` would watch a process of any age."""
    told = refusal_of(attach_order(), hello(protocol=version), START_NS)
    assert told == f"the agent speaks version {version}, this aggregator {PROTOCOL_VERSION}: upgrade slotscope of the {older}"
    assert refusal_of(attach_order(), hello(), START_NS) == ""
