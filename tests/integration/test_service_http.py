"""`slotscope serve` as a process: TLS, tokens, restarts, its end, and what it writes."""

from __future__ import annotations

import contextlib
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import trustme

from profiler.codec.json_values import from_json, to_json
from profiler.protocol.addresses import HELLO, JOB_REPORT, JOBS
from profiler.protocol.job import JobReport, JobState
from profiler.service.access.token_registry import Scope
from profiler.service.agents.known_hosts import Hosts
from profiler.service.api.answers import JobSubmission
from profiler.service.api.settings import ServiceSettings
from support.aggregators import attach_order, hello
from support.served_aggregator import ServedAggregator, many_descriptors, served, served_with, slotscope, token_of


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificate(authority: trustme.CA, tmp_path: Path) -> tuple[str, str]:
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    return str(certificate), str(key)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def aggregator(store: Path) -> Iterator[ServedAggregator]:
    with served(store, "--log-requests") as running:
        yield running


def order_job(operator: httpx.Client, agent: str) -> str:
    """The ID."""
    answered = operator.post("/api/v1/jobs", json=to_json(JobSubmission(agent, attach_order())))
    assert answered.status_code == 201, answered.text
    return str(answered.json()["order"]["id"])


def test_an_agent_and_the_hosts_command_over_tls(
    authority: trustme.CA, certificate: tuple[str, str], store: Path, tmp_path: Path
) -> None:
    secrets = {scope: token_of(store, f"a-{scope}", scope) for scope in Scope}
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    with served(store, "--tls-cert", certificate[0], "--tls-key", certificate[1], trusted=trusted) as aggregator:
        assert aggregator.url.startswith("https://127.0.0.1:")
        with aggregator.client(secrets[Scope.AGENT]) as agent:
            assert agent.post(HELLO, json=to_json(hello())).json()["agent"] == "a-agent"
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(f"{aggregator.url}/healthz", trust_env=False)
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{aggregator.url.replace('https', 'http')}/healthz", trust_env=False)
        token, ca = tmp_path / "token", tmp_path / "ca.pem"
        token.touch(mode=0o600)
        token.write_text(secrets[Scope.READER] + "\n")
        authority.cert_pem.write_to_path(str(ca))
        asked = ("hosts", "--server", aggregator.url, "--token-file", str(token), "--ca", str(ca))
        assert "a-agent  ready  node     skip-slots" in slotscope(store, *asked).stdout
        token.write_text(secrets[Scope.AGENT])
        refused = slotscope(store, *asked)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "needs a token of the scope `reader`" in refused.stderr
        assert "certificate" in slotscope(store, *asked[:-2]).stderr


def test_connections_that_never_begin_tls_stop_nobody_and_take_bounded_memory(
    authority: trustme.CA, certificate: tuple[str, str], store: Path
) -> None:
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    with (
        many_descriptors(1500),
        served(store, "--tls-cert", certificate[0], "--tls-key", certificate[1], trusted=trusted) as aggregator,
        contextlib.ExitStack() as idle,
    ):
        connections = [idle.enter_context(socket.create_connection(aggregator.address)) for _ in range(1000)]
        connections[-1].sendall(b"GET / HTTP/1.1\r\n\r\n")
        for _ in range(5):
            with aggregator.client() as client:
                assert client.get("/healthz").status_code == 200
        assert connections[0].recv(1) == b""  # made room
        # 256 KiB of asyncio's buffer for each of 500, and of 128 that were accepted at once
        assert aggregator.peak_bytes < 400 << 20
        assert aggregator.ended_by(signal.SIGTERM) == 143
        assert "Traceback" not in aggregator.log.read_text()
        assert "ERROR" not in aggregator.log.read_text()


def test_a_restart_keeps_everything(store: Path) -> None:
    agent_secret, operator_secret = token_of(store, "host1", Scope.AGENT), token_of(store, "alice", Scope.OPERATOR)
    with served(store) as first, first.client(agent_secret) as agent, first.client(operator_secret) as operator:
        agent.post(HELLO, json=to_json(hello()))
        jobs = [order_job(operator, "host1") for _ in range(3)]
        agent.post(JOB_REPORT.format(job=jobs[1]), json=to_json(JobReport(JobState.RUNNING)))
        before = [operator.get(path).json() for path in ("/api/v1/jobs", "/api/v1/sessions")]
        first.process.kill()
        first.process.wait(30)
    with served(store) as second, second.client(agent_secret) as agent, second.client(operator_secret) as operator:
        assert [operator.get(path).json() for path in ("/api/v1/jobs", "/api/v1/sessions")] == before
        assert [order["id"] for order in agent.get(JOBS).json()["orders"]] == jobs
        (host,) = from_json(Hosts, operator.get("/api/v1/hosts").json()).hosts
        assert host.hello == hello()


def test_an_order_reaches_a_waiting_agent(aggregator: ServedAggregator, store: Path) -> None:
    secret = token_of(store, "host1", Scope.AGENT)
    with aggregator.client(secret) as agent, aggregator.client(token_of(store, "alice", Scope.OPERATOR)) as operator:
        agent.post(HELLO, json=to_json(hello()))
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.append(agent.get(f"{JOBS}?wait=30")))
        asking.start()
        job = order_job(operator, "host1")
        asking.join(29)
        assert [order["id"] for order in answers[0].json()["orders"]] == [job]


def test_a_revoked_token_ends_at_once(aggregator: ServedAggregator, store: Path) -> None:
    with aggregator.client(token_of(store, "host1", Scope.AGENT)) as agent:
        assert agent.get(JOBS).status_code == 200
        assert slotscope(store, "token", "revoke", "host1").stdout == "revoked host1\n"
        assert agent.get(JOBS).status_code == 401
    with aggregator.client(token_of(store, "host1", Scope.AGENT)) as renewed:
        assert renewed.get(JOBS).status_code == 200
        assert renewed.get(JOBS, headers=agent.headers).status_code == 401


def test_jobs_of_a_silent_agent_are_lost_and_it_is_told_when_it_comes_back(store: Path) -> None:
    settings = replace(ServiceSettings(), hello_s=0.3)
    agent_secret, operator_secret = token_of(store, "host1", Scope.AGENT), token_of(store, "alice", Scope.OPERATOR)
    with (
        served_with(store, settings) as aggregator,
        aggregator.client(agent_secret) as agent,
        aggregator.client(operator_secret) as operator,
    ):
        assert agent.post(HELLO, json=to_json(hello())).json()["hello_s"] == 0.3
        job = order_job(operator, "host1")
        agent.post(JOB_REPORT.format(job=job), json=to_json(JobReport(JobState.RUNNING)))
        report = wait_for_state(operator, job, JobState.LOST)
        assert report.detail == "host1 has not been heard for 3 x 0.3 s"
        assert agent.get(JOBS).json() == {"orders": [], "cancelled": [job]}
        agent.post(JOB_REPORT.format(job=job), json=to_json(JobReport(JobState.CANCELLED)))
        assert agent.get(JOBS).json() == {"orders": [], "cancelled": []}


def wait_for_state(operator: httpx.Client, job: str, state: JobState) -> JobReport:
    for _ in range(300):
        report = from_json(JobReport, operator.get(f"/api/v1/jobs/{job}").json()["report"])
        if report.state is state:
            return report
        time.sleep(0.1)
    raise AssertionError(f"{job} is {report}")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_in_order_also_while_agents_wait(
    aggregator: ServedAggregator, store: Path, number: signal.Signals, code: int
) -> None:
    with aggregator.client(token_of(store, "host1", Scope.AGENT)) as agent:
        agent.post(HELLO, json=to_json(hello()))
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.append(agent.get(f"{JOBS}?wait=30")))
        asking.start()
        wait_until_in_progress(aggregator, 2)
        assert aggregator.ended_by(number) == code
        asking.join(10)
        assert [answered.status_code for answered in answers] == [200]
    last = aggregator.log.read_text().splitlines()[-1]
    assert last == {143: "slotscope: ended by SIGTERM", 130: "slotscope: interrupted", 129: "slotscope: ended by SIGHUP"}[code]


def wait_until_in_progress(aggregator: ServedAggregator, count: int) -> None:
    """Of requests, this one's included."""
    with aggregator.client() as client:
        for _ in range(200):
            if f"slotscope_requests_in_progress {count}\n" in client.get("/metrics").text:
                return
            time.sleep(0.05)
    raise AssertionError(f"never {count} requests in progress")


def test_a_port_that_is_taken_is_one_line(store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = slotscope(store, "serve", "--port", str(port))
    expected = f"slotscope: error: 127.0.0.1:{port}: Address already in use; choose another --host or --port\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", expected)


def test_a_store_that_it_makes_is_its_users_alone(tmp_path: Path) -> None:
    made = tmp_path / "made" / "store"
    token_of(made, "host1", Scope.AGENT)
    assert made.stat().st_mode & 0o777 == 0o700


def test_without_a_token_it_starts_and_says_how_to_make_one(store: Path) -> None:
    with served(store) as aggregator:
        assert aggregator.process.stdout is not None
        assert "`slotscope token create NAME --scope agent|reader|operator`" in aggregator.process.stdout.readline()
        with aggregator.client() as client:
            assert client.get("/readyz").json() == {"status": "ok"}
            assert client.get("/api/v1/hosts").status_code == 401


def test_no_secret_is_in_logs_or_process_lists(aggregator: ServedAggregator, store: Path) -> None:
    secret = token_of(store, "alice", Scope.OPERATOR)
    with aggregator.client(secret) as client:
        for path in ("/api/v1/hosts", f"/api/v1/hosts?token={secret}", f"/{secret}", f"/{secret.replace('s', '%73')}"):
            client.get(path)
        client.get("/api/v1/hosts", headers={"Authorization": f"Basic {secret}"})
        client.post("/api/v1/jobs", content=secret, headers={"Content-Type": "application/json"})
        client.post("/api/v1/jobs", json={"agent": secret, "order": {}})
    with socket.create_connection(aggregator.address) as broken:
        broken.sendall(f"{secret} {secret}\r\nAuthorization: {secret}\r\n\r\n".encode())
        assert secret.encode() not in broken.recv(10_000)
    shown = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    assert aggregator.ended_by(signal.SIGTERM) == 143
    log = aggregator.log.read_text()
    assert '"GET /api/v1/hosts HTTP/1.1" 200' in log
    assert log.count("slsc_***") >= 2
    for text in (log, shown):
        assert secret not in text
        assert secret[5:] not in text
