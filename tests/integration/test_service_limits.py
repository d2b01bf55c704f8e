"""Clients that are slow, idle, many, or too fast: the others are served all the same."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.codec.json_values import to_json
from profiler.protocol.addresses import HELLO
from profiler.service.access.token_registry import Scope
from profiler.service.api.settings import Limits, ServiceSettings
from support.aggregators import hello
from support.served_aggregator import ServedAggregator, many_descriptors, served_with, token_of

HEAD = b"POST /api/v1/agent/hello HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@contextlib.contextmanager
def limited(store: Path, limits: Limits) -> Iterator[ServedAggregator]:
    with served_with(store, replace(ServiceSettings(), limits=limits)) as aggregator:
        yield aggregator


def is_served(aggregator: ServedAggregator, secret: str) -> bool:
    with aggregator.client(secret) as client:
        return client.post(HELLO, json=to_json(hello())).status_code == 200


def answer_until_closed(connection: socket.socket) -> bytes:
    connection.settimeout(30)
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            received += chunk
    return received


def is_cut_off_while_sending(connection: socket.socket, piece: bytes) -> bool:
    """Sends a piece every 100 ms, for 30 s at most."""
    for _ in range(300):
        try:
            connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            return True
        time.sleep(0.1)
    return False


def test_a_thousand_idle_connections_stop_nobody(store: Path) -> None:
    secret = token_of(store, "host1", Scope.AGENT)
    with (
        many_descriptors(1500),
        limited(store, Limits(head_s=600, connections=1000)) as aggregator,
        contextlib.ExitStack() as idle,
    ):
        begun = time.monotonic()
        connections = [idle.enter_context(socket.create_connection(aggregator.address)) for _ in range(1000)]
        for connection in connections[::2]:
            connection.sendall(b"GET /healthz HT")
        for _ in range(20):
            assert is_served(aggregator, secret)
        assert time.monotonic() - begun < 60
        assert aggregator.peak_bytes < 400 << 20


def test_where_there_is_no_room_the_longest_idle_goes_and_the_busy_stay(store: Path) -> None:
    secret = token_of(store, "host1", Scope.AGENT)
    with limited(store, Limits(connections=10, head_s=600)) as aggregator, contextlib.ExitStack() as idle:
        busy = idle.enter_context(socket.create_connection(aggregator.address))
        busy.sendall(f"GET /api/v1/agent/jobs?wait=2 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {secret}\r\n".encode())
        busy.sendall(b"Connection: close\r\n\r\n")
        time.sleep(0.5)
        connections = [idle.enter_context(socket.create_connection(aggregator.address)) for _ in range(30)]
        assert is_served(aggregator, secret)
        assert answer_until_closed(busy).startswith(b"HTTP/1.1 200 ")
        for first in connections[:20]:
            assert answer_until_closed(first) == b""
        connections[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert answer_until_closed(connections[-1]).endswith(b'{"status": "ok"}')


def test_a_head_that_trickles_is_cut_off(store: Path) -> None:
    with limited(store, Limits(head_s=1)) as aggregator, socket.create_connection(aggregator.address) as slow:
        assert is_cut_off_while_sending(slow, b"G")
        assert answer_until_closed(slow) == b""


def test_a_connection_that_says_nothing_is_closed(store: Path) -> None:
    with limited(store, Limits(head_s=1)) as aggregator, socket.create_connection(aggregator.address) as silent:
        assert answer_until_closed(silent) == b""


def test_a_body_that_trickles_is_answered_and_cut_off(store: Path) -> None:
    secret = token_of(store, "host1", Scope.AGENT)
    with limited(store, Limits(head_s=1, body_s=1)) as aggregator, socket.create_connection(aggregator.address) as slow:
        slow.sendall(HEAD + f"Authorization: Bearer {secret}\r\nContent-Length: 100000\r\n\r\n".encode())
        assert is_cut_off_while_sending(slow, b" ")
    with limited(store, Limits(head_s=1, body_s=1)) as aggregator, socket.create_connection(aggregator.address) as slow:
        slow.sendall(HEAD + f"Authorization: Bearer {secret}\r\nContent-Length: 100000\r\n\r\n   ".encode())
        answered = answer_until_closed(slow)
        assert answered.startswith(b"HTTP/1.1 408 ")
        assert b"application/problem+json" in answered


def test_a_body_that_comes_steadily_may_take_longer(store: Path) -> None:
    secret = token_of(store, "host1", Scope.AGENT)
    body = b" " * 40_000
    limits = Limits(body_s=1, body_bytes_per_s=8000)  # 1 s and 5 s for 40,000 bytes
    with limited(store, limits) as aggregator, socket.create_connection(aggregator.address) as steady:
        steady.sendall(HEAD + b"Connection: close\r\n" + f"Authorization: Bearer {secret}\r\n".encode())
        steady.sendall(f"Content-Length: {len(body)}\r\n\r\n".encode())
        for begin in range(0, len(body), 10_000):
            steady.sendall(body[begin : begin + 10_000])
            time.sleep(0.5)
        assert answer_until_closed(steady).startswith(b"HTTP/1.1 422 ")


def test_nothing_of_a_body_is_read_without_a_token(store: Path) -> None:
    with limited(store, Limits()) as aggregator, socket.create_connection(aggregator.address) as stranger:
        stranger.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
        stranger.settimeout(20)
        assert stranger.recv(1000).startswith(b"HTTP/1.1 401 ")


def test_a_client_that_does_not_read_is_cut_off(store: Path) -> None:
    secret = token_of(store, "alice", Scope.OPERATOR)
    agent = token_of(store, "host1", Scope.AGENT)
    large = hello(version="x" * 900_000)
    with limited(store, Limits(stalled_s=1, head_s=600)) as aggregator:
        with aggregator.client(agent) as client:
            assert client.post(HELLO, json=to_json(large)).status_code == 200
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(aggregator.address)
            request = f"GET /api/v1/hosts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {secret}\r\n\r\n"
            deaf.sendall(request.encode() * 20)
            assert has_connections(aggregator, 1)
            assert has_connections(aggregator, 0)


def has_connections(aggregator: ServedAggregator, count: int) -> bool:
    """Whether it comes to that within 30 s."""
    for _ in range(300):
        if connections_of(aggregator) == count:
            return True
        time.sleep(0.1)
    return False


def connections_of(aggregator: ServedAggregator) -> int:
    """Sockets of the process beside the one that listens and the pair of its own event loop, as the kernel lists them."""
    links = [each.readlink().name for each in Path(f"/proc/{aggregator.process.pid}/fd").iterdir() if each.is_symlink()]
    inodes = {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:")}
    listed = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(1 for line in listed if line[9] in inodes and line[3] != "0A")


def test_what_is_not_http_is_a_problem(store: Path) -> None:
    with limited(store, Limits()) as aggregator:
        for nonsense in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\r\nbroken header\r\n\r\n", b"x" * 100_000):
            with socket.create_connection(aggregator.address) as connection:
                connection.sendall(nonsense + b"\r\n\r\n")
                answered = answer_until_closed(connection)
                assert answered == b"" or (answered.startswith(b"HTTP/1.1 400 ") and b"application/problem+json" in answered)
        with aggregator.client() as client:
            assert client.get("/healthz").status_code == 200
