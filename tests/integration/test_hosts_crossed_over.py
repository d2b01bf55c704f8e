"""Eight hosts, four of either variant at once, and then the other way round, with clocks that are seconds apart."""

from __future__ import annotations

import itertools
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.experiment.plan.plan_check_services import CPU_TIME_METRIC
from profiler.model.capture import Capture
from profiler.model.run import RunMode
from profiler.store.store import open_store
from support import duty_program
from support.host_fleet import Fleet, counting_captures, host_fleet
from support.hosted_nodes import HostedNodes, NodeCosts, hosted_nodes
from support.network_hosts import why_not
from support.window_starts import clock_skew_ms, sample_skew_ms, told, window_starts

pytestmark = [pytest.mark.perf, pytest.mark.full, pytest.mark.usefixtures("perf")]

NODES = tuple(f"n{number}" for number in range(1, 9))
# So often that the first sample of a window is taken soon after its beginning.
PERIOD_MS, FREQUENCY_HZ = 2, 1999
# Every node is another one, and gains something else from the swap.
COSTS = {
    node: NodeCosts({"base": 0.12 + 0.01 * number, "fast": 0.06 + 0.005 * number}, 0.03, PERIOD_MS)
    for number, node in enumerate(NODES)
}
CLOCKS_S = (0.0, -7.3, 11.9, 3600.0, -0.4, 2.5, -90.0, 5.1)
RUNS, WINDOW_S = 2, 2.0
SKEW_MS = 50.0


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[HostedNodes]:
    if why_not():
        pytest.skip(why_not())
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    made = hosted_nodes(tmp_path)
    yield made
    made.end()


def plan(path: Path) -> Path:
    text = f'[experiment]\nname = "devnet"\ndesign = "crossover"\nruns = {RUNS}\nwindow = "{WINDOW_S:g} s"\n'
    text += f"frequency = {FREQUENCY_HZ}\n"
    text += 'call_graph = "fp"\nsettle = "1 s"\nretries = 4\n[[variant]]\nname = "base"\n[[variant]]\nname = "fast"\n'
    for node, variant in itertools.product(NODES, ("base", "fast")):
        text += f'[[target]]\nvariant = "{variant}"\nagent = "{node}"\nprocess = "node"\n'
    path.write_text(text)
    return path


def check_arms(captures: list[Capture]) -> None:
    """All eight at once, four of either variant, each process really the one that it is said to be."""
    assert sorted(capture.info.identity.instance for capture in captures) == sorted(NODES)
    assert [capture.info.identity.variant for capture in captures].count("base") == 4
    for capture in captures:
        assert capture.info.host.hostname == capture.info.identity.instance


def check_cpu_time(capture: Capture) -> None:
    """By the kernel's account of the process; a period more or less at either edge, what perf's interrupts cost, and what a
    node that had to wait for a CPU makes up for in another window."""
    identity, outcome = capture.info.identity, capture.info.outcome
    asked_ns = COSTS[identity.instance].cpu_ns(identity.variant, WINDOW_S)
    told_ns = [metric.value for metric in outcome.metrics if metric.name == CPU_TIME_METRIC]
    used_ns = told_ns[0] if told_ns else outcome.user_ns + outcome.system_ns
    assert used_ns == pytest.approx(asked_ns, abs=0.25 * asked_ns + 12e6), identity


def gap_ms(capture: Capture) -> float:
    costs, variant = COSTS[capture.info.identity.instance], capture.info.identity.variant
    return duty_program.longest_gap_ms(costs.hash_ms[variant] + costs.tree_ms, PERIOD_MS, FREQUENCY_HZ)


def check_starts(fleet: Fleet) -> None:
    """Of every turn, and against clocks that the agents had no part in: theirs are up to an hour wrong."""
    turns = window_starts(fleet.store, gap_ms)
    for (_, mode), starts in turns.items():
        assert len(starts) == 8
        assert clock_skew_ms(starts) < SKEW_MS, told(turns)
        if mode is RunMode.PROFILED:
            assert sample_skew_ms(starts) < SKEW_MS, told(turns)


def check_result(fleet: Fleet, session: str) -> None:
    """Every node's own values, whichever half it had first."""
    result = fleet.json_of("experiment", "show", session)
    (candidate,) = result["conditions"][0]["candidates"]  # type: ignore[index]
    times = next(metric for metric in candidate["metrics"] if metric["name"] == CPU_TIME_METRIC)
    assert times["instances"]["baseline"] == times["instances"]["candidate"]
    assert sorted(times["instances"]["baseline"]) == sorted(NODES)
    gains = []
    for node, *found in zip(
        times["instances"]["baseline"], times["values"]["baseline"], times["values"]["candidate"], strict=True
    ):
        asked = [COSTS[node].cpu_ns(variant, WINDOW_S) for variant in ("base", "fast")]
        assert found == [pytest.approx(each, abs=0.2 * each + 12e6) for each in asked]
        gains.append((asked[1] - asked[0], found[1] - found[0]))
    assert times["verdict"] == "faster"
    assert times["delta"] == pytest.approx(statistics.fmean(asked for asked, _ in gains), rel=0.1)
    # The node that gains most and the one that gains least differ by half of what the latter gains.
    assert statistics.correlation(*zip(*gains, strict=True)) > 0.8
    print(candidate["test"], "gains asked and found, ms:", [tuple(round(value / 1e6, 1) for value in gain) for gain in gains])
    print("rows", {row["name"]: (row["delta"], row["verdict"]) for row in candidate["rows"]})


def test_eight_hosts_are_swapped_and_each_is_its_own_pair(nodes: HostedNodes, tmp_path: Path) -> None:
    with host_fleet(tmp_path, {node: nodes.target(node) for node in NODES}) as fleet:
        fleet.serve(lead_s=8)
        for number, node in enumerate(NODES):
            nodes.start(node, "base" if number % 2 else "fast", COSTS[node])
            fleet.agents[node].shift.write_text(str(round(CLOCKS_S[number] * 1e9)))
            fleet.agents[node].start()
        fleet.wait_for_hosts(NODES)
        done = fleet.ask("experiment", "run", str(plan(tmp_path / "plan.toml")), seconds=400)
        assert done.returncode == 0, done.stdout + done.stderr
        rounds = counting_captures(fleet)
        print(told(window_starts(fleet.store, gap_ms)))
        both = itertools.product(range(2 * RUNS), (RunMode.PLAIN, RunMode.PROFILED))
        assert {key: len(captures) for key, captures in rounds.items()} == dict.fromkeys(both, 8)
        check_starts(fleet)
        for captures in rounds.values():
            check_arms(captures)
            for capture in captures:
                check_cpu_time(capture)
        for node in NODES:
            halves = [
                {
                    c.info.identity.variant
                    for key in rounds
                    for c in rounds[key]
                    if key[0] // RUNS == half and c.info.identity.instance == node
                }
                for half in (0, 1)
            ]
            assert halves in ([{"base"}, {"fast"}], [{"fast"}, {"base"}])
        check_result(fleet, done.stdout.split()[1].rstrip(":"))
        failed = [run.summary.failure for run in open_store(fleet.store, create=False).runs() if run.summary.failure]
        print("failed", failed, done.stdout)
        assert "Traceback" not in fleet.server_log + "".join(agent.log for agent in fleet.agents.values())
