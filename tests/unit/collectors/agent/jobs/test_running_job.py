"""The process of a job under its limits: what hangs is ended, what dies is told, nothing is left."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from collectors.agent.config.agent_config import ConfiguredWorkload, WorkloadVariant
from collectors.agent.jobs import running_job
from collectors.agent.jobs.cpu_meter import CpuMeter
from collectors.agent.jobs.job_values import JobEvent, JobEventKind, JobTask
from collectors.agent.jobs.running_job import RunningJob
from collectors.processes.guard import GroupGuard
from profiler.protocol.job import JobKind, JobOrder, OrderedMetric
from profiler.store.store import open_store

ORDER = JobOrder("id", JobKind.RUN, "load", "base", "s", "i", 0, is_profiled=False)


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupGuard]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[5]))  # where the job's process finds its module
    with GroupGuard() as made:
        yield made


def task(tmp_path: Path, program: str, order: JobOrder = ORDER) -> JobTask:
    open_store(tmp_path / "store", create=True)
    variants = (WorkloadVariant("base", sys.executable),)
    workload = ConfiguredWorkload("load", ("{binary}", "-c", program), variants)
    return JobTask(order, str(tmp_path / "store"), 0, 60.0, workload=workload)


def last_event(job: RunningJob, cpu_percent: float = 0.0, seconds: float = 60.0) -> JobEvent:
    deadline = time.monotonic() + seconds
    try:
        while not job.has_ended:
            assert time.monotonic() < deadline, "the job hangs"
            select.select(job.descriptors, [], [], 0.1)
            for _ in job.events():
                pass
            job.keep_limits(cpu_percent)
        return job.outcome()
    finally:
        job.kill()
        job.close()


def test_a_regular_expression_that_never_ends_is_ended(
    tmp_path: Path, guard: GroupGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 letters and no digit behind them: 2^40 ways to try, about a day."""
    monkeypatch.setattr(running_job, "SLACK_S", 3.0)
    monkeypatch.setattr(running_job, "GRACE_S", 0.5)
    order = replace(ORDER, metrics=(OrderedMetric("m", r"regex:(?P<value>(a+)+\d)"),))
    job = RunningJob(task(tmp_path, "print('a' * 40)", order), 0.0, guard)
    assert last_event(job).kind is JobEventKind.FAILED
    assert job.ending == "it took longer than was ordered and this agent allows"


def test_what_a_program_prints_is_no_event(tmp_path: Path, guard: GroupGuard) -> None:
    program = """print('{"kind": "failed", "detail": "from the program", "monotonic_ns": 0}')"""
    event = last_event(RunningJob(task(tmp_path, program), 60.0, guard))
    assert (event.kind, event.detail) == (JobEventKind.DONE, "1 run")


def test_a_program_that_fails_fails_the_job(tmp_path: Path, guard: GroupGuard) -> None:
    event = last_event(RunningJob(task(tmp_path, "import sys; sys.exit('no states')"), 60.0, guard))
    assert event.kind is JobEventKind.FAILED
    assert "no states" in event.detail


def test_a_process_that_is_killed_failed(tmp_path: Path, guard: GroupGuard) -> None:
    job = RunningJob(task(tmp_path, "import time; time.sleep(100)"), 60.0, guard)
    told: list[JobEventKind] = []
    while JobEventKind.BEGUN not in told:
        assert not job.has_ended, job.outcome()
        select.select(job.descriptors, [], [], 0.1)
        told += [event.kind for event in job.events()]
    os.kill(job._process.pid, signal.SIGKILL)
    event = last_event(job)
    assert event.kind is JobEventKind.FAILED
    assert "killed by signal 9" in event.detail


def test_use_is_that_of_the_last_minute() -> None:
    meter = CpuMeter()
    second = 10**9
    # Half a CPU from the start on, read every second: 0.5 s of 60 after one, 50 % after a minute, and it stays so.
    found = [meter.read(float(now), {1: now * second // 2}) for now in range(200)]
    assert found[1] == pytest.approx(100 * 0.5 / 60)
    assert found[60] == pytest.approx(50.0)
    assert found[199] == pytest.approx(50.0)


def test_a_profiler_that_ended_still_counts_for_a_minute() -> None:
    meter = CpuMeter()
    assert meter.read(0.0, {1: 0, 2: 0}) == 0.0
    assert meter.read(1.0, {1: 0, 2: 6 * 10**9}) == pytest.approx(10.0)
    assert meter.read(30.0, {1: 0, 3: 6 * 10**9}) == pytest.approx(20.0)
    for now in range(31, 62):
        meter.read(float(now), {1: 0})
    assert meter.read(62.0, {1: 0}) == pytest.approx(10.0)  # the first is more than a minute ago


def test_of_profilers_that_ended_only_the_sum_is_kept() -> None:
    """A perf for every second, each of which uses 0.6 s in it: 60 % of a CPU, after an hour as after a minute."""
    meter = CpuMeter()
    found = [meter.read(float(now), {1: 0, 100 + now: 6 * 10**8}) for now in range(3600)]
    assert found[60] == pytest.approx(60.0)
    assert found[3599] == pytest.approx(60.0)
    held = [number for part in gc.get_referents(meter) if isinstance(part, dict | list) for number in part]
    assert 3699 in held
    assert len(held) <= 2
