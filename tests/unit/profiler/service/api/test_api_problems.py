"""Every error is a problem of RFC 9457, limits included."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from profiler.service.access.token_registry import Scope
from profiler.service.api.settings import Limits, RateLimit, ServiceSettings
from support.aggregators import AskedApp, add_token, aggregator_in, asked


@pytest.fixture
def app(tmp_path: Path) -> AskedApp:
    aggregator = aggregator_in(tmp_path)
    return asked(aggregator).with_token(add_token(aggregator, "alice", Scope.OPERATOR))


def problem_of(answered: httpx.Response) -> dict[str, object]:
    assert answered.headers["content-type"] == "application/problem+json"
    problem: dict[str, object] = answered.json()
    assert set(problem) == {"type", "title", "status", "detail"}
    assert problem["status"] == answered.status_code
    return problem


def test_paths_and_methods_that_there_are_not(app: AskedApp) -> None:
    assert problem_of(app.get("/api/v1/nothing"))["status"] == 404
    assert problem_of(app.get("/nothing"))["status"] == 404
    assert problem_of(app.get("/api/v1/hosts/"))["status"] == 404
    answered = app.send("DELETE", "/api/v1/jobs")
    assert problem_of(answered)["status"] == 405
    assert answered.headers["allow"] == "GET, POST"


def test_a_fault_of_ours_is_a_problem_without_its_message(app: AskedApp) -> None:
    def broken() -> None:
        raise RuntimeError("with a secret in it")

    app.app.add_api_route("/broken", broken)
    problem = problem_of(app.get("/broken"))
    assert (problem["status"], problem["detail"]) == (500, "RuntimeError; the aggregator's log says where")


def test_a_database_that_is_damaged_is_said_to_be_unusable(app: AskedApp, tmp_path: Path) -> None:
    assert app.get("/readyz").json() == {"status": "ok"}
    (tmp_path / "service.sqlite").write_bytes(b"not a database, and long enough to be read as the head of one" * 4)
    for path in ("/readyz", "/api/v1/hosts"):
        answered = app.get(path)
        assert problem_of(answered)["status"] == 503
        assert str(tmp_path) not in answered.text
    assert replace(app, headers={}).get("/healthz").json() == {"status": "ok"}


def test_a_full_database_is_not_ready(app: AskedApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert problem_of(app.get("/readyz"))["status"] == 503


def test_a_database_locked_by_another_is_waited_for_and_then_a_problem(
    app: AskedApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("profiler.store.sqlite_file.BUSY_TIMEOUT_S", 0.1)
    holder = sqlite3.connect(tmp_path / "service.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert problem_of(app.get("/api/v1/hosts"))["status"] == 503
    holder.close()
    assert app.get("/api/v1/hosts").status_code == 200


def test_bodies_beyond_the_limit(app: AskedApp) -> None:
    async def chunks(size: int) -> AsyncIterator[bytes]:
        for _ in range(size // 65536):
            yield b" " * 65536

    mib = 1 << 20
    headers = {"Content-Type": "application/json"}
    announced = app.send("POST", "/api/v1/jobs", content=b" " * (mib + 1), headers=headers)
    counted = app.send("POST", "/api/v1/jobs", content=chunks(mib + 65536), headers=headers)
    for answered in (announced, counted):
        assert problem_of(answered) == {
            "type": "about:blank", "title": "Body too large", "status": 413, "detail": "at most 1048576 bytes are taken here"
        }  # fmt: skip
    assert app.send("POST", "/api/v1/jobs", content=b" " * mib, headers=headers).status_code == 422
    assert app.send("POST", "/api/v1/jobs", content=chunks(mib), headers=headers).status_code == 422


def limited_app(directory: Path, by_address: RateLimit, by_token: RateLimit) -> tuple[AskedApp, str, str]:
    aggregator = aggregator_in(directory)
    secrets = [add_token(aggregator, name, Scope.READER) for name in ("a", "b")]
    app = asked(aggregator, ServiceSettings(limits=Limits(by_address=by_address, by_token=by_token)))
    return app, secrets[0], secrets[1]


def test_a_token_that_asks_too_often_slows_nobody_else(tmp_path: Path) -> None:
    app, first, second = limited_app(tmp_path, RateLimit(1000, 1000), RateLimit(0.001, 3))
    statuses = [app.with_token(first).get("/api/v1/hosts") for _ in range(5)]
    assert [answered.status_code for answered in statuses] == [200, 200, 200, 429, 429]
    assert problem_of(statuses[-1])["title"] == "Too many requests"
    assert 990 <= int(statuses[-1].headers["retry-after"]) <= 1000
    assert app.with_token(second).get("/api/v1/hosts").status_code == 200


def test_an_address_that_guesses_tokens_is_slowed(tmp_path: Path) -> None:
    app, first, _ = limited_app(tmp_path, RateLimit(0.001, 3), RateLimit(1000, 1000))
    assert [app.get("/api/v1/hosts").status_code for _ in range(4)] == [401, 401, 401, 429]
    assert app.with_token(first).get("/api/v1/hosts").status_code == 429
    assert app.at("203.0.113.8").with_token(first).get("/api/v1/hosts").status_code == 200
