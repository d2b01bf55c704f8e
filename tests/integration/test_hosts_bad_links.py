"""Links that are slow, break, hold everything back or are down for a while, between agents and their aggregator."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from profiler.protocol.clock import ClockOffset
from profiler.service.aggregator import open_aggregator
from profiler.store.store import open_store
from support import aggregator_files, duty_program, network_hosts
from support.bad_link import bad_link
from support.host_fleet import PORT, PROXY_PORT, Fleet, host_fleet
from support.ordering import order, origins, wait_for, wait_until_final, watch_order
from support.spool_watch import watched

pytestmark = [pytest.mark.perf, pytest.mark.full]

SHIFTS_S = {"h1": -4.5, "h2": 62.0}
DELAY_S = 0.15
# A node may begin so much from the instant, beyond what its clock may be wrong by.
SKEW_NS = 50_000_000


@pytest.fixture
def node(tmp_path: Path) -> Iterator[str]:
    """A target of agent.toml."""
    if network_hosts.why_not():
        pytest.skip(network_hosts.why_not())
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    with subprocess.Popen([duty_program.build(tmp_path), "1", "1"]) as process:
        yield f'[[target]]\nname = "node"\npid = {process.pid}\n'
        process.kill()


def clock_of(fleet: Fleet, name: str) -> ClockOffset:
    (known,) = [agent for agent in open_aggregator(fleet.store, create=False).agents.agents() if agent.name == name]
    assert known.hello.clock is not None
    return known.hello.clock


def logs(fleet: Fleet) -> str:
    return "".join(agent.log for agent in fleet.agents.values()) + fleet.server_log


def check_beginnings(fleet: Fleet, start_at_ns: int, most_ns: int) -> None:
    """By the one clock that all have, which nothing shifts for ``datetime``."""
    store = open_store(fleet.store, create=False)
    for run in store.runs():
        begun_ns = datetime.fromisoformat(store.load(run).info.started_at).timestamp() * 1e9
        assert abs(begun_ns - start_at_ns) <= most_ns


def test_the_clocks_error_grows_with_the_delay_and_everything_arrives(node: str, tmp_path: Path) -> None:
    with host_fleet(tmp_path, dict.fromkeys(SHIFTS_S, node), PROXY_PORT) as fleet:
        spools = [agent.spool for agent in fleet.agents.values()]
        with bad_link(fleet.server, PROXY_PORT, PORT) as link, watched(spools) as watch:
            fleet.serve()
            for name, agent in fleet.agents.items():
                agent.shift.write_text(str(round(SHIFTS_S[name] * 1e9)))
            fleet.agents["h1"].start()
            fleet.wait_for_hosts(["h1"])
            link.does(f"delay {DELAY_S}")
            fleet.agents["h2"].start()
            fleet.wait_for_hosts(["h1", "h2"])
            clocks = {name: clock_of(fleet, name) for name in fleet.agents}
            for name, clock in clocks.items():
                assert abs(clock.offset_ns + SHIFTS_S[name] * 1e9) <= clock.error_ns + 1e6, (name, clock)
            # A round trip has the delay twice, and half of it is the error.
            assert clocks["h2"].error_ns >= DELAY_S * 1e9
            start_at_ns = time.time_ns() + 15_000_000_000
            jobs = [order(fleet.store, name, watch_order(start_at_ns=start_at_ns)) for name in fleet.agents]
            reports = wait_until_final(fleet.store, jobs, 90)
            assert [(report.state, len(report.captures)) for report in reports] == [("done", 1)] * 2, reports
            wait_for(lambda: len(origins(fleet.store)) == 2, 60, lambda: logs(fleet))
            assert origins(fleet.store) == sorted(watch.seen)
            assert clocks["h1"].error_ns < clocks["h2"].error_ns
            check_beginnings(fleet, start_at_ns, round(SKEW_NS + 2 * DELAY_S * 1e9))
            print(clocks)
            link.does("pass")


def test_what_breaks_stalls_or_is_unplugged_in_an_upload_arrives_once(node: str, tmp_path: Path) -> None:
    with host_fleet(tmp_path, {"h1": node}, PROXY_PORT) as fleet:
        agent = fleet.agents["h1"]
        with bad_link(fleet.server, PROXY_PORT, PORT) as link, watched([agent.spool]) as watch:
            fleet.serve()
            agent.start()
            fleet.wait_for_hosts(["h1"])
            first = order(fleet.store, "h1", watch_order(windows=3))
            wait_for(lambda: "taken" in agent.log, 30, lambda: logs(fleet))
            # A handshake and a request pass, and of a capture (5 kB) the first part.
            link.does("cut 4000")
            wait_for(lambda: len(watch.seen) == 3 and "trying again" in agent.log, 60, lambda: logs(fleet))
            time.sleep(2)
            assert len(origins(fleet.store)) < 3
            link.does("hold")
            time.sleep(3)
            link.does("pass")
            wait_for(lambda: len(origins(fleet.store)) == 3, 90, lambda: logs(fleet))
            link.does("delay 0.4")
            second = order(fleet.store, "h1", watch_order(windows=2))
            wait_for(lambda: len(watch.seen) == 4, 60, lambda: logs(fleet))
            agent.host.unplug()
            time.sleep(5)
            agent.host.plug_in()
            link.does("pass")
            reports = wait_until_final(fleet.store, [first, second], 120)
            assert [(report.state, len(report.captures)) for report in reports] == [("done", 3), ("done", 2)], reports
            wait_for(lambda: len(origins(fleet.store)) == 5, 90, lambda: logs(fleet))
            assert origins(fleet.store) == sorted(watch.seen)
            fleet.wait_for_hosts(["h1"])
        assert "Traceback" not in logs(fleet)


def plan(path: Path, hosts: list[str]) -> Path:
    text = '[experiment]\nname = "devnet"\ndesign = "crossover"\nruns = 1\nprofile = "none"\nretries = 3\ntimeout = "20 s"\n'
    text += '[[variant]]\nname = "base"\n[[variant]]\nname = "fast"\n'
    for host, variant in itertools.product(hosts, ("base", "fast")):
        text += f'[[target]]\nvariant = "{variant}"\nagent = "{host}"\nworkload = "nap"\n'
    path.write_text(text)
    return path


NAP = """
[[workload]]
name = "nap"
command = ["{binary}", "-c", "sleep 6"]
variants = { base = "/bin/sh", fast = "/bin/sh" }
"""


def wait_for_running(fleet: Fleet, name: str, so_many: int) -> None:
    """The agent is in its run of that number."""

    def is_running() -> bool:
        begun = [job for job in aggregator_files.jobs(fleet.store).values() if job.agent == name and job.begun_at_ns]
        return len(begun) >= so_many and begun[-1].state == "running"

    wait_for(is_running, 150, lambda: logs(fleet))


def test_a_host_that_is_lost_in_a_round_makes_it_be_made_again(node: str, tmp_path: Path) -> None:
    nodes = ["h1", "h2", "h3"]
    with host_fleet(tmp_path, dict.fromkeys(nodes, node + NAP)) as fleet:
        fleet.serve()
        for agent in fleet.agents.values():
            agent.start()
        fleet.wait_for_hosts(nodes)
        command = fleet.command("experiment", "run", str(plan(tmp_path / "plan.toml", nodes)))
        with watched([agent.spool for agent in fleet.agents.values()]) as watch:
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as following:
                wait_for_running(fleet, "h1", 1)
                fleet.agents["h1"].host.unplug()
                time.sleep(8)
                fleet.agents["h1"].host.plug_in()
                wait_for_running(fleet, "h2", 2)
                fleet.agents["h2"].host.unplug()
                # An agent is lost after three hellos' time.
                wait_for(
                    lambda: "lost" in [job.state for job in aggregator_files.jobs(fleet.store).values()],
                    90,
                    lambda: logs(fleet),
                )
                fleet.agents["h2"].host.plug_in()
                said, _ = following.communicate(timeout=300)
            assert following.returncode == 0, said + logs(fleet)
            wait_for(lambda: set(watch.seen) <= set(origins(fleet.store)), 90, lambda: logs(fleet))
        runs = open_store(fleet.store, create=False).runs()
        counting = Counter((run.summary.hostname, run.summary.round) for run in runs if not run.summary.failure)
        assert counting == Counter({(name, number): 1 for name in nodes for number in (0, 1)})
        failures = [(run.summary.hostname, run.summary.round, run.summary.failure) for run in runs if run.summary.failure]
        print(failures, said)
        # The short loss is none: only the round of the host that fell silent was made again, for all.
        assert {number for _, number, _ in failures} == {1}
        assert any("h2" in why and "has not been heard" in why for _, _, why in failures)
        assert {name for name, _, _ in failures} == set(nodes)
        announced = [sha for job in aggregator_files.jobs(fleet.store).values() for sha in job.captures]
        assert len(announced) == len(set(announced))
        assert {*announced, *watch.seen} <= set(origins(fleet.store))
        assert len(origins(fleet.store)) == len(set(origins(fleet.store)))
