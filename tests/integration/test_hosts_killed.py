"""Agents and their aggregator, killed with SIGKILL at random points of capture, spool, upload and commit, while jobs go on."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
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
# A process that was not killed by then, counted from its start, is killed wherever it is.
LONGEST_LIFE_S = 7.0
# Where captures change hands, and the last line that is counted there; one capture runs through some dozens.
AGENT_PLACES = {"agent/upload_queue": 150, "agent/spool.py": 600, "agent/running_jobs": 300, "agent/report_delivery": 80}
SERVER_PLACES = {"ingest/commitment": 200, "ingest/reception": 200, "store/store.py": 300, "store/blobs": 150, "ingest/upload_records": 300}
# The guards ask what an agent had started for its end, and 2 s later they end it.
GONE_S = 15.0
CONVERGED_S = 150.0
WORKLOAD = """
[[target]]
name = "node"
pid = {pid}
[[workload]]
name = "load"
command = ["{{binary}}", "-c", "for i in 1 2 3 4 5; do /bin/echo $i; done; sleep 0.2"]
variants = {{ base = "/bin/sh" }}
"""
# (kind, target or workload, captures of a whole job, under perf)
JOBS = [
    (JobKind.RUN, "load", 3, False),
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
    """An agent or the aggregator.  ``dies_at_s``: CLOCK_MONOTONIC, by a signal from here unless it did before."""

    name: str
    start: Callable[[Death | None], None]
    process: Callable[[], object]
    places: dict[str, int]
    dies_at_s: float = 0.0
    deaths: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Trials:
    fleet: Fleet
    aggregator: Aggregator
    generator: random.Random
    ordered: dict[str, int] = field(default_factory=dict)
    feeds: bool = True

    def mortals(self) -> list[Mortal]:
        agents = [
            Mortal(agent.name, agent.start, lambda agent=agent: agent.process, AGENT_PLACES)
            for agent in self.fleet.agents.values()
        ]
        return [*agents, Mortal("server", self.fleet.serve, lambda: self.fleet.process, SERVER_PLACES)]

    def revive(self, mortal: Mortal) -> None:
        """For a life that ends at a random line, or at a random moment, which may lie in a system call."""
        at_line = self.generator.random() < 0.7
        place, last = self.generator.choice(list(mortal.places.items()))
        death = Death(self.generator.randrange(1, last), (place,)) if at_line else None
        lives_s = LONGEST_LIFE_S if at_line else self.generator.uniform(2.0, LONGEST_LIFE_S)
        mortal.start(death)
        mortal.dies_at_s = time.monotonic() + lives_s

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
        """So many; how often which of them died of what."""
        mortals = self.mortals()
        for mortal in mortals:
            self.revive(mortal)
        fed_s = 0.0
        while sum(mortal.deaths.total() for mortal in mortals) < deaths:
            time.sleep(0.02)
            if time.monotonic() > fed_s + 0.5:
                fed_s = time.monotonic()
                self.feed()
            for mortal in mortals:
                if self._has_died(mortal):
                    self.revive(mortal)
        for mortal in mortals:
            if mortal.process().poll() is None:  # type: ignore[attr-defined]
                self._kill(mortal)
            mortal.start(None)
        return sum((Counter({(f"{m.name} {why}"): n for why, n in m.deaths.items()}) for m in mortals), Counter())

    def _has_died(self, mortal: Mortal) -> bool:
        code = mortal.process().poll()  # type: ignore[attr-defined]
        if code is None and time.monotonic() < mortal.dies_at_s:
            return False
        if code is None:
            self._kill(mortal)
        else:
            assert code == -9, f"{mortal.name} ended by itself: {self._log(mortal.name)[-3000:]}"
        mortal.deaths["moment" if code is None else "line"] += 1
        if mortal.name in self.fleet.agents:
            nothing_outlives(self.fleet.agents[mortal.name])
        return True

    def _kill(self, mortal: Mortal) -> None:
        self.fleet.kill_server() if mortal.name == "server" else self.fleet.agents[mortal.name].kill()

    def _log(self, name: str) -> str:
        return self.fleet.server_log if name == "server" else self.fleet.agents[name].log


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
    import subprocess

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
            assert {sha for sha in watch.seen} <= {origin for origin, _, _ in rows}
            for agent in fleet.agents.values():
                assert list(agent.spool.glob("refused/*")) == []
                assert "Traceback" not in agent.log
            assert "Traceback" not in fleet.server_log
            store = open_aggregator(fleet.store, create=False).store
            assert all(store.load(stored).info.identity.session == stored.key.session for stored in store.runs())
    finally:
        node.kill()
        node.wait()
