"""A Python process that an agent watches by py-spy: on the aggregator its samples stay what they are."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.model.event import NON_IDLE_SAMPLES
from profiler.protocol.job import JobKind, JobOrder, JobState
from profiler.service.aggregator import Aggregator, open_aggregator
from profiler.store.records import SessionStart
from profiler.store.store import StoredRun
from support.agent_process import AgentProcess
from support.asked_pages import local_visitor
from support.installed_pyspy import needs_pyspy
from support.one_host import carried_out, one_host
from support.served_aggregator import slotscope

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "workloads" / "python_ratio.py"
NAME = f"tasks-{os.getpid()}"
TARGETS = f"""
[[target]]
name = "tasks"
comm = "{NAME}"
profiler = "py-spy"
[[target]]
name = "interpreter"
comm = "{NAME}"
"""
RATE_HZ = 200


pytestmark = [
    pytest.mark.perf,
    pytest.mark.beside,
    pytest.mark.usefixtures("perf"),
    needs_pyspy,
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[AgentProcess]:
    with one_host(tmp_path, TARGETS) as it:
        yield it


@pytest.fixture(autouse=True)
def target() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, str(PROGRAM), NAME], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process.pid
    process.stdout.close()
    process.kill()
    process.wait()


def runs_of(aggregator: Aggregator, session: str, number: int) -> tuple[StoredRun, ...]:
    deadline = time.monotonic() + 60
    while len(runs := aggregator.store.runs(session)) < number:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return runs


def begin(aggregator: Aggregator) -> str:
    return aggregator.store.begin_session(SessionStart("2026-01-02T03:04:05+00:00", "", (), 0, has_rounds=False))


def test_its_functions_are_seen_and_never_held_against_cpu_time(host: AgentProcess, store: Path) -> None:
    aggregator = open_aggregator(store, create=False)
    session, other = begin(aggregator), begin(aggregator)
    order = JobOrder("job-1-aaaaaaaaaaaaaaaa", JobKind.ATTACH, "tasks", "functions", session, "host1", 0)
    order = replace(order, windows=2, window_s=1.5, frequency_hz=RATE_HZ)
    assert carried_out(aggregator, order).state is JobState.DONE, host.log.read_text()
    of_perf = replace(order, id="job-2-bbbbbbbbbbbbbbbb", name="interpreter", variant="cpu", session=other, windows=1)
    assert carried_out(aggregator, of_perf).state is JobState.DONE, host.log.read_text()
    captures = [aggregator.store.load(run) for run in runs_of(aggregator, session, 2)]
    assert {event.unit for capture in captures for event in capture.events} == {NON_IDLE_SAMPLES}
    # The only thread is never idle: a moment counts if py-spy had its turn.
    assert all(0.3 * 1.5 * RATE_HZ < len(capture.samples) < 1.7 * 1.5 * RATE_HZ for capture in captures)
    (cpu,) = (aggregator.store.load(run) for run in runs_of(aggregator, other, 1))
    assert {event.unit for event in cpu.events} == {"ns"}
    report = slotscope(store, "report", "functions", "--by", "function", "--format", "csv")
    totals = {row["name"].split()[0]: int(row["total"]) for row in csv.DictReader(io.StringIO(report.stdout))}
    assert totals["three"] / (totals["three"] + totals["one"]) == pytest.approx(0.75, abs=0.1)
    refused = slotscope(store, "compare", "functions", "cpu")
    assert refused.returncode != 0
    assert NON_IDLE_SAMPLES in refused.stderr
    page = local_visitor(aggregator).get("/compare?baseline=functions&candidate=cpu")
    assert NON_IDLE_SAMPLES in page.text
    assert "<table" not in page.text


def test_without_pyspy_the_job_says_what_is_missing(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that is installed without it, and a search path that has none."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    packages = str(Path(pytest.__file__).resolve().parents[1])
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    path = os.pathsep.join((str(bare / "bin"), "/usr/bin", "/bin"))
    with one_host(tmp_path, TARGETS, PATH=path, PYTHONPATH=os.pathsep.join((str(ROOT), packages))):
        aggregator = open_aggregator(store, create=False)
        order = JobOrder("job-3-cccccccccccccccc", JobKind.ATTACH, "tasks", "functions", begin(aggregator), "host1", 0)
        report = carried_out(aggregator, replace(order, window_s=1.0))
        assert (report.state, report.detail) == (JobState.FAILED, "py-spy is not installed: `pip install py-spy`")
