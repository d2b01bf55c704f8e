"""An aggregator with TLS and agents, each on a host of its own (a network namespace), as people would set them up."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trustme

from profiler.model.capture import Capture
from profiler.model.run import RunMode
from profiler.service.access.token_registry import Scope
from profiler.store.store import open_store
from support import served_aggregator
from support.agent_process import ROOT
from support.network_hosts import NetworkHost, network_hosts

PORT = 8640
PROXY_PORT = 8641
SLOTSCOPE = (sys.executable, "-m", "profiler.cli.main")
_MORTAL = (sys.executable, str(ROOT / "tests/support/mortal.py"))
# Agents ask again at once; perf is attached well within that.
LEAD_S = 6.0
_ENVIRONMENT = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}


@dataclass(frozen=True, slots=True)
class Death:
    """Before the line of this number that is run of a function, "part of a path:name"; see ``mortal``."""

    line: int
    function: str

    @property
    def environment(self) -> dict[str, str]:
        return {"DIES_AT": str(self.line), "DIES_IN": self.function}


@dataclass(slots=True)
class HostedAgent:
    """``shift``: file with the ns by which its wall clock is wrong.  ``inside``: what its command is run by."""

    host: NetworkHost
    directory: Path
    process: subprocess.Popen[bytes] | None = None
    inside: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.host.namespace.rpartition("-")[2]

    @property
    def shift(self) -> Path:
        return self.directory / "shift"

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text()

    @property
    def spool(self) -> Path:
        return self.directory / "spool"

    def start(self, death: Death | None = None) -> None:
        environment = {**os.environ, **_ENVIRONMENT, "SHIFT_FILE": str(self.shift)} | (death.environment if death else {})
        config = str(self.directory / "agent.toml")
        command = self.host.command(*self.inside, *_MORTAL, "agent", "--config", config)
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            # Or before it listens to signals.
            assert self.process.wait(90) in (0, -signal.SIGTERM), self.log


@dataclass(slots=True)
class Fleet:
    """``server``, ``operator``: the aggregator's host, and that of whoever asks it.  ``inside``: what the server's command is
    run by."""

    directory: Path
    server: NetworkHost
    operator: NetworkHost
    agents: dict[str, HostedAgent]
    process: subprocess.Popen[bytes] | None = None
    url: str = field(default="")
    inside: tuple[str, ...] = ()

    @property
    def store(self) -> Path:
        return self.directory / "store"

    @property
    def server_log(self) -> str:
        return (self.directory / "server.log").read_text()

    def serve(self, death: Death | None = None, lead_s: float = LEAD_S) -> None:
        options = ["--host", self.server.address, "--port", str(PORT), "--round-lead", f"{lead_s:g}"]
        tls = ["--tls-cert", str(self.directory / "cert.pem"), "--tls-key", str(self.directory / "key.pem")]
        command = self.server.command(*self.inside, *_MORTAL, "--store", str(self.store), "serve", *options, *tls)
        environment = {**os.environ, **_ENVIRONMENT} | (death.environment if death else {})
        with (self.directory / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        self.url = f"https://{self.server.address}:{PORT}"

    def kill_server(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill_server()

    def command(self, *arguments: str) -> list[str]:
        """`slotscope` on the operator's host, asking the aggregator."""
        asked = ["--server", self.url, "--token-file", str(self.directory / "operator"), "--ca", str(self.directory / "ca.pem")]
        return self.operator.command(*SLOTSCOPE, *arguments, *asked)

    def ask(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env={**os.environ, **_ENVIRONMENT},
        )

    def wait_for_hosts(self, names: Sequence[str], seconds: float = 240) -> None:
        deadline = time.monotonic() + seconds
        while True:
            shown = self.ask("hosts")
            lines = [line for line in shown.stdout.splitlines() if re.search(r"\bready\b", line)]
            if {name for name in names if any(re.search(rf"\b{name}\b", line) for line in lines)} == set(names):
                return
            assert time.monotonic() < deadline, shown.stdout + shown.stderr + "".join(a.log for a in self.agents.values())
            time.sleep(0.5)

    def on_this_machine(self, *arguments: str) -> str:
        """`slotscope` on the aggregator's own store."""
        done = served_aggregator.slotscope(self.store, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json_of(self, *arguments: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.on_this_machine(*arguments, "--format", "json"))
        return found


@contextlib.contextmanager
def host_fleet(directory: Path, bodies: dict[str, str], port: int = PORT) -> Iterator[Fleet]:
    """Everything set up, nothing started but what the caller starts; ended at the end.

    ``bodies``: per agent the targets and workloads of its agent.toml.  ``port``: the one agents are told, where it is not the
    aggregator's own (``PROXY_PORT`` of a proxy on its host).
    """
    with network_hosts("server", "operator", *bodies) as (at, operator, *others):
        authority = trustme.CA()
        authority.cert_pem.write_to_path(directory / "ca.pem")
        certificate = authority.issue_cert(at.address)
        certificate.private_key_pem.write_to_path(directory / "key.pem")
        (directory / "cert.pem").write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
        fleet = Fleet(directory, at, operator, {})
        _write_secret(directory / "operator", served_aggregator.token_of(fleet.store, "me", Scope.OPERATOR))
        for host, (name, body) in zip(others, bodies.items(), strict=True):
            fleet.agents[name] = _agent(fleet, host, name, body, f"https://{at.address}:{port}")
        with contextlib.ExitStack() as ends:
            ends.callback(fleet.end)
            for agent in fleet.agents.values():
                ends.callback(agent.end)
            yield fleet


def _agent(fleet: Fleet, host: NetworkHost, name: str, body: str, server: str) -> HostedAgent:
    agent = HostedAgent(host, fleet.directory / name)
    agent.directory.mkdir()
    agent.shift.write_text("0")
    _write_secret(agent.directory / "token", served_aggregator.token_of(fleet.store, name, Scope.AGENT))
    (agent.directory / "agent.toml").write_text(
        f'server = "{server}"\nca = "{fleet.directory / "ca.pem"}"\ntoken_file = "token"\nspool = "spool"\n'
        f"[limits]\ncpu_percent = 0\n{body}"
    )
    return agent


def _write_secret(path: Path, secret: str) -> None:
    path.touch(mode=0o600)
    path.write_text(secret + "\n")


def counting_captures(fleet: Fleet) -> dict[tuple[int, RunMode], list[Capture]]:
    """Those that count, of all nodes, by round and kind of window."""
    store = open_store(fleet.store, create=False)
    found: dict[tuple[int, RunMode], list[Capture]] = defaultdict(list)
    for run in store.runs():
        if not run.summary.failure:
            capture = store.load(run)
            found[capture.info.identity.round, capture.info.identity.mode].append(capture)
    return found
