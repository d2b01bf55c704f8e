"""One aggregator and its agents, each on a network namespace of its own, with TLS between them."""

from __future__ import annotations

import itertools
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from profiler.experiment.plan.plan_check_services import CPU_TIME_METRIC
from profiler.model.capture import Capture
from profiler.model.run import RunMode
from support import duty_program
from support.host_fleet import Fleet, counting_captures, host_fleet
from support.network_hosts import why_not
from support.window_starts import clock_skew_ms, sample_skew_ms, told, window_starts

pytestmark = [pytest.mark.perf, pytest.mark.usefixtures("perf")]

WINDOW_S = 2.0
# So often that the first sample of a window is taken soon after its beginning.
PERIOD_MS, FREQUENCY_HZ = 2, 1999
HASH_MS = {"base": 0.12, "fast": 0.08}
TREE_MS = 0.06
SKEW_MS = 50.0


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    if why_not():
        pytest.skip(why_not())
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")


@dataclass(slots=True)
class Nodes:
    """The processes that are profiled; one per host, named NODE-VARIANT."""

    directory: Path
    running: list[subprocess.Popen[bytes]]

    def start(self, node: str, variant: str) -> int:
        program = self.directory / f"{node}-{variant}"
        if not program.exists():
            program.symlink_to(self.directory / "duty")
        self.running.append(subprocess.Popen([program, str(HASH_MS[variant]), str(TREE_MS), str(PERIOD_MS)]))
        return self.running[-1].pid


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    duty_program.build(tmp_path)
    made = Nodes(tmp_path, [])
    yield made
    for process in made.running:
        process.kill()
        process.wait()


def target(node: str) -> str:
    return f'[[target]]\nname = "node"\ncomm = "^{node}-(base|fast)$"\n'


def parallel_plan(path: Path, arms: dict[str, str], runs: int) -> Path:
    text = f'[experiment]\nname = "devnet"\ndesign = "parallel"\nruns = {runs}\nwindow = "{WINDOW_S:g} s"\n'
    text += (
        f'frequency = {FREQUENCY_HZ}\nretries = 6\ncall_graph = "fp"\n[[variant]]\nname = "base"\n[[variant]]\nname = "fast"\n'
    )
    for node, variant in arms.items():
        text += f'[[target]]\nvariant = "{variant}"\nagent = "{node}"\nprocess = "node"\n'
    path.write_text(text)
    return path


def check_cpu_times(captures: list[Capture]) -> None:
    """The program's own clock says what it uses: a period at either edge, and what waking up costs beside."""
    for capture in captures:
        variant = capture.info.identity.variant
        asked_ns = duty_program.cpu_ns(HASH_MS[variant], TREE_MS, WINDOW_S, PERIOD_MS)
        one_period_ns = (HASH_MS[variant] + TREE_MS) * 1e6
        outcome = capture.info.outcome
        told_ns = [metric.value for metric in outcome.metrics if metric.name == CPU_TIME_METRIC]
        used_ns = told_ns[0] if told_ns else outcome.user_ns + outcome.system_ns
        assert used_ns == pytest.approx(asked_ns, abs=0.06 * asked_ns + one_period_ns + 10e6), capture.info.identity


def gap_ms(capture: Capture) -> float:
    return duty_program.longest_gap_ms(HASH_MS[capture.info.identity.variant] + TREE_MS, PERIOD_MS, FREQUENCY_HZ)


def check_starts(fleet: Fleet) -> None:
    """Of every turn, and against clocks that the agents had no part in: theirs are seconds wrong."""
    turns = window_starts(fleet.store, gap_ms)
    for (_, mode), starts in turns.items():
        assert len(starts) == 6
        assert clock_skew_ms(starts) < SKEW_MS, told(turns)
        if mode is RunMode.PROFILED:
            assert sample_skew_ms(starts) < SKEW_MS, told(turns)


def test_three_hosts_against_three_with_clocks_that_are_seconds_apart(nodes: Nodes, tmp_path: Path) -> None:
    arms = {f"{variant[0]}{number}": variant for variant in ("base", "fast") for number in (1, 2, 3)}
    with host_fleet(tmp_path, {node: target(node) for node in arms}) as fleet:
        fleet.serve()
        for number, (node, variant) in enumerate(arms.items()):
            nodes.start(node, variant)
            fleet.agents[node].shift.write_text(str((number - 1) * 7_300_000_000))
            fleet.agents[node].start()
        fleet.wait_for_hosts(list(arms))
        done = fleet.ask("experiment", "run", str(parallel_plan(tmp_path / "plan.toml", arms, 2)), seconds=240)
        assert done.returncode == 0, done.stdout + done.stderr
        rounds = counting_captures(fleet)
        print(told(window_starts(fleet.store, gap_ms)))
        both = itertools.product((0, 1), (RunMode.PLAIN, RunMode.PROFILED))
        assert {key: len(captures) for key, captures in rounds.items()} == dict.fromkeys(both, 6)
        check_starts(fleet)
        for captures in rounds.values():
            check_cpu_times(captures)
            assert {capture.info.identity.instance for capture in captures} == set(arms)
            assert {capture.info.host.hostname for capture in captures} == set(arms)
        comparison = fleet.json_of("compare", "base", "fast", "--by", "function")
        (candidate,) = comparison["candidates"]  # type: ignore[misc]
        values = {row["name"]: row["values"] for row in candidate["rows"]}
        found = statistics.mean(values["hash_part"]["candidate"]) / statistics.mean(values["hash_part"]["baseline"])
        assert found == pytest.approx(HASH_MS["fast"] / HASH_MS["base"], rel=0.2)
        assert len(values["hash_part"]["baseline"]) == len(values["hash_part"]["candidate"]) == 3
        secrets = [(tmp_path / "operator").read_text().strip()] + [
            (agent.directory / "token").read_text().strip() for agent in fleet.agents.values()
        ]
        logs = (tmp_path / "server.log").read_text() + "".join(agent.log for agent in fleet.agents.values())
        assert "Traceback" not in logs
        assert not [secret for secret in secrets if secret in logs]
