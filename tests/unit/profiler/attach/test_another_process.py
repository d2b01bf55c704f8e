"""A session whose process ended, and what it waits for in the one that takes its place."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from collectors.targets.target_finder import TargetFinder
from profiler.attach import session
from profiler.attach.plan import AttachPlan


@dataclass
class AgeingTarget:
    """A second older whenever somebody asks."""

    age: float = 0.0

    def age_s(self) -> float:
        self.age += 1.0
        return self.age


@pytest.fixture
def stop() -> Iterator[SimpleNamespace]:
    reading, writing = os.pipe()
    yield SimpleNamespace(descriptor=reading)
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(("settle_s", "begun_at_s"), [(0.0, 1.0), (4.0, 4.0)])
def test_another_process_is_watched_when_it_has_settled(
    settle_s: float, begun_at_s: float, stop: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = AgeingTarget()
    monkeypatch.setattr(session, "find_target", lambda _: target)
    monkeypatch.setattr(session, "check_access", lambda _: None)
    monkeypatch.setattr(session, "POLL_S", 0.001)
    setting: Any = SimpleNamespace(plan=AttachPlan(TargetFinder(comm="node"), settle_s=settle_s), stop=stop, observer=None)
    windows: Any = SimpleNamespace(end_ns=0)
    profiler: Any = SimpleNamespace(attached=lambda found, _: contextlib.nullcontext(found))
    kept: Any = None
    watch = session._Watch(setting, kept, windows, profiler)
    with contextlib.ExitStack() as instances:
        found: Any = watch._await_another(instances)
    assert found is target
    assert target.age == begun_at_s
