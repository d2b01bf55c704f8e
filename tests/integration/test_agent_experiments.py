"""Experiments over agents with a real aggregator: submitted by the command, carried out by scripted agents, shown."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from scipy import stats

from profiler.model.capture import Capture
from profiler.model.run import HostFacts, Metric, RunIdentity, RunMode
from profiler.protocol.hello import OfferedTarget
from profiler.protocol.job import JobOrder
from profiler.service.access.token_registry import Scope, Token, digest_of, new_secret
from profiler.service.aggregator import open_aggregator
from support.scripted_agent import ScriptedAgent
from support.simulated_agents import hello
from support.small_captures import small_capture, small_info

# Samples of 1 ms in every window of the node.
COSTS = {"b1": 100, "b2": 110, "b3": 120, "f1": 60, "f2": 70, "f3": 80}
LATE_NS = 80_000_000


def plan_text(nodes: list[str]) -> str:
    text = '[experiment]\nname = "devnet"\ndesign = "parallel"\nruns = 2\nwindow = "1 s"\nfrequency = 1000\nprimary = "work"\n'
    text += '[[variant]]\nname = "base"\n[[variant]]\nname = "fat"\n[[metric]]\nname = "work"\nprometheus = "work_seconds"\n'
    for node in nodes:
        variant = "base" if node.startswith("b") else "fat"
        text += f'[[target]]\nvariant = "{variant}"\nagent = "{node}"\nprocess = "node"\n'
    return text


def capture_of(order: JobOrder, host: str) -> Capture:
    """What the node of this name uses: in the second round 2 ms more, and as its metric a tenth of that."""
    used = COSTS[order.instance] + 2 * order.round
    mode = RunMode.PROFILED if order.is_profiled else RunMode.PLAIN
    info = small_info("whatever", mode=mode)
    # Two windows never are the same bytes.
    info = replace(
        info,
        identity=RunIdentity("agent", "whatever", 0, mode),
        host=HostFacts(hostname=host),
        started_at=f"2026-12-01T00:00:{order.round:02d}.{order.start_at_ns % 1000:03d}+00:00",
        command=("node", order.id),
        outcome=replace(info.outcome, wall_ns=1_000_000_000, metrics=(Metric("work", used / 10, "ns", (used / 10,)),)),
    )
    return small_capture({"main/hash": used} if order.is_profiled else {}, info)


@dataclass(slots=True)
class Server:
    store: Path
    port: int = 0
    process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [*slotscope(), "--store", str(self.store), "serve", "--port", str(self.port), "--round-lead", "1.5"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert found, "the aggregator does not say where it listens"
        self.port = int(found[1])

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def slotscope() -> list[str]:
    return [sys.executable, "-m", "profiler.cli.main"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "store")
    made.start()
    yield made
    made.kill()


def token(server: Server, name: str, scope: Scope) -> str:
    secret = new_secret()
    assert open_aggregator(server.store, create=False).tokens.add(Token(name, scope, 1), digest_of(secret))
    return secret


def await_hellos(server: Server) -> None:
    registry, deadline = open_aggregator(server.store, create=False).agents, time.monotonic() + 60
    while {known.name for known in registry.agents()} != set(COSTS):
        assert time.monotonic() < deadline, registry.agents()
        time.sleep(0.05)


@contextlib.contextmanager
def agents(server: Server, late: dict[str, int]) -> Iterator[dict[str, ScriptedAgent]]:
    """One per node; the job of that number of a node in ``late`` begins too late."""
    made: dict[str, ScriptedAgent] = {}
    for node in COSTS:
        said = hello([OfferedTarget("node", has_metrics=True)], host=f"host-{node}")

        def late_ns(order: JobOrder, node: str = node) -> int:
            return LATE_NS if late.get(node) == len(made[node].done) else 1_000_000

        def capture(order: JobOrder, node: str = node) -> Capture:
            return capture_of(order, f"host-{node}")

        made[node] = ScriptedAgent(server.url, token(server, node, Scope.AGENT), said, capture, late_ns)
    try:
        for agent in made.values():
            agent.start()
        await_hellos(server)
        yield made
    finally:
        for agent in made.values():
            agent.stop()


def command(server: Server, tmp_path: Path, *arguments: str) -> list[str]:
    options = ["--server", server.url, "--token-file", str(tmp_path / "operator")]
    return [*slotscope(), "experiment", *arguments, *options]


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=os.getcwd())


def test_from_the_plan_to_the_result(server: Server, tmp_path: Path) -> None:
    (tmp_path / "operator").touch(mode=0o600)
    (tmp_path / "operator").write_text(token(server, "me", Scope.OPERATOR))
    plan = tmp_path / "devnet.toml"
    plan.write_text(plan_text(list(COSTS)))
    refused = run(command(server, tmp_path, "run", str(plan)))
    assert refused.returncode == 2
    assert "devnet.toml:17: no agent 'b1' has said hello" in refused.stderr
    here = run([*slotscope(), "--store", str(tmp_path / "elsewhere"), "experiment", "run", str(plan)])
    assert (here.returncode, "--server URL" in here.stderr) == (2, True)

    with agents(server, late={"f2": 1}):
        following = subprocess.Popen(
            command(server, tmp_path, "run", str(plan)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert following.stderr is not None
        seen = []
        for line in following.stderr:
            seen.append(line)
            if "measures" in line:
                break
        server.kill()
        server.start()
        out, errors = following.communicate(timeout=120)
        assert following.returncode == 0, errors
    session = re.search(r"session (\S+): `slotscope experiment show", out)
    assert session, out
    assert "round 1 of 2" in "".join(seen) + errors
    check_result(server, tmp_path, session[1])


def check_result(server: Server, tmp_path: Path, session: str) -> None:
    shown = run(command(server, tmp_path, "show", session, "--format", "json"))
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)
    (candidate,) = result["conditions"][0]["candidates"]
    # A node's windows are averaged: its cost in the first round and 2 ms more in the second.
    base, fat = ([(COSTS[node] + 1) * 1_000_000 for node in COSTS if node[0] == arm] for arm in "bf")
    assert candidate["total"]["values"] == {"baseline": base, "candidate": fat}
    assert candidate["total"]["delta"] == statistics.fmean(fat) - statistics.fmean(base)
    assert candidate["total"]["p"] == pytest.approx(stats.ttest_ind(fat, base, equal_var=False).pvalue)
    work = next(metric for metric in candidate["metrics"] if metric["name"] == "work")
    assert work["values"]["baseline"] == [pytest.approx((COSTS[node] + 1) / 10) for node in ("b1", "b2", "b3")]
    assert work["instances"]["candidate"] == ["f1", "f2", "f3"]

    runs = open_aggregator(server.store, create=False).store.runs(session)
    good = sorted(
        (run.summary.variant, run.summary.hostname, run.summary.mode, run.summary.round)
        for run in runs
        if not run.summary.failure
    )
    assert len(good) == len(set(good)) == 6 * 2 * 2, "six nodes, two rounds, plain and profiled"
    reasons = {run.summary.failure for run in runs if run.summary.failure}
    assert any("began 80 ms too late" in reason for reason in reasons), reasons
    markdown = run_markdown(server, tmp_path, session)
    assert "devnet" in markdown
    assert "began 80 ms too late" in markdown


def run_markdown(server: Server, tmp_path: Path, session: str) -> str:
    shown = run(command(server, tmp_path, "show", session))
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def test_cancelled(server: Server, tmp_path: Path) -> None:
    (tmp_path / "operator").touch(mode=0o600)
    (tmp_path / "operator").write_text(token(server, "me", Scope.OPERATOR))
    plan = tmp_path / "devnet.toml"
    plan.write_text(plan_text(list(COSTS)).replace('"1 s"', '"100 s"'))
    with agents(server, late={}):
        following = subprocess.Popen(
            command(server, tmp_path, "run", str(plan)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert following.stderr is not None
        first = next(line for line in following.stderr if "measures" in line)
        session = first.split()[1]
        following.send_signal(signal.SIGINT)
        _, errors = following.communicate(timeout=30)
        assert following.returncode == 130
        assert f"experiment watch {session} --server {server.url}" in errors
        assert f"experiment cancel {session} --server {server.url}" in errors
        assert run(command(server, tmp_path, "cancel", session)).returncode == 0
        watched = run(command(server, tmp_path, "watch", session))
    assert (watched.returncode, "cancelled" in watched.stderr) == (1, True)
    states = {job.report.state for job in open_aggregator(server.store, create=False).jobs.jobs(session)}
    assert states == {"cancelled"}


def commands_in(text: str) -> list[list[str]]:
    """Every command of slotscope that a text advises: between backticks, or a line of its own."""
    found = re.findall(r"`(slotscope [^`\n]+)`|^(slotscope .+)$|: (slotscope show \S+?)\)?$", text, re.MULTILINE)
    return [shlex.split(next(filter(None, groups))) for groups in found]


def begun(advice: list[str], server: Server, tmp_path: Path) -> subprocess.Popen[str]:
    """As somebody types it where the plan is, who knows the aggregator's address and has a token; commands without one are for
    the aggregator's host."""
    words = [server.url if word == "URL" else word for word in advice[1:]]
    environment = {**os.environ, "SLOTSCOPE_TOKEN_FILE": str(tmp_path / "operator"), "SLOTSCOPE_STORE": str(server.store)}
    pipe = subprocess.PIPE
    return subprocess.Popen([*slotscope(), *words], stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=environment)


def carried_out(advice: list[str], server: Server, tmp_path: Path) -> tuple[int, str, str]:
    """Exit code, output, messages."""
    process = begun(advice, server, tmp_path)
    out, errors = process.communicate(timeout=120)
    return process.returncode, out, errors


def session_of(following: subprocess.Popen[str]) -> str:
    assert following.stderr is not None
    return next(line for line in following.stderr if line.startswith("session")).split()[1]


def left_alone(following: subprocess.Popen[str]) -> list[list[str]]:
    """The commands that are told when somebody stops following."""
    following.send_signal(signal.SIGINT)
    _, errors = following.communicate(timeout=30)
    return commands_in(errors.replace("look at it: ", "\n").replace("end it: ", "\n"))


def test_every_command_that_is_advised_works(server: Server, tmp_path: Path) -> None:
    """Before there is anything to show, when it is finished, and of one that was cancelled."""
    (tmp_path / "operator").touch(mode=0o600)
    (tmp_path / "operator").write_text(token(server, "me", Scope.OPERATOR))
    (tmp_path / "my devnet.toml").write_text(plan_text(list(COSTS)))
    _, _, refused = carried_out(["slotscope", "experiment", "run", "my devnet.toml"], server, tmp_path)
    (submit,) = commands_in(refused)
    assert submit == ["slotscope", "experiment", "run", "my devnet.toml", "--server", "URL"]
    with agents(server, late={"f2": 1}):
        following = begun(submit, server, tmp_path)
        session = session_of(following)
        early = run(command(server, tmp_path, "show", session))
        (watch,) = commands_in(early.stderr)
        assert watch == ["slotscope", "experiment", "watch", session, "--server", "URL"]
        code, watched, errors = carried_out(watch, server, tmp_path)
        out, _ = following.communicate(timeout=120)
        assert (code, following.returncode) == (0, 0), errors
        (show,) = commands_in(watched)
        assert [show] == commands_in(out)
        code, shown, errors = carried_out(show, server, tmp_path)
        assert code == 0, errors
        advised = commands_in(shown)
        assert submit in advised
        assert ["slotscope", "show", session] in advised, "why windows were left out"
        for advice in advised:
            if advice != submit:
                assert carried_out(advice, server, tmp_path)[0] == 0, advice
        check_cancelled(server, tmp_path, submit)


def check_cancelled(server: Server, tmp_path: Path, submit: list[str]) -> None:
    """Nothing was measured; the way out is the plan, submitted anew."""
    following = begun(submit, server, tmp_path)
    session = session_of(following)
    watch, cancel = left_alone(following)
    assert carried_out(cancel, server, tmp_path)[0] == 0
    assert "cancelled" in carried_out(watch, server, tmp_path)[2]
    ended = run(command(server, tmp_path, "show", session))
    assert commands_in(ended.stderr) == [submit]
    again = begun(submit, server, tmp_path)
    assert session_of(again) != session
    left_alone(again)
