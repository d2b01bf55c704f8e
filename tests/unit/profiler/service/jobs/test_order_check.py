"""Orders that an agent would refuse are refused before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profiler.protocol.hello import OfferedTarget, TargetProfiler
from profiler.protocol.job import JobKind
from profiler.service.jobs.order_check import refusal_of
from support.aggregators import attach_order, hello

RUN: dict[str, Any] = {"kind": JobKind.RUN, "name": "skip-slots", "variant": "fat", "window_s": 0.0}
SWAP: dict[str, Any] = {"kind": JobKind.SWAP, "variant": "fat", "window_s": 0.0}


@pytest.mark.parametrize("changed", [{}, {"variant": "anything"}, {"frequency_hz": 4999}, {"windows": 720}, RUN, SWAP])
def test_orders_that_an_agent_takes(changed: dict[str, Any]) -> None:
    assert refusal_of(attach_order(**changed), hello()) == ""


PYTHON = replace(hello(), targets=(OfferedTarget("node", profiler=TargetProfiler.PYSPY),))


def test_orders_for_a_python_process() -> None:
    assert refusal_of(attach_order(frequency_hz=1000), PYTHON) == ""
    assert refusal_of(attach_order(frequency_hz=1001, is_profiled=False), PYTHON) == ""
    assert "1000 Hz are the most, not 1001" in refusal_of(attach_order(frequency_hz=1001), PYTHON)
    assert "not at a given moment" in refusal_of(attach_order(start_at_ns=1), PYTHON)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"name": "other"}, "no target 'other' (it offers node)"),
        ({"name": "skip-slots"}, "no target"),
        ({**RUN, "name": "node"}, "no workload 'node' (it offers skip-slots)"),
        ({**RUN, "variant": "new"}, "no variant 'new' (it has base, fat)"),
        ({**SWAP, "variant": "new"}, "no variant 'new'"),
        ({"windows": 721}, "3605 s are more than the 3600 s"),
        ({"frequency_hz": 5000}, "5000 Hz are more than the 4999 Hz"),
        ({"window_s": 0.0}, "`window_s` must be positive"),
        ({"windows": 0}, "begin at 1"),
        ({"start_at_ns": -1}, "negative"),
    ],
)
def test_orders_that_it_does_not_take(changed: dict[str, Any], named: str) -> None:
    assert named in refusal_of(attach_order(**changed), hello())
