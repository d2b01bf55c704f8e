"""What pages are to show in tests: agents, jobs and captures, with names that nobody would choose."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from profiler.model.fitness import Fitness, FitnessCheck
from profiler.model.run import HostFacts
from profiler.protocol.clock import ClockOffset
from profiler.protocol.hello import PROTOCOL_VERSION, AgentHello, AgentLimits, OfferedTarget, OfferedWorkload, SpoolState
from profiler.protocol.job import JobKind, JobOrder, JobReport, JobState
from profiler.service.aggregator import Aggregator
from profiler.store.debug_tree import debug_file
from profiler.store.records import SessionStart, SessionState
from profiler.store.store import Store, open_store
from support.small_captures import small_capture, small_info

SECOND_NS = 1_000_000_000
MARKUP = "<script>window.hurt=1</script><img src=x onerror=window.hurt=1>"
QUOTES = "\"'><svg onload=window.hurt=1>{{ 7*7 }}"
TURNED = "abc\u202egpj.exe\u2066\u05d0\u05d1\u05d2"
CONTROLS = "a\x00b\x1b[31mc\r\nSet-Cookie: hurt=1\x7f"
HALF_PAIR = "bytes\udcff\udc80end"
LONG = "x" * 10_000
HOSTILE = (MARKUP, QUOTES, TURNED, CONTROLS, HALF_PAIR, LONG)


def hello(hostname: str = "node-1", problem: str = "", checks: tuple[FitnessCheck, ...] | None = None) -> AgentHello:
    found = checks
    if found is None:
        found = (
            FitnessCheck("host", "perf", Fitness.OK, "perf 6.1 records cpu-clock"),
            FitnessCheck("host", "kernel names", Fitness.WARNING, "kptr_restrict is 1", "sysctl kernel.kptr_restrict=0"),
        )
    return AgentHello(
        protocol=PROTOCOL_VERSION,
        version="0.1.0",
        host=HostFacts(hostname, "6.1.0-18-amd64", "x86_64", "Some CPU @ 3 GHz", 16),
        fitness=found,
        targets=(OfferedTarget("node", ("base", "fat"), has_metrics=True),),
        workloads=(OfferedWorkload("skip-slots", ("base", "fat")),),
        limits=AgentLimits(3600.0, 4999, 2 << 30, 20.0),
        spool=SpoolState(2, 3_500_000, problem),
        clock=ClockOffset(1_204_000_000, 300_000),
    )


def order(job: str, kind: JobKind = JobKind.ATTACH, session: str = "", name: str = "node", round_number: int = 0) -> JobOrder:
    return JobOrder(job, kind, name, "fat", session, "", round_number, window_s=10.0, windows=3)


def fill(aggregator: Aggregator, now_ns: int) -> None:
    """Two agents in order, one that is lost, one of hostile facts; a job in each of several states."""
    aggregator.agents.greet("alpha", hello(), now_ns - 3 * SECOND_NS)
    aggregator.agents.greet("beta", hello("node-2", "the spool is full: 2.0 GB of 2.0 GB"), now_ns - 9 * SECOND_NS)
    aggregator.agents.greet("gone", hello("node-3"), now_ns - 3_600 * SECOND_NS)
    checks = tuple(FitnessCheck(text, text, Fitness.MISSING, text, text, is_fatal=True) for text in HOSTILE)
    aggregator.agents.greet("hostile", hello(MARKUP, QUOTES, checks), now_ns)
    states = (JobState.WAITING, JobState.RUNNING, JobState.DONE, JobState.REFUSED, JobState.LOST)
    for number, state in enumerate(states):
        job = f"job-{state.value}"
        aggregator.jobs.add("alpha", order(job, round_number=number), now_ns - (60 - number) * SECOND_NS)
        if state is not JobState.WAITING:
            report = JobReport(state, f"{state.value} for the test", now_ns - 30 * SECOND_NS)
            aggregator.jobs.report("alpha", job, report, now_ns - SECOND_NS)
    for number, text in enumerate(HOSTILE):
        job = f"hostile-{number}"
        aggregator.jobs.add("hostile", order(job, JobKind.RUN, name=text), now_ns)
        aggregator.jobs.report("hostile", job, JobReport(JobState.FAILED, text), now_ns)


def add_hostile_captures(store: Store, variant: str = "odd") -> str:
    """Two runs whose functions, host and command have hostile names; the session."""
    command = ("epoch", *HOSTILE)
    session = store.begin_session(SessionStart("2026-12-01T10:00:00+00:00", MARKUP, command, 0, has_rounds=True))
    # A slash parts the functions of a stack here.
    names = [text.replace("/", "|") for text in HOSTILE]
    for round_number in range(2):
        info = small_info(variant, round_number, session=session)
        info = replace(info, host=HostFacts(hostname=QUOTES), command=command)
        store.add(small_capture({f"main/{name}": 5 + place for place, name in enumerate(names)}, info))
        store.finish_round(session, round_number)
    store.finish_session(session, SessionState.FINISHED)
    return session


def copy_demo_store(fixtures: Path, directory: Path) -> None:
    """The demonstration's store, with its two programs as if agents had sent them as debug files."""
    shutil.copytree(fixtures / "epoch_demo" / "store", directory)
    build_ids = {run.summary.variant: run.summary.build_id for run in open_store(directory, create=False).runs()}
    for program in ("portable", "sha-ni"):
        target = debug_file(directory, build_ids[program])
        target.parent.mkdir(parents=True)
        shutil.copy(fixtures / "epoch_demo" / program, target)
