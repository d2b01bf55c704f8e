"""The disk of an agent's spool is full, or that of the aggregator's store, or the aggregator is gone for a minute."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import aggregator_files, duty_program, network_hosts, small_disk
from support.host_fleet import host_fleet
from support.ordering import order, origins, wait_for, wait_until_final, watch_order
from support.spool_watch import watched

pytestmark = [pytest.mark.perf, pytest.mark.full]

# Agent and aggregator leave 64 MiB free.
DISK_BYTES = 80 << 20
LITTLE_BYTES = 10 << 20


@pytest.fixture
def node(tmp_path: Path) -> Iterator[str]:
    """A target of agent.toml."""
    if network_hosts.why_not() or small_disk.why_not():
        pytest.skip(network_hosts.why_not() or small_disk.why_not())
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    with subprocess.Popen([duty_program.build(tmp_path), "1", "1"]) as process:
        yield f'[[target]]\nname = "node"\npid = {process.pid}\n'
        process.kill()


def test_a_spool_whose_disk_is_full_ends_its_job_says_so_and_heals(node: str, tmp_path: Path) -> None:
    with host_fleet(tmp_path, {"h1": node}) as fleet:
        agent = fleet.agents["h1"]
        agent.spool.mkdir()
        fleet.serve()
        with small_disk.small_disk(agent.spool, DISK_BYTES) as disk, watched([disk.seen]) as watch:
            agent.inside = disk.inside
            agent.start()
            fleet.wait_for_hosts(["h1"])
            first = order(fleet.store, "h1", watch_order(windows=600))
            wait_for(lambda: origins(fleet.store), 60, lambda: agent.log)
            disk.fill(leaving_bytes=0)
            wait_for(lambda: "no job is taken: the spool's disk is full: 0 MiB are free" in agent.log, 60, lambda: agent.log)
            wait_for(lambda: "the spool's disk is full" in fleet.ask("hosts").stdout, 60, lambda: fleet.ask("hosts").stdout)
            second = order(fleet.store, "h1", watch_order(windows=2))
            time.sleep(5)  # asked for every second
            assert aggregator_files.jobs(fleet.store)[second].state == "waiting"
            disk.empty()
            ended, done = wait_until_final(fleet.store, [first, second], 90)
            assert "jobs are taken again" in agent.log
            assert (ended.state, done.state) == ("failed", "done")
            assert "No space left" in ended.detail or "the spool's disk is full" in ended.detail, ended
            assert len(done.captures) == 2
            wait_for(lambda: set(watch.seen) <= set(origins(fleet.store)), 60, lambda: agent.log)
            assert origins(fleet.store) == sorted({*watch.seen, *ended.captures, *done.captures})
            fleet.wait_for_hosts(["h1"])
            agent.end()
        print(ended, agent.log)
        assert "Traceback" not in agent.log


def test_an_aggregator_whose_disk_is_full_says_so_and_gets_everything_when_there_is_room(node: str, tmp_path: Path) -> None:
    with host_fleet(tmp_path, {"h1": node}) as fleet, contextlib.ExitStack() as mounted:
        agent = fleet.agents["h1"]
        shutil.copytree(fleet.store, tmp_path / "before")
        disk = mounted.enter_context(small_disk.visible_disk(fleet.store, DISK_BYTES))
        shutil.copytree(tmp_path / "before", disk.seen, dirs_exist_ok=True)
        fleet.serve()
        with watched([agent.spool]) as watch:
            agent.start()
            fleet.wait_for_hosts(["h1"])
            job = order(disk.seen, "h1", watch_order(windows=40))
            wait_for(lambda: origins(disk.seen), 60, lambda: agent.log)
            disk.fill(leaving_bytes=LITTLE_BYTES)
            wait_for(lambda: "no room" in agent.log, 60, lambda: agent.log)
            shown = fleet.ask("hosts")
            assert shown.returncode == 0, shown.stderr
            disk.fill(leaving_bytes=0)
            held, arrived = len(watch.seen), len(origins(disk.seen))
            wait_for(lambda: len(watch.seen) > held + 5, 60, lambda: agent.log)
            assert len(origins(disk.seen)) == arrived
            asked = fleet.ask("hosts")
            assert "Traceback" not in asked.stderr
            assert len(asked.stderr.splitlines()) <= 1
            disk.empty()
            (done,) = wait_until_final(disk.seen, [job], 240)
            assert (done.state, len(done.captures)) == ("done", 40), done
            wait_for(lambda: len(origins(disk.seen)) == 40, 240, lambda: agent.log)
            assert origins(disk.seen) == sorted(done.captures)
            assert set(watch.seen) <= set(done.captures)
            fleet.wait_for_hosts(["h1"])
        print(fleet.server_log, agent.log, asked, shown.stdout)
        agent.end()
        fleet.kill_server()


def test_an_aggregator_that_is_gone_for_a_minute_gets_everything(node: str, tmp_path: Path) -> None:
    with host_fleet(tmp_path, {"h1": node, "h2": node}) as fleet:
        fleet.serve()
        with watched([agent.spool for agent in fleet.agents.values()]) as watch:
            for agent in fleet.agents.values():
                agent.start()
            fleet.wait_for_hosts(["h1", "h2"])
            jobs = [order(fleet.store, name, watch_order(windows=20)) for name in fleet.agents]
            wait_for(lambda: origins(fleet.store), 60, lambda: fleet.server_log)
            fleet.kill_server()
            time.sleep(60)
            assert len(watch.seen) == 40, "both have gone on without it"
            for agent in fleet.agents.values():
                assert "trying again" in agent.log
            fleet.serve()
            reports = wait_until_final(fleet.store, jobs, 180)
            assert [(report.state, len(report.captures)) for report in reports] == [("done", 20)] * 2
            wait_for(lambda: len(origins(fleet.store)) == 40, 180, lambda: fleet.agents["h1"].log)
            assert origins(fleet.store) == sorted(watch.seen)
            fleet.wait_for_hosts(["h1", "h2"])
