"""The aggregator as a process of its own, on a port of loopback that the kernel chooses.

As a program, `served_aggregator.py STORE SETTINGS` does what `slotscope serve` does, with other settings (JSON).
"""

from __future__ import annotations

import json
import resource
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from profiler.codec.json_values import from_json, to_json
from profiler.service.access.token_registry import Scope, Token, digest_of, new_secret
from profiler.service.aggregator import open_aggregator
from profiler.service.api.settings import ServiceSettings

_SERVE = (sys.executable, "-m", "profiler.cli.main", "--store")
ENDS_WITHIN_S = 30


@dataclass
class ServedAggregator:
    """``log``: what it wrote on standard error.  ``trusted``: False where it speaks plain HTTP."""

    process: subprocess.Popen[str]
    url: str
    log: Path
    trusted: ssl.SSLContext | bool = False

    def client(self, secret: str = "") -> httpx.Client:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return httpx.Client(base_url=self.url, headers=headers, verify=self.trusted, trust_env=False, timeout=60)

    def ended_by(self, number: signal.Signals) -> int:
        """The exit code."""
        self.process.send_signal(number)
        return self.process.wait(ENDS_WITHIN_S)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.partition("://")[2].rpartition(":")
        return host, int(port)

    @property
    def peak_bytes(self) -> int:
        """Of memory that it ever held, by the kernel."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024


@contextmanager
def served(store: Path, *options: str, trusted: ssl.SSLContext | bool = False) -> Iterator[ServedAggregator]:
    """`slotscope serve` with these options."""
    with _running([*_SERVE, str(store), "serve", "--port", "0", *options], store, trusted) as aggregator:
        yield aggregator


@contextmanager
def served_with(store: Path, settings: ServiceSettings) -> Iterator[ServedAggregator]:
    command = [sys.executable, __file__, str(store), json.dumps(to_json(settings))]
    with _running(command, store, False) as aggregator:
        yield aggregator


@contextmanager
def many_descriptors(count: int) -> Iterator[None]:
    """So many open files for this process, or the test is skipped."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"only {hard} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def token_of(store: Path, name: str, scope: Scope) -> str:
    """The secret of a new token, made beside the running aggregator as `slotscope token create` does."""
    secret = new_secret()
    tokens = open_aggregator(store, create=True).tokens
    assert tokens.add(Token(name, scope, time.time_ns()), digest_of(secret))
    return secret


def slotscope(store: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_SERVE, str(store), *arguments], capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def _running(command: list[str], store: Path, trusted: ssl.SSLContext | bool) -> Iterator[ServedAggregator]:
    store.mkdir(parents=True, exist_ok=True)
    log = store.parent / f"{store.name}-{time.monotonic_ns()}.log"
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("serving "), log.read_text()
        yield ServedAggregator(process, first.split()[-1], log, trusted)
    finally:
        process.kill()
        process.wait(ENDS_WITHIN_S)
        if process.stdout is not None:
            process.stdout.close()


def _serve_with(store: Path, settings: ServiceSettings) -> None:
    from profiler.service.api.app import make_app
    from profiler.service.listening.serve import Address, serve
    from profiler.service.listening.server_log import log_to

    log_to(sys.stderr, has_requests=True)

    def ready(url: str) -> None:
        print("serving", store, "at", url, flush=True)

    serve(make_app(open_aggregator(store, create=True), settings), Address("127.0.0.1", 0), settings, ready)


if __name__ == "__main__":
    _serve_with(Path(sys.argv[1]), from_json(ServiceSettings, json.loads(sys.argv[2])))
