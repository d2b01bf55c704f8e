"""A container that an agent watches: its names are with the aggregator when container and files are gone."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.protocol.job import JobKind, JobOrder, JobState
from profiler.service.aggregator import Aggregator, open_aggregator
from profiler.store.records import SessionStart
from support import container_root
from support.agent_process import AgentProcess
from support.container_root import Contained, ContainerFiles
from support.one_host import one_host
from support.ordering import wait_for
from support.served_aggregator import slotscope

pytestmark = [pytest.mark.perf, pytest.mark.full, pytest.mark.usefixtures("perf")]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def files(tmp_path: Path) -> ContainerFiles:
    if os.geteuid() != 0 or any(shutil.which(tool) is None for tool in ("gcc", "objcopy", "strip", "readelf")):
        pytest.skip("needs root, gcc and binutils")
    return container_root.build(tmp_path)


@pytest.fixture
def contained(files: ContainerFiles) -> Iterator[Contained]:
    it = container_root.start(files)
    yield it
    it.kill()


@pytest.fixture
def host(contained: Contained, tmp_path: Path) -> Iterator[AgentProcess]:
    with one_host(tmp_path, f'[[target]]\nname = "box"\npid = {contained.pid}\n') as it:
        yield it


def state_of(aggregator: Aggregator, job: str) -> JobState:
    found = aggregator.jobs.job(job)
    assert found is not None
    return found.report.state


def kept(spool: Path) -> list[str]:
    return sorted(path.name for path in (spool / "store/debug").rglob("*") if path.is_file())


def test_names_arrive_and_the_spool_is_left_empty(
    host: AgentProcess, store: Path, files: ContainerFiles, contained: Contained
) -> None:
    aggregator = open_aggregator(store, create=False)
    session = aggregator.store.begin_session(SessionStart("2026-01-02T03:04:05+00:00", "", (), 0, has_rounds=False))
    order = JobOrder("job-1-aaaaaaaaaaaaaaaa", JobKind.ATTACH, "box", "box", session, "host1", 0, window_s=2.0)
    aggregator.jobs.add("host1", order, time.time_ns())
    wait_for(lambda: state_of(aggregator, order.id).is_final, 90, host.log.read_text)
    contained.kill()
    shutil.rmtree(files.root)
    assert state_of(aggregator, order.id) is JobState.DONE, host.log.read_text()
    wait_for(lambda: aggregator.store.runs(session), 60, host.log.read_text)
    wait_for(lambda: host.log.read_text().count("names uploaded") == 3, 60, host.log.read_text)
    printed = slotscope(store, "report", "box", "--by", "function", "--format", "json").stdout
    report = json.loads(printed)
    shares = {row["name"]: row["self"] / report["total"] for row in report["rows"]}
    assert shares["inside_part"] + shares["inside_library_part"] + shares["random"] > 0.8
    assert not any("host" in name for name in shares)
    wait_for(lambda: not kept(host.spool), 90, lambda: kept(host.spool))
