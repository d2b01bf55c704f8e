"""A real `slotscope agent` that is to watch a process only when it has been running for long enough."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from profiler.codec.json_values import to_json
from profiler.protocol.job import JobKind, JobList, JobOrder, JobState
from support import attached_program
from support.agent_process import AgentProcess, agent, write_config
from support.fake_aggregator import Asked, FakeAggregator, serving

PLAIN = JobOrder("plain", JobKind.ATTACH, "node", "x", "s", "i1", 0, window_s=1.0, is_profiled=False)
PROFILED = replace(PLAIN, id="profiled", is_profiled=True, frequency_hz=99, call_graph="fp")
SETTLE_S = 4.0
SECOND_NS = 10**9


@pytest.fixture
def fake() -> Iterator[FakeAggregator]:
    with serving(FakeAggregator()) as server:
        yield server


@pytest.fixture
def started_agents() -> Iterator[list[AgentProcess]]:
    agents: list[AgentProcess] = []
    yield agents
    for each in agents:
        each.stop()


def start(agents: list[AgentProcess], fake: FakeAggregator, directory: Path, pid: int) -> None:
    config = write_config(directory / "agent", fake.url, f'[[target]]\nname = "node"\npid = {pid}\n', limits="cpu_percent = 0")
    agents.append(agent(config).start())
    fake.wait_for(lambda: fake.hellos, what="the agent's hello")


def check_young_then_settled(fake: FakeAggregator, order: JobOrder, started_s: float) -> None:
    """``started_s``: monotonic, when the process started by this test's clock.  The same order is refused while the process is
    too young for it, and carried out when it has grown old enough."""
    begin_at_ns = time.time_ns() + 3 * SECOND_NS
    age_s = 3.0 + time.monotonic() - started_s
    young = replace(order, id=f"{order.id}-young", start_at_ns=begin_at_ns, settle_s=age_s + 60.0)
    fake.orders = [young]
    report = fake.wait_until_final(young.id)
    assert report.state is JobState.FAILED
    told = re.search(r"the process had started only (\d+) s before, and settle is ([\d.]+) s", report.detail)
    assert told, report.detail
    assert float(told[1]) == pytest.approx(age_s, abs=1.0)
    assert float(told[2]) == pytest.approx(age_s + 60.0, rel=1e-3)
    time.sleep(max(0.0, started_s + SETTLE_S - time.monotonic()))
    fake.orders.append(replace(order, id=f"{order.id}-settled", settle_s=SETTLE_S))
    settled = fake.wait_until_final(f"{order.id}-settled")
    assert settled.state is JobState.DONE, settled.detail
    assert len(settled.captures) == 1


def test_a_plain_window_of_a_young_process_does_not_count(
    fake: FakeAggregator, started_agents: list[AgentProcess], tmp_path: Path
) -> None:
    process, started_s = subprocess.Popen(["sleep", "300"]), time.monotonic()
    try:
        start(started_agents, fake, tmp_path, process.pid)
        check_young_then_settled(fake, PLAIN, started_s)
    finally:
        process.kill()
        process.wait()


@pytest.mark.perf
@pytest.mark.beside
@pytest.mark.usefixtures("perf")
def test_a_young_process_is_not_profiled(fake: FakeAggregator, started_agents: list[AgentProcess], tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    burner = attached_program.start(attached_program.build(tmp_path), tmp_path / "burner.txt", "forever")
    started_s = time.monotonic()
    try:
        start(started_agents, fake, tmp_path, burner.pid)
        check_young_then_settled(fake, PROFILED, started_s)
    finally:
        burner.kill()
    report = fake.last("profiled-young")
    assert report is not None
    assert report.captures == ()


def test_an_order_of_a_later_version_is_not_carried_out_without_what_it_adds(
    fake: FakeAggregator, started_agents: list[AgentProcess], tmp_path: Path
) -> None:
    """As agents of before `settle` were asked by an aggregator that knows it: nothing that is not understood is passed over."""

    def later(asked: Asked, handler: BaseHTTPRequestHandler) -> bool:
        if not asked.path.startswith("/api/v1/agent/jobs?"):
            return False
        orders = to_json(JobList((PLAIN,)))
        assert isinstance(orders, dict)
        orders["orders"][0]["only_when_idle"] = True
        body = json.dumps(orders).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return True

    fake.answer = later
    process = subprocess.Popen(["sleep", "300"])
    try:
        start(started_agents, fake, tmp_path, process.pid)
        started_agents[0].wait_for_log("the server's answer is not understood")
        assert "orders[0]: unknown field 'only_when_idle'" in started_agents[0].log.read_text()
        assert fake.reports == {}
    finally:
        process.kill()
        process.wait()
