"""Eight real processes side by side, four of each build, and a ninth that is excluded: watched from here, and by one agent.

What is expected comes from the published means, scipy, and the processes' own clocks.
"""

from __future__ import annotations

import contextlib
import html
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from profiler.model.capture import Capture
from profiler.model.run import RunMode
from profiler.pipeline import AnalysisOptions, Arm, arm_costs
from profiler.service.access.token_registry import Scope
from profiler.service.aggregator import open_aggregator
from profiler.store.store import Store, open_store
from support import duty_program
from support.agent_process import AgentProcess, agent, write_config
from support.duty_program import PERIOD_MS
from support.published_nodes import PUBLISHED, TREE_MS, Node, running_nodes
from support.served_aggregator import ServedAggregator, served, slotscope, token_of
from symbolize.locate import Locator
from symbolize.symbolizer import Symbolizer

pytestmark = [pytest.mark.perf, pytest.mark.beside, pytest.mark.usefixtures("perf")]

# A third build, measured later beside the second one on other processes.
LATER = {"thin": (8.81, 8.79, 8.86, 8.84), "fat": (8.402, 8.377, 8.391, 8.43)}
EXCLUDED_MS = 30.0
HASH_MS = {"default": 1.5, "thin": 1.0, "fat": 0.75}
WINDOW_S = 2.0
WINDOWS = 2
FREQUENCY_HZ = 997
SKEW_NS = 50_000_000
Means = dict[str, tuple[float, ...]]


@pytest.fixture(autouse=True)
def a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow one leaves out the columns that say how far apart the arms are."""
    monkeypatch.setenv("COLUMNS", "150")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    return duty_program.build(tmp_path_factory.mktemp("node"))


def nodes_of(program: Path, means: Means, ports: Sequence[int] = ()) -> contextlib.AbstractContextManager[list[Node]]:
    """Four of each build, and one more of the second build that is far away from the others."""
    baseline, candidate = means
    arms = [baseline] * 4 + [candidate] * 5
    values = [*means[baseline], *means[candidate], EXCLUDED_MS]
    return running_nodes(program, values, [HASH_MS[arm] for arm in arms], ports)


def plan_text(name: str, means: Means, targets: Sequence[str], settings: str = "") -> str:
    """``targets``: what the plan says of each process beside its name."""
    baseline, candidate = means
    text = f'[experiment]\nname = "{name}"\ndesign = "parallel"\nruns = {WINDOWS}\nwindow = {WINDOW_S}\nprimary = "handling"\n'
    text += f'frequency = {FREQUENCY_HZ}\ncall_graph = "fp"\n{settings}'
    text += '[[metric]]\nname = "handling"\nprometheus = \'handling_seconds{path="/"}\'\n'
    text += '[[metric]]\nname = "hash"\nprometheus = "hash_seconds"\n'
    text += f'[[variant]]\nname = "{baseline}"\n[[variant]]\nname = "{candidate}"\n'
    for number, target in enumerate(targets):
        text += f'[[target]]\nnode = "n{number}"\nvariant = "{baseline if number < 4 else candidate}"\n{target}\n'
        text += "exclude = true\n" if number == 8 else ""
    return text


def log_ratio(baseline: Sequence[float], candidate: Sequence[float]) -> tuple[float, float]:
    """The logarithm of the ratio of two means, and its squared error: of each mean (s / (mean sqrt(n)))^2."""
    parts = [statistics.variance(arm) / len(arm) / statistics.fmean(arm) ** 2 for arm in (baseline, candidate)]
    return math.log(statistics.fmean(candidate) / statistics.fmean(baseline)), sum(parts)


def check_shown(result: dict[str, Any], means: Means) -> None:
    """Of `experiment show --format json`."""
    (first, second) = means.values()
    (candidate,) = result["conditions"][0]["candidates"]
    row = next(metric for metric in candidate["metrics"] if metric["name"] == "handling")
    assert row["values"]["baseline"] == pytest.approx([1e6 * value for value in first], rel=1e-6)
    assert row["values"]["candidate"] == pytest.approx([1e6 * value for value in second], rel=1e-6)
    assert row["instances"] == {"baseline": ["n0", "n1", "n2", "n3"], "candidate": ["n4", "n5", "n6", "n7"]}
    delta = 1e6 * (statistics.fmean(second) - statistics.fmean(first))
    error = 1e6 * math.sqrt(statistics.variance(first) / 4 + statistics.variance(second) / 4)
    welch = stats.ttest_ind(second, first, equal_var=False)
    interval = welch.confidence_interval()
    assert row["delta"] == pytest.approx(delta, rel=1e-4)
    assert row["delta_interval"] == pytest.approx([1e6 * interval.low, 1e6 * interval.high], rel=1e-4)
    assert row["sigma"] == pytest.approx(abs(delta) / error, rel=1e-4)
    assert row["p"] == pytest.approx(welch.pvalue, rel=1e-3)
    assert row["relative"] == pytest.approx(statistics.fmean(second) / statistics.fmean(first) - 1, rel=1e-4)
    assert (candidate["test"], row["verdict"], row["no_overlap"]) == ("Welch t", "faster", max(second) < min(first))
    # Of 70 splits of eight values into four and four, this one and its mirror image are the furthest apart.
    assert row["permutation_p"] == pytest.approx(2 / 70)


def check_texts(texts: Sequence[str], means: Means) -> None:
    """Every process with its value in its unit, how far the arms are apart, and who was left out."""
    (first, second) = means.values()
    error = math.sqrt(statistics.variance(first) / 4 + statistics.variance(second) / 4)
    sigma = abs(statistics.fmean(second) - statistics.fmean(first)) / error
    # The terminal's table has columns for it: sigma, and apart.
    told = rf"{sigma:.1f} standard errors apart, no overlap|handling .* faster <?0\.\d+ {sigma:.1f} .* yes"
    for text in texts:
        plain = " ".join(text.split())
        for number, value in enumerate((*first, *second)):
            assert re.search(rf"\bn{number} {1e3 * value:,.1f}\b", plain), (number, value, plain)
        assert re.search(told, plain), (sigma, plain)
        assert "Welch t" in plain
        assert re.search(r"left out: thin, n8, \d windows: excluded by the plan".replace("thin", list(means)[1]), plain), plain
        assert "30,000.0" not in plain


def check_profiles(captures: Sequence[Capture]) -> None:
    """Each process has the functions' CPU time that its own clock says."""
    assert len(captures) == 8 * WINDOWS
    for number in range(8):
        own = [capture for capture in captures if capture.info.identity.instance == f"n{number}"]
        assert len(own) == WINDOWS
        costs = arm_costs(Arm("node", tuple(own)), AnalysisOptions(dimensions=("function",)), Symbolizer(Locator(), None))
        table = costs.tables["function"]
        sampled = dict(zip(table.labels, table.total_weight.sum(axis=1).tolist(), strict=True))
        periods = sum(capture.info.outcome.wall_ns for capture in own) / 1e6 / PERIOD_MS
        variant = own[0].info.identity.variant
        for name, each_ms in (("hash_part", HASH_MS[variant]), ("tree_part", TREE_MS)):
            expected_ns = periods * each_ms * 1e6
            samples = expected_ns / 1e9 * FREQUENCY_HZ
            # The scatter of a count, two periods at the edges, and what a burst uses more than it was to.
            allowed = 4 * math.sqrt(samples) / samples + 2 / periods + 0.1
            assert sampled[name] == pytest.approx(expected_ns, rel=allowed), (number, name, samples)


def plain_windows(store: Store, session: str) -> list[tuple[int, str]]:
    """Round and process of every window that counts and was not profiled."""
    runs = store.runs(session)
    plain = [run for run in runs if run.summary.mode is RunMode.PLAIN and not run.summary.failure]
    return sorted((run.summary.round, store.load(run).info.identity.instance) for run in plain)


EVERY_WINDOW = [(number, f"n{node}") for number in range(WINDOWS) for node in range(8)]


def check_profiled(store: Store, session: str) -> None:
    captures = [
        store.load(run) for run in store.runs(session) if run.summary.mode is RunMode.PROFILED and not run.summary.failure
    ]
    check_profiles(captures)
    for number in range(WINDOWS):
        # The kernel's clock stamps the samples; every process uses CPU time in every 50 ms.
        first = [int(capture.samples.time_ns.min()) for capture in captures if capture.info.identity.round == number]
        assert max(first) - min(first) < SKEW_NS + 2 * PERIOD_MS * 1_000_000


def as_json(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def page_text(aggregator: ServedAggregator, session: str) -> str:
    """Of the experiment's page, without its markup."""
    with aggregator.client() as client:
        answer = client.get(f"/experiments/{session}", follow_redirects=True)
    assert answer.status_code == 200, answer.text
    return html.unescape(re.sub(r"<[^>]+>", " ", answer.text))


def check_everywhere(store: Path, aggregator: ServedAggregator, session: str, means: Means) -> None:
    check_shown(as_json(slotscope(store, "experiment", "show", session, "--format", "json")), means)
    texts = [slotscope(store, "experiment", "show", session, "--format", format_).stdout for format_ in ("table", "markdown")]
    check_texts([*texts, page_text(aggregator, session)], means)


def test_watched_from_here(program: Path, tmp_path: Path) -> None:
    """Processes of this host in a plan of its own, which are not profiled."""
    plan, store = tmp_path / "plan.toml", tmp_path / "store"
    with nodes_of(program, PUBLISHED) as nodes:
        targets = [f'pid = {node.process.pid}\nmetrics = "{node.metrics}"' for node in nodes]
        plan.write_text(plan_text("devnet", PUBLISHED, targets, 'profile = "none"\n'))
        done = slotscope(store, "experiment", "run", str(plan))
        assert done.returncode == 0, done.stderr
    (session,) = open_store(store, create=False).sessions()
    assert plain_windows(open_store(store, create=False), session.name) == EVERY_WINDOW
    with served(store) as aggregator:
        check_everywhere(store, aggregator, session.name, PUBLISHED)


@dataclass(frozen=True, slots=True)
class OneAgent:
    """An aggregator and one agent that may watch nine processes, by their names."""

    store: Path
    aggregator: ServedAggregator
    agent: AgentProcess
    directory: Path

    def experiment(self, name: str, means: Means) -> str:
        """Its session."""
        plan = self.directory / f"{name}.toml"
        plan.write_text(plan_text(name, means, [f'agent = "host1"\nprocess = "p{number}"' for number in range(9)]))
        words = [
            "experiment",
            "run",
            str(plan),
            "--server",
            self.aggregator.url,
            "--token-file",
            str(self.directory / "operator"),
        ]
        command = [sys.executable, "-m", "profiler.cli.main", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr + self.agent.log.read_text()
        # A machine with nothing to spare makes a round again; what takes too long to be ready would be late in all of them.
        assert "the moment to begin had passed" not in done.stderr, done.stderr
        return open_store(self.store, create=False).sessions()[-1].name


@contextlib.contextmanager
def one_agent(directory: Path, nodes: Sequence[Node]) -> Iterator[OneAgent]:
    """``nodes``: whose names and pages its file has; others may take their place."""
    store = directory / "store"
    with served(store) as aggregator:
        (directory / "operator").touch(mode=0o600)
        (directory / "operator").write_text(token_of(store, "me", Scope.OPERATOR))
        body = "".join(
            f'[[target]]\nname = "p{number}"\ncomm = "^{node.comm}$"\nmetrics = "{node.metrics}"\n'
            for number, node in enumerate(nodes)
        )
        config = write_config(
            directory / "agent", aggregator.url, body, token_of(store, "host1", Scope.AGENT), "cpu_percent = 0"
        )
        it = agent(config).start()
        try:
            it.wait_for_log("slotscope agent")
            _await_hello(store)
            yield OneAgent(store, aggregator, it, directory)
        finally:
            it.stop()


def _await_hello(store: Path) -> None:
    deadline = time.monotonic() + 60
    while not open_aggregator(store, create=False).agents.agents():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.full
@pytest.mark.alone
def test_watched_by_one_agent_and_three_builds(program: Path, tmp_path: Path) -> None:
    """The second build is measured with either of the others; the first and the third were never running together."""
    with nodes_of(program, PUBLISHED) as nodes, one_agent(tmp_path, nodes) as host:
        first = host.experiment("devnet", PUBLISHED)
        check_everywhere(host.store, host.aggregator, first, PUBLISHED)
        store = open_store(host.store, create=False)
        assert plain_windows(store, first) == EVERY_WINDOW
        check_profiled(store, first)
        ports = [node.port for node in nodes]
        for node in nodes:
            node.end()
        with nodes_of(program, LATER, ports):
            second = host.experiment("later", LATER)
        check_everywhere(host.store, host.aggregator, second, LATER)
        check_profiled(store, second)
        check_composed(host.store)


def check_composed(store: Path) -> None:
    words = ("compare", "default", "fat", "--via", "thin")
    document = as_json(slotscope(store, *words, "--format", "json"))
    row = next(metric for metric in document["metrics"] if metric["name"] == "handling")
    legs = [log_ratio(*PUBLISHED.values()), log_ratio(*LATER.values())]
    assert row["first_ratio"] == pytest.approx(math.exp(legs[0][0]), rel=1e-6)
    assert row["second_ratio"] == pytest.approx(math.exp(legs[1][0]), rel=1e-6)
    found = row["composed"]
    assert found["ratio"] == pytest.approx(row["first_ratio"] * row["second_ratio"])
    low, high = map(math.log, found["ratio_interval"])
    assert (low + high) / 2 == pytest.approx(legs[0][0] + legs[1][0], rel=1e-4)
    # Half the interval is t times the error; with 3 to 12 degrees of freedom t is between these two.
    error = math.sqrt(legs[0][1] + legs[1][1])
    assert stats.t.ppf(0.975, 12) * error <= (high - low) / 2 <= stats.t.ppf(0.975, 3) * error
    assert found["verdict"] == "faster"
    for format_ in ("table", "markdown"):
        text = slotscope(store, *words, "--format", format_).stdout
        line = next(line for line in text.splitlines() if line.lstrip("| ").startswith("handling"))
        assert line.count("*") == 4, line
        assert "composed: no run shows it" in text
