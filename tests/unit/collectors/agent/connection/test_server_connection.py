"""A server that is broken or hostile: one line of trouble, in bounded time and memory, and nothing believed."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import trustme

from collectors.agent.connection import server_connection
from collectors.agent.connection.server_connection import ServerAddress, ServerConnection
from collectors.agent.connection.server_errors import RequestRefused, ServerTrouble, TokenRefused
from profiler.errors import UsageError
from profiler.protocol.upload import UploadKind, UploadOffer
from support.fake_aggregator import TOKEN, Asked, FakeAggregator, serving

SHA = "a" * 64


@pytest.fixture
def fake() -> Iterator[FakeAggregator]:
    with serving(FakeAggregator()) as server:
        yield server


@pytest.fixture
def connection(fake: FakeAggregator) -> Iterator[ServerConnection]:
    made = ServerConnection(ServerAddress(fake.url, TOKEN))
    yield made
    made.close()


def answering(status: int, body: bytes, **headers: str) -> Callable[[Asked, BaseHTTPRequestHandler], bool]:
    def answer(_: Asked, handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)
        return True

    return answer


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "no JSON"),
        (b"hello", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"server_time_ns": NaN}', "no JSON"),
        (b'{"server_time_ns": ' + b"9" * 5000 + b"}", "no JSON"),
        (b'{"server_time_ns": "12"}', "server_time_ns: expected int"),
        (b'{"server_time_ns": 1.5}', "expected int"),
        (b'{"server_time_ns": true}', "expected int"),
        (b'{"server_time_ns": 1, "run": "rm -rf"}', "unknown field 'run'"),
        (b"null", "expected an object"),
        (b'"' + b"x" * (1 << 20) + b'"', "larger than 1048576 bytes"),
        (b"\xff\xfe", "no JSON"),
    ],
)
def test_an_answer_of_another_form_is_not_believed(
    fake: FakeAggregator, connection: ServerConnection, body: bytes, words: str
) -> None:
    fake.answer = answering(200, body)
    with pytest.raises(ServerTrouble, match=words):
        connection.server_time_ns()


def test_redirects_are_not_followed(fake: FakeAggregator, connection: ServerConnection) -> None:
    with serving(FakeAggregator()) as other:
        fake.answer = answering(307, b"", Location=f"{other.url}/api/v1/agent/clock")
        with pytest.raises(ServerTrouble, match="answered 307: the agent follows no redirects"):
            connection.server_time_ns()
        assert other.asked == []


def test_content_that_is_compressed_unasked_is_not_unpacked(fake: FakeAggregator, connection: ServerConnection) -> None:
    fake.answer = answering(200, b"x" * 100, Content_Encoding="gzip")
    with pytest.raises(ServerTrouble, match="compressed"):
        connection.server_time_ns()


def test_an_endless_answer_ends(fake: FakeAggregator, connection: ServerConnection) -> None:
    def endless(_: Asked, handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100_000):  # 6.5 GB, unless the other side hangs up
            try:
                handler.wfile.write(b" " * 65536)
            except OSError:
                break
        handler.close_connection = True
        return True

    fake.answer = endless
    with pytest.raises(ServerTrouble, match="larger than"):
        connection.server_time_ns()


def test_a_slow_answer_ends(fake: FakeAggregator, connection: ServerConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "ANSWER_TIMEOUT_S", 0.5)

    def dripping(_: Asked, handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(200):
            try:
                handler.wfile.write(b" ")
            except OSError:
                break
            time.sleep(0.1)
        handler.close_connection = True
        return True

    fake.answer = dripping
    begun = time.monotonic()
    with pytest.raises(ServerTrouble, match="did not come to its end in time"):
        connection.server_time_ns()
    assert time.monotonic() - begun < 10  # of the 20 s that the answer would take


def test_silence_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "ANSWER_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = ServerConnection(ServerAddress(f"http://127.0.0.1:{silent.getsockname()[1]}", TOKEN))
        with pytest.raises(ServerTrouble, match="timed out"):
            connection.server_time_ns()
        connection.close()


def test_nobody_there_is_trouble() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    connection = ServerConnection(ServerAddress(f"http://127.0.0.1:{port}", TOKEN))
    with pytest.raises(ServerTrouble, match="refused"):
        connection.server_time_ns()
    connection.close()


@pytest.mark.parametrize(
    ("status", "kind", "is_final"),
    [(500, ServerTrouble, None), (503, ServerTrouble, None), (429, ServerTrouble, None), (401, TokenRefused, None)]
    + [(status, RequestRefused, True) for status in (403, 404, 410, 413, 422)]
    + [(status, RequestRefused, False) for status in (400, 409)],
)
def test_what_an_error_of_an_upload_means(
    fake: FakeAggregator, connection: ServerConnection, status: int, kind: type[ServerTrouble], is_final: bool | None
) -> None:
    problem = json.dumps({"detail": "because"}).encode()
    fake.answer = answering(status, problem, Content_Type="application/problem+json", Retry_After="7")
    with pytest.raises(ServerTrouble, match="because") as error:
        connection.offer(UploadOffer(SHA, 1, UploadKind.CAPTURE, job="j"))
    assert type(error.value) is kind
    if isinstance(error.value, RequestRefused):
        assert error.value.is_final is is_final
    elif kind is ServerTrouble:
        assert error.value.retry_after_s == 7.0


def test_an_error_of_something_else_in_between_loses_nothing(fake: FakeAggregator, connection: ServerConnection) -> None:
    """A proxy or another program on the port answers 404 with a page: the aggregator's refusals are problem documents."""
    fake.answer = answering(404, b"<html>not found</html>", Content_Type="text/html")
    with pytest.raises(RequestRefused) as error:
        connection.offer(UploadOffer(SHA, 1, UploadKind.CAPTURE, job="j"))
    assert not error.value.is_final


def test_the_token_is_in_no_message(fake: FakeAggregator, connection: ServerConnection) -> None:
    connection.server_time_ns()
    assert fake.asked[0].token == TOKEN
    fake.answer = answering(401, b"{}")
    with pytest.raises(TokenRefused, match="the token is not accepted") as error:
        connection.server_time_ns()
    assert TOKEN not in str(error.value)


def test_proxies_of_the_environment_are_not_used(fake: FakeAggregator, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(FakeAggregator()) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        connection = ServerConnection(ServerAddress(fake.url, TOKEN))
        connection.server_time_ns()
        connection.close()
        assert proxy.asked == []


@contextmanager
def _tls_server(context: ssl.SSLContext) -> Iterator[int]:
    """Answers every connection with one clock reading; its port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listening.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(plain, server_side=True) as stream:
                    stream.recv(1 << 16)
                    stream.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n{"server_time_ns": 42}')
            except OSError:
                plain.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with listening:
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_a_server_is_known_by_its_certificate(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    right, wrong = tmp_path / "right.pem", tmp_path / "wrong.pem"
    authority.cert_pem.write_to_path(str(right))
    other.cert_pem.write_to_path(str(wrong))
    with _tls_server(context) as port:
        trusting = ServerConnection(ServerAddress(f"https://127.0.0.1:{port}", TOKEN, right))
        assert trusting.server_time_ns() == 42
        for ca in (wrong, None):
            connection = ServerConnection(ServerAddress(f"https://127.0.0.1:{port}", TOKEN, ca))
            with pytest.raises(ServerTrouble, match="certificate verify failed"):
                connection.server_time_ns()
            connection.close()
        trusting.close()


def test_what_holds_no_certificates_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(UsageError, match=r"ca\.pem: no certificates"):
        ServerConnection(ServerAddress("https://127.0.0.1:1", TOKEN, tmp_path / "ca.pem"))
