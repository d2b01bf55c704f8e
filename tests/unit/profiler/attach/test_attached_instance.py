"""Processes that take each other's place in a session, and what is shared by them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from collectors.targets.attach_target import find_target
from collectors.targets.target_finder import TargetFinder
from profiler.attach.instance import attached_instance
from profiler.attach.plan import AttachPlan
from profiler.experiment.plan.call_graph_request import CallGraphRequest
from symbolize.locate import Locator


@pytest.fixture
def sleepers() -> Iterator[list[int]]:
    processes = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    yield [process.pid for process in processes]
    for process in processes:
        process.kill()
        process.wait()


def test_the_kernel_is_looked_at_once_for_all_processes_of_a_session(sleepers: list[int]) -> None:
    """Its symbols take 8 MB, and as much again for every process that has some of its own."""
    shared, found = Locator(), []
    for pid in sleepers:
        plan = AttachPlan(TargetFinder(pid=pid), call_graph=CallGraphRequest("fp"))
        with attached_instance(find_target(plan.finder), plan, "6.1", shared) as instance:
            found.append((instance.target.pid, instance.locator is shared))
    assert found == [(pid, True) for pid in sleepers]
