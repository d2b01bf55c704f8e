"""Every route of the description against every scope: a route that is added without a rule is found here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiler.service.access.token_registry import Scope, new_secret
from profiler.service.api.settings import ServiceSettings
from support.aggregators import AskedApp, add_token, aggregator_in, asked

# Open to everybody; /metrics has its own rule.
PUBLIC = {("GET", "/healthz"), ("GET", "/readyz")}
METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
AGENTS_WITHOUT_TOKEN = {"none", "malformed", "unknown", "revoked", "as password", "two words"}


def admitted(method: str, path: str) -> set[Scope]:
    """The rule of the house, by the address alone."""
    if path.startswith("/api/v1/agent/"):
        return {Scope.AGENT}
    if path.startswith("/api/v1/") and method != "GET":
        return {Scope.OPERATOR}
    return {Scope.READER, Scope.OPERATOR}


@pytest.fixture
def app(tmp_path: Path) -> AskedApp:
    return asked(aggregator_in(tmp_path), ServiceSettings(is_behind_proxy=True))


def headers_of_callers(tmp_path: Path) -> dict[str, dict[str, str]]:
    aggregator = aggregator_in(tmp_path)
    secrets = {str(scope): add_token(aggregator, f"a-{scope}", scope) for scope in Scope}
    revoked = add_token(aggregator, "revoked", Scope.OPERATOR)
    aggregator.tokens.revoke("revoked", 1)
    values = {scope: f"Bearer {secret}" for scope, secret in secrets.items()}
    values |= {"malformed": f"Bearer {secrets['operator'][:-1]}", "unknown": f"Bearer {new_secret()}"}
    values |= {"revoked": f"Bearer {revoked}", "as password": f"Basic {secrets['operator']}"}
    values |= {"two words": f"Bearer {secrets['operator']} {secrets['operator']}"}
    return {"none": {}, **{caller: {"Authorization": value} for caller, value in values.items()}}


def operations(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(method.upper(), path) for path, item in document["paths"].items() for method in item if method in METHODS]


def test_every_route_admits_whom_it_should_and_nobody_else(app: AskedApp, tmp_path: Path) -> None:
    callers = headers_of_callers(tmp_path)
    routes = [route for route in operations(app.app.openapi()) if route not in PUBLIC]
    assert len(routes) >= 12
    for method, path in routes:
        target = path.replace("{", "").replace("}", "")
        for caller, headers in callers.items():
            answered = app.send(method, target, headers=headers)
            where = f"{method} {path} as {caller}"
            if caller in AGENTS_WITHOUT_TOKEN:
                assert answered.status_code == 401, where
                assert answered.headers["www-authenticate"] == "Bearer", where
            elif Scope(caller) in admitted(method, path):
                assert answered.status_code not in (401, 403), where
            else:
                assert answered.status_code == 403, where


def test_all_callers_without_a_valid_token_are_told_the_same(app: AskedApp, tmp_path: Path) -> None:
    callers = headers_of_callers(tmp_path)
    paths = ("/api/v1/hosts", "/api/v1/agent/jobs", "/api/v1/jobs/x", "/api/v1/nothing", "/api/v1/agent/uploads/x")
    answers = {app.send("GET", path, headers=callers[who]).content for path in paths for who in AGENTS_WITHOUT_TOKEN}
    assert len(answers) == 1


def test_every_route_is_described_as_it_is(app: AskedApp) -> None:
    document = app.app.openapi()
    assert len(operations(document)) >= 12
    for method, path in operations(document):
        described = document["paths"][path][method.lower()]
        assert bool(described.get("security")) == ((method, path) not in PUBLIC), (method, path)
        for status, answer in described["responses"].items():
            if status >= "400":
                assert list(answer["content"]) == ["application/problem+json"], (method, path, status)


def test_metrics_are_open_to_this_machine_unless_a_proxy_is_in_front(tmp_path: Path) -> None:
    direct = asked(aggregator_in(tmp_path))
    behind = asked(aggregator_in(tmp_path), ServiceSettings(is_behind_proxy=True))
    statuses = {
        (name, address): each.at(address).get("/metrics").status_code
        for name, each in (("direct", direct), ("behind", behind))
        for address in ("127.0.0.1", "::1", "127.9.9.9", "10.0.0.1", "localhost")
    }
    assert {key for key, status in statuses.items() if status == 200} == {
        ("direct", "127.0.0.1"), ("direct", "::1"), ("direct", "127.9.9.9")
    }  # fmt: skip
    assert set(statuses.values()) == {200, 401}
