"""Windows of a target that is watched without a profiler."""

from __future__ import annotations

import json
import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from collectors.agent.config.agent_config import ConfiguredTarget
from collectors.agent.jobs.job_events import JobEvents
from collectors.agent.jobs.job_values import JobTask
from collectors.agent.jobs.plain_job import PlainJob
from collectors.agent.spool.spool import session_command
from collectors.targets.target_finder import TargetFinder
from profiler.attach.stop_request import StopRequest
from profiler.experiment.targets import target_window
from profiler.model.run import RunKey
from profiler.protocol.job import JobKind, JobOrder
from profiler.store.store import Store, open_store

ORDER = JobOrder("job", JobKind.ATTACH, "node", "x", "s", "i", 0, window_s=0.5, windows=4, is_profiled=False)


def test_filing_takes_no_time_from_the_next_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that is slow, or shared."""
    lengths, add, outcome_of = [], Store.add, target_window.window_outcome

    def slowly(*arguments: Any) -> RunKey:
        time.sleep(0.4)
        return add(*arguments)

    def noted(target: Any, before: Any, after: Any, rule: Any) -> Any:
        lengths.append((before.monotonic_ns, after.monotonic_ns))
        return outcome_of(target, before, after, rule)

    monkeypatch.setattr(Store, "add", slowly)
    monkeypatch.setattr("collectors.agent.jobs.plain_job.window_outcome", noted)
    store = open_store(tmp_path / "store", create=True)
    target = ConfiguredTarget("node", TargetFinder(pid=os.getpid()))
    read, write = os.pipe()
    with StopRequest() as stop:
        PlainJob(JobTask(ORDER, str(store.directory), 0, 60.0, target), target, store, stop, JobEvents(write)).run()
    os.close(write)
    with os.fdopen(read) as told:
        events = [json.loads(line) for line in told]
    assert events[-1]["kind"] == "done", events
    assert all(end == begin for (_, end), (begin, _) in pairwise(lengths))
    assert [run.summary.failure for run in store.runs()] == [""] * 4
    assert [session.start.command for session in store.sessions()] == [session_command("job")]
