"""Agents and their aggregator, killed with SIGKILL at random points of capture, spool, upload and commit, while jobs go on."""

from __future__ import annotations

import itertools
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from profiler.protocol.job import JobKind, JobOrder
from profiler.service.agents.agent_registry import KnownAgent
from profiler.service.aggregator import Aggregator, open_aggregator
from profiler.service.jobs.single_jobs import order_single_job
from profiler.store.store import open_store
from support import aggregator_files, duty_program
from support.agent_process import ROOT
from support.host_fleet import Death, Fleet, HostedAgent, host_fleet
from support.network_hosts import why_not
from support.ordering import FINAL, wait_for
from support.spool_watch import watched

pytestmark = [pytest.mark.perf, pytest.mark.usefixtures("perf")]

HOSTS = ("h1", "h2")
QUICK, FULL = 20, 200
# Counted from when it is up: whoever was not killed before is then, wherever it is.
LONGEST_LIFE_S = {"server": 12.0, "h1": 12.0, "h2": 12.0}
# On a busy machine it takes that long until one is.
UP_WITHIN_S = 180.0
# Where captures change hands, and how many lines a call or two runs there.
AGENT_PLACES = {
    "collectors/agent/spool/spool.py:_add": 12,
    "collectors/agent/upload/upload_queue.py:upload": 16,
    "collectors/agent/upload/upload_queue.py:_send": 16,
    "collectors/agent/spool/spool.py:committed": 4,
    "collectors/agent/spool/spool.py:clean": 60,
    "collectors/agent/connection/report_delivery.py:deliver": 60,
    "collectors/agent/jobs/running_jobs.py:_finish": 24,
    "collectors/agent/jobs/running_jobs.py:_final": 6,
}
SERVER_PLACES = {
    "profiler/service/ingest/reception.py:offer_upload": 16,
    "profiler/service/ingest/reception.py:receive_chunk": 40,
    "profiler/service/ingest/partial_files.py:append": 20,
    "profiler/service/ingest/commitment.py:commit_upload": 20,
    "profiler/service/ingest/commitment.py:_file_capture": 32,
    "profiler/store/store.py:add": 40,
    "profiler/store/blobs.py:put": 20,
    "profiler/service/jobs/sqlite_jobs.py:report": 40,
}
# The guards ask what an agent had started for its end, and 2 s later they end it.
GONE_S = 15.0
CONVERGED_S = 240.0
WORKLOAD = """
[[target]]
name = "node"
pid = {pid}
[[workload]]
name = "load"
command = ["{{binary}}", "-c", "for i in 1 2 3 4 5; do /bin/echo $i; done"]
variants = {{ base = "/bin/sh", other = "/bin/sh" }}
"""
# (kind, target or workload, captures of a whole job, under perf)
JOBS = [
    *[(JobKind.RUN, "load", 6, False)] * 3,
    (JobKind.ATTACH, "node", 2, False),
    (JobKind.RUN, "load", 1, True),
    (JobKind.ATTACH, "node", 1, True),
]


@dataclass(slots=True)
class Mortal:
    """An agent or the aggregator.  ``lives_s``: until it is killed from here, counted from when it says ``first_words`` in its
    log, or from its start when it is to die young.  ``since_s``: of either, CLOCK_MONOTONIC."""

    name: str
    start: Callable[[Death | None], None]
    process: Callable[[], subprocess.Popen[bytes] | None]
    log: Path
    first_words: bytes
    places: Iterator[tuple[str, int]]
    lives_s: float = 0.0
    since_s: float = 0.0
    log_begins: int = 0
    is_counted: bool = False
    deaths: Counter[str] = field(default_factory=Counter)

    def revive(self, generator: random.Random) -> None:
        """For a life that ends at a random line, or at a random moment, which may lie in a system call."""
        is_at_line, dies_young = generator.random() < 0.6, generator.random() < 0.1
        function, last = next(self.places)
        self.log_begins = self.log.stat().st_size if self.log.exists() else 0
        self.start(Death(generator.randint(1, last), function) if is_at_line else None)
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
        agent_places, server_places = (in_turns(places, self.generator) for places in (AGENT_PLACES, SERVER_PLACES))
        agents = [
            Mortal(
                each.name,
                each.start,
                partial(getattr, each, "process"),
                each.directory / "log",
                b"slotscope agent",
                agent_places,
            )
            for each in fleet.agents.values()
        ]
        server = partial(getattr, fleet, "process")
        return [*agents, Mortal("server", fleet.serve, server, fleet.directory / "server.log", b"serving ", server_places)]

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


def in_turns(places: dict[str, int], generator: random.Random) -> Iterator[tuple[str, int]]:
    """Each of them once before any comes again."""
    while True:
        yield from generator.sample(list(places.items()), len(places))


def nothing_outlives(agent: HostedAgent) -> None:
    deadline = time.monotonic() + GONE_S
    while left := agent.host.processes():
        assert time.monotonic() < deadline, f"outlived agent {agent.name}: {left}"
        time.sleep(0.05)


def wait_until_nothing_is_left(fleet: Fleet, ordered: Collection[str]) -> None:
    def is_everything_done() -> bool:
        jobs = aggregator_files.jobs(fleet.store)
        spools = [agent.spool for agent in fleet.agents.values()]
        return all(jobs[job].state in FINAL for job in ordered) and not any(
            list(spool.glob("store/captures/*/*.capture")) for spool in spools
        )

    wait_for(is_everything_done, CONVERGED_S, lambda: logs(fleet))


def logs(fleet: Fleet) -> str:
    return "".join(agent.log[-3000:] for agent in fleet.agents.values()) + fleet.server_log[-3000:]


def check_reports(jobs: dict[str, aggregator_files.JobRow], ordered: dict[str, int]) -> None:
    assert jobs.keys() == ordered.keys()
    for identifier, job in jobs.items():
        if job.state == "done":
            assert len(job.captures) == ordered[identifier], job
            continue
        assert job.state == "failed", job
        # A host that stood still is late for a window.
        if "windows do not count" in job.detail:
            assert len(job.captures) == ordered[identifier], job
        else:
            assert "the agent ended while the job was under way" in job.detail, job
            assert len(job.captures) <= ordered[identifier], job


def story(fleet: Fleet, captures: Collection[str]) -> str:
    """What was logged of them."""
    lines = [line for log in (*(agent.log for agent in fleet.agents.values()), fleet.server_log) for line in log.splitlines()]
    return "\n".join(line for line in lines if any(sha256[:12] in line for sha256 in captures))


def check_store(fleet: Fleet, finished: Collection[str]) -> None:
    """Each of these is one run of its job's session, and nothing else is there."""
    runs = aggregator_files.runs(fleet.store)
    origins = Counter(run.origin for run in runs)
    assert origins == Counter(finished), story(fleet, set(origins) ^ set(finished))
    assert len({(run.session, run.position) for run in runs}) == len(runs)
    store = open_store(fleet.store, create=False)
    assert all(store.load(run).info.identity.session == run.key.session for run in store.runs())


@pytest.fixture
def node(tmp_path: Path) -> Iterator[int]:
    """The process that is watched."""
    if why_not():
        pytest.skip(why_not())
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    with subprocess.Popen([duty_program.build(tmp_path), "1", "1"]) as process:
        yield process.pid
        process.kill()


@pytest.mark.parametrize("place", [*AGENT_PLACES, *SERVER_PLACES])
def test_the_places_of_death_are_there(place: str) -> None:
    path, _, function = place.partition(":")
    assert f"def {function}(" in (ROOT / path).read_text()


@pytest.mark.parametrize("trials", [QUICK, pytest.param(FULL, marks=pytest.mark.full)])
def test_every_capture_that_was_finished_arrives_once_whoever_is_killed(node: int, tmp_path: Path, trials: int) -> None:
    with host_fleet(tmp_path, dict.fromkeys(HOSTS, WORKLOAD.format(pid=node))) as fleet:
        run = Trials(fleet, open_aggregator(fleet.store, create=False), random.Random(trials))
        with watched([agent.spool for agent in fleet.agents.values()]) as watch:
            died = run.run(trials)
            wait_until_nothing_is_left(fleet, run.ordered)
        jobs = aggregator_files.jobs(fleet.store)
        announced = {sha for job in jobs.values() for sha in job.captures}
        print(f"{dict(died)}; jobs {Counter(job.state for job in jobs.values())}; captures {len(announced)}")
        check_reports(jobs, run.ordered)
        for agent in fleet.agents.values():
            refused = [path.stem for path in agent.spool.glob("refused/*")]
            assert not refused, story(fleet, refused)
            assert "Traceback" not in agent.log
        check_store(fleet, announced | watch.seen.keys())
        # It tells of what it did not expect on one line.
        assert " ERROR " not in fleet.server_log


@pytest.mark.full
def test_an_experiment_goes_on_after_every_death_of_its_aggregator(node: int, tmp_path: Path) -> None:
    generator, hosts = random.Random(1), ("h1", "h2", "h3")
    plan = tmp_path / "plan.toml"
    text = '[experiment]\nname = "killed"\ndesign = "crossover"\nprofile = "none"\nruns = 2\nretries = 12\ntimeout = "20 s"\n'
    text += '[[variant]]\nname = "base"\n[[variant]]\nname = "other"\n'
    for host, variant in itertools.product(hosts, ("base", "other")):
        text += f'[[target]]\nvariant = "{variant}"\nagent = "{host}"\nworkload = "load"\n'
    plan.write_text(text)
    with host_fleet(tmp_path, dict.fromkeys(hosts, WORKLOAD.format(pid=node))) as fleet:
        fleet.serve(lead_s=4)
        for agent in fleet.agents.values():
            agent.start()
        fleet.wait_for_hosts(hosts)
        command = fleet.command("experiment", "run", str(plan))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as following:
            for number in range(1, 4):
                # Each time in another round, or in the one that the last death spoiled.
                wait_for(lambda number=number: len(aggregator_files.jobs(fleet.store)) >= 3 * number, 90, lambda: logs(fleet))
                time.sleep(generator.uniform(0.0, 6.0))
                fleet.kill_server()
                fleet.serve(lead_s=4)
            said, _ = following.communicate(timeout=180)
        assert following.returncode == 0, said + logs(fleet)
        runs = open_store(fleet.store, create=False).runs()
        counting = Counter((run.summary.hostname, run.summary.round) for run in runs if not run.summary.failure)
        assert counting == Counter({(host, number): 1 for host in hosts for number in range(4)}), said
        print(Counter(run.summary.failure for run in runs if run.summary.failure))
        wait_until_nothing_is_left(fleet, aggregator_files.jobs(fleet.store).keys())
        announced = [sha for job in aggregator_files.jobs(fleet.store).values() for sha in job.captures]
        origins = [run.origin for run in aggregator_files.runs(fleet.store)]
        assert len(origins) == len(set(origins))
        assert set(announced) <= set(origins)
