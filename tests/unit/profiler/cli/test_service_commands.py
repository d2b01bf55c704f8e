"""`token`, `hosts` and `serve` as far as they need no server."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import re
import sqlite3
from pathlib import Path

import pytest

from profiler.cli.main import main
from profiler.protocol.hello import SpoolState
from support.aggregators import START_NS, aggregator_in, hello


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def run(store: Path, *arguments: str) -> int:
    return main(["--store", str(store), *arguments])


def test_only_the_secret_goes_to_standard_output(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(store, "token", "create", "host1", "--scope", "agent") == 0
    shown = capsys.readouterr()
    assert re.fullmatch(r"slsc_[A-Za-z0-9_-]{43}\n", shown.out)
    assert shown.out.strip() not in shown.err
    with contextlib.closing(sqlite3.connect(store / "service.sqlite")) as database:
        (digest,) = database.execute("SELECT digest FROM tokens").fetchone()
    assert digest == hashlib.sha256(shown.out.strip().encode()).digest()


def test_a_token_from_making_to_revocation(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(store, "token", "create", "alice", "--scope", "reader") == 0
    assert run(store, "token", "create", "alice", "--scope", "operator") == 2
    assert "there is a token 'alice' already: `slotscope token revoke alice` first" in capsys.readouterr().err
    assert run(store, "token", "list") == 0
    assert re.search(r"^alice +reader +\d{4}-\d\d-\d\dT\d\d:\d\dZ +never +valid$", capsys.readouterr().out, re.MULTILINE)
    assert run(store, "token", "revoke", "alice") == 0
    assert run(store, "token", "revoke", "alice") == 2
    assert run(store, "token", "list") == 0
    assert "revoked 2" in capsys.readouterr().out
    assert run(store, "token", "create", "alice", "--scope", "operator") == 0


@pytest.mark.parametrize("name", ["../x", "a b", "", "x" * 65])
def test_names_that_are_refused(store: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(store, "token", "create", name, "--scope", "agent") == 2
    assert "use letters, digits" in capsys.readouterr().err


def test_revoking_and_listing_need_a_store(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("list",), ("revoke", "x")):
        assert run(store, "token", *arguments) == 1
        assert capsys.readouterr().err.count("\n") == 1
    assert not store.exists()


def test_hosts_of_the_store_on_this_machine(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    aggregator = aggregator_in(store)
    assert run(store, "hosts") == 0
    assert capsys.readouterr().out == "no agent has said hello yet\n"
    aggregator.agents.greet("host1", hello(spool=SpoolState(3, 99)), START_NS)
    assert run(store, "hosts") == 0
    (_, row) = capsys.readouterr().out.splitlines()
    assert row.split() == [
        "host1", "silent", "since", "2025-06-15T15:06:40Z", "node", "skip-slots", "3", "0.1.0", "6.1.0"
    ]  # fmt: skip


def test_what_an_agent_says_cannot_steer_the_terminal(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    aggregator_in(store).agents.greet("host1", hello(version="\x1b[2J", spool=SpoolState(0, 0, "full\x07\n")), START_NS)
    assert run(store, "hosts") == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--server", "http://aggregator:8640"), "give an https:// address"),
        (("--server", "http://127.0.0.1.example.org"), "give an https:// address"),
        (("--server", "http://127.0.0.1@example.org/"), "give an https:// address"),
        (("--server", "http://localhost.example.org"), "give an https:// address"),
        (("--server", "http://[::1"), "give an https:// address"),
        (("--server", "aggregator:8640"), "give an https:// address"),
        (("--server", "https://aggregator:8640"), "--token-file or SLOTSCOPE_TOKEN_FILE"),
        (("--server", "http://127.0.0.1:1", "--token-file", "/nonexistent"), "/nonexistent: no token can be read"),
    ],
)
def test_servers_that_are_not_asked(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], named: str
) -> None:
    monkeypatch.delenv("SLOTSCOPE_TOKEN_FILE", raising=False)
    assert run(store, "hosts", *options) == 2
    assert named in capsys.readouterr().err


def test_a_server_that_is_not_there_is_one_line(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(f"slsc_{'x' * 43}\n")
    assert run(store, "hosts", "--server", "http://127.0.0.1:1", "--token-file", str(token)) == 1
    assert re.fullmatch(r"slotscope: error: http://127\.0\.0\.1:1: .*\n", capsys.readouterr().err)


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "jinja2", "python_multipart"])
def test_a_missing_extra_is_named(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == missing else found(name, *rest))
    assert run(store, "serve") == 2
    assert capsys.readouterr().err == f"slotscope: error: {missing} is not installed: `pip install slotscope[server]`\n"
    assert not store.exists()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--host", "0.0.0.0"), "give --tls-cert and --tls-key, or --behind-proxy"),
        (("--host", "::"), "give --tls-cert and --tls-key, or --behind-proxy"),
        (("--tls-cert", "nothing.pem"), "--tls-cert and --tls-key belong together"),
        (("--tls-cert", "nothing.pem", "--tls-key", "nothing.pem"), "nothing.pem: cannot be read"),
        (("--tls-cert", __file__, "--tls-key", __file__), "not a certificate with its key"),
        (("--host", "not a host"), "not a host:0: "),
        (("--port", "65536"), "'65536' is not a port"),
    ],
)
def test_what_it_does_not_start_with(
    store: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], named: str
) -> None:
    assert run(store, "serve", *(("--port", "0") if "--port" not in options else ()), *options) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert named in shown.err


def test_log_lines_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    from profiler.service.listening.server_log import log_to

    monkeypatch.delenv("SLOTSCOPE_TRACEBACK", raising=False)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    try:
        log_to(stream, has_requests=True)
        log = logging.getLogger("slotscope.serve")
        log.error("GET /?token=%s", "slsc_abc-DEF_123")
        log.info("experiment s: failed %s", "failed: as told by an agent\n2026-01-01T00:00:00Z INFO experiment t: finished")
        try:
            raise ValueError("slsc_abc in an error\x1b[2J\nwith two lines")
        except ValueError as error:
            log.error("Exception in ASGI application", exc_info=error)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    first, told, second, place = stream.getvalue().split("\n")[:-1]
    assert told.endswith(r"failed: as told by an agent\x0a2026-01-01T00:00:00Z INFO experiment t: finished")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ERROR GET /\?token=slsc_\*\*\*", first)
    assert second.endswith("ERROR Exception in ASGI application")
    assert re.fullmatch(r"test_service_commands\.py:\d+: ValueError: slsc_\*\*\* in an error\\x1b\[2J", place)
