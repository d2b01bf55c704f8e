"""Agents and their aggregator, killed with SIGKILL at random points of capture, spool, upload and commit, while jobs go on."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from profiler.protocol.job import JobKind, JobOrder
from profiler.service.agent_registry import KnownAgent
from profiler.service.aggregator import Aggregator, open_aggregator
from profiler.service.single_jobs import order_single_job
from support import duty_program
from support.host_fleet import Death, Fleet, HostedAgent, host_fleet
from support.network_hosts import why_not
from support.spool_watch import watched

pytestmark = [pytest.mark.perf, pytest.mark.usefixtures("perf")]

HOSTS = ("h1", "h2")
QUICK, FULL = 20, 200
# Counted from when it is up: whoever was not killed before is then, wherever it is.
LONGEST_LIFE_S = {"server": 12.0, "h1": 12.0, "h2": 12.0}
# On a busy machine it takes that long until one is.
UP_WITHIN_S = 60.0
# Where captures change hands, and the last line that is counted there: of the first captures of a life.
AGENT_PLACES = {"agent/upload_queue": 60, "agent/spool.py": 200, "agent/running_jobs": 150, "agent/report_delivery": 60}
SERVER_PLACES = {
    "ingest/commitment": 80,
    "ingest/reception": 120,
    "store/store.py": 50,
    "store/blobs": 50,
    "ingest/upload_records": 100,
}
# The guards ask what an agent had started for its end, and 2 s later they end it.
GONE_S = 15.0
CONVERGED_S = 150.0
WORKLOAD = """
[[target]]
name = "node"
pid = {pid}
[[workload]]
name = "load"
command = ["{{binary}}", "-c", "for i in 1 2 3 4 5; do /bin/echo $i; done"]
variants = {{ base = "/bin/sh" }}
"""
# (kind, target or workload, captures of a whole job, under perf)
JOBS = [
    *[(JobKind.RUN, "load", 6, False)] * 3,
    (JobKind.ATTACH, "node", 2, False),
    (JobKind.RUN, "load", 1, True),
    (JobKind.ATTACH, "node", 1, True),
]


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    if why_not():
        pytest.skip(why_not())
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")


@dataclass(slots=True)
class Mortal:
    """An agent or the aggregator.  ``lives_s``: until it is killed from here, counted from when it says ``first_words`` in its
    log, or from its start when it is to die young.  ``since_s``: of either, CLOCK_MONOTONIC."""

    name: str
    start: Callable[[Death | None], None]
    process: Callable[[], subprocess.Popen[bytes] | None]
    log: Path
    first_words: bytes
    places: dict[str, int]
    lives_s: float = 0.0
    since_s: float = 0.0
    log_begins: int = 0
    is_counted: bool = False
    deaths: Counter[str] = field(default_factory=Counter)

    def revive(self, generator: random.Random) -> None:
        """For a life that ends at a random line, or at a random moment, which may lie in a system call."""
        is_at_line, dies_young = generator.random() < 0.6, generator.random() < 0.1
        place, last = generator.choice(list(self.places.items()))
        self.log_begins = self.log.stat().st_size if self.log.exists() else 0
        self.start(Death(generator.randrange(1, last), (place,)) if is_at_line else None)
        self.lives_s = LONGEST_LIFE_S[self.name] * (1.0 if is_at_line else generator.uniform(0.1, 1.0))
        self.since_s, self.is_counted = time.monotonic(), dies_young

    def is_due(self) -> bool:
        if not self.is_counted and self.first_words in self.log.read_bytes()[self.log_begins :]:
            self.since_s, self.is_counted = time.monotonic(), True
        assert self.is_counted or time.monotonic() < self.since_s + UP_WITHIN_S, self.log.read_text()[-3000:]
        return self.is_counted and time.monotonic() > self.since_s + self.lives_s

    @property
    def exit_code(self) -> int | None:
        process = self.process()
        assert process is not None
        return process.poll()


@dataclass(slots=True)
class Trials:
    fleet: Fleet
    aggregator: Aggregator
    generator: random.Random
    ordered: dict[str, int] = field(default_factory=dict)

    def mortals(self) -> list[Mortal]:
        fleet = self.fleet
        agents = [
            Mortal(
                each.name,
                each.start,
                partial(getattr, each, "process"),
                each.directory / "log",
                b"slotscope agent",
                AGENT_PLACES,
            )
            for each in fleet.agents.values()
        ]
        server = partial(getattr, fleet, "process")
        return [*agents, Mortal("server", fleet.serve, server, fleet.directory / "server.log", b"serving ", SERVER_PLACES)]

    def feed(self) -> None:
        """Every agent has a job more than it does now."""
        for name in HOSTS:
            known = next((agent for agent in self.aggregator.agents.agents() if agent.name == name), None)
            while known is not None and len(self.aggregator.jobs.jobs(agent=name, only_open=True)) < 3:
                self._order(known)

    def _order(self, agent: KnownAgent) -> None:
        kind, name, count, is_profiled = self.generator.choice(JOBS)
        times = {"windows": count, "window_s": 1.0} if kind is JobKind.ATTACH else {"runs": count}
        order = JobOrder("", kind, name, "base", "", agent.name, 0, is_profiled=is_profiled, call_graph="none", **times)  # type: ignore[arg-type]
        self.ordered[order_single_job(self.aggregator, agent, order).order.id] = count

    def run(self, deaths: int) -> Counter[str]:
        """So many; how often which of them died of what.  Everybody lives at the end."""
        mortals = self.mortals()
        for mortal in mortals:
            mortal.revive(self.generator)
        fed_s = 0.0
        while sum(mortal.deaths.total() for mortal in mortals) < deaths:
            time.sleep(0.02)
            if time.monotonic() > fed_s + 0.5:
                fed_s = time.monotonic()
                self.feed()
            for mortal in mortals:
                if self._has_died(mortal):
                    mortal.revive(self.generator)
        for mortal in mortals:
            if mortal.exit_code is None:
                self._kill(mortal)
            mortal.start(None)
        return Counter({f"{mortal.name} at a {why}": count for mortal in mortals for why, count in mortal.deaths.items()})

    def _has_died(self, mortal: Mortal) -> bool:
        code = mortal.exit_code
        if code is None and not mortal.is_due():
            return False
        if code is None:
            self._kill(mortal)
        assert code in (None, -signal.SIGKILL), f"{mortal.name} ended by itself: {mortal.log.read_text()[-3000:]}"
        mortal.deaths["moment" if code is None else "line"] += 1
        if mortal.name in self.fleet.agents:
            nothing_outlives(self.fleet.agents[mortal.name])
        return True

    def _kill(self, mortal: Mortal) -> None:
        if mortal.name == "server":
            self.fleet.kill_server()
        else:
            self.fleet.agents[mortal.name].kill()


def nothing_outlives(agent: HostedAgent) -> None:
    deadline = time.monotonic() + GONE_S
    while left := agent.host.processes():
        assert time.monotonic() < deadline, f"outlived agent {agent.name}: {left}"
        time.sleep(0.05)


def final_reports(store: Path) -> dict[str, dict[str, object]]:
    """By job; only of jobs that are over."""
    with sqlite3.connect(f"file:{store / 'service.sqlite'}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT id, report FROM jobs WHERE NOT is_open").fetchall()
    return {job: json.loads(report) for job, report in rows}


def catalog_rows(store: Path) -> list[tuple[str, str, int]]:
    """(origin, session, position) of every run."""
    with sqlite3.connect(f"file:{store / 'catalog.sqlite'}?mode=ro", uri=True) as connection:
        return connection.execute("SELECT origin, session, position FROM runs").fetchall()


def wait_until_nothing_is_left(fleet: Fleet, jobs: set[str]) -> None:
    deadline = time.monotonic() + CONVERGED_S
    spools = [agent.spool for agent in fleet.agents.values()]
    while jobs - final_reports(fleet.store).keys() or any(list(spool.glob("store/captures/*/*.capture")) for spool in spools):
        logs = "".join(agent.log[-2000:] for agent in fleet.agents.values()) + fleet.server_log[-2000:]
        assert time.monotonic() < deadline, f"open: {jobs - final_reports(fleet.store).keys()}\n{logs}"
        time.sleep(0.2)


def check_reports(reports: dict[str, dict[str, object]], ordered: dict[str, int]) -> None:
    for job, report in reports.items():
        captures, detail = report["captures"], str(report["detail"])
        assert isinstance(captures, list)
        if report["state"] == "done":
            assert len(captures) == ordered[job], report
        else:
            assert (report["state"], detail.partition(" while")[0]) == ("failed", "the agent ended"), report
            assert len(captures) <= ordered[job], report


@pytest.mark.parametrize("trials", [QUICK, pytest.param(FULL, marks=pytest.mark.full)])
def test_every_capture_that_was_finished_arrives_once_whoever_is_killed(tmp_path: Path, trials: int) -> None:
    duty_program.build(tmp_path)
    node = subprocess.Popen([tmp_path / "duty", "1", "1"])
    try:
        with host_fleet(tmp_path, dict.fromkeys(HOSTS, WORKLOAD.format(pid=node.pid))) as fleet:
            run = Trials(fleet, open_aggregator(fleet.store, create=False), random.Random(trials))
            with watched([agent.spool for agent in fleet.agents.values()]) as watch:
                died = run.run(trials)
                wait_until_nothing_is_left(fleet, set(run.ordered))
            reports, rows = final_reports(fleet.store), catalog_rows(fleet.store)
            print(f"deaths {dict(died)}; jobs {Counter(str(r['state']) for r in reports.values())}; captures {len(rows)}")
            check_reports(reports, run.ordered)
            finished = set(watch.seen) | {sha for report in reports.values() for sha in report["captures"]}  # type: ignore[attr-defined]
            assert Counter(origin for origin, _, _ in rows) == Counter(finished)
            assert len({(session, position) for _, session, position in rows}) == len(rows)
            for agent in fleet.agents.values():
                assert list(agent.spool.glob("refused/*")) == []
                assert "Traceback" not in agent.log
            assert "Traceback" not in fleet.server_log
            store = open_aggregator(fleet.store, create=False).store
            assert all(store.load(stored).info.identity.session == stored.key.session for stored in store.runs())
    finally:
        node.kill()
        node.wait()
