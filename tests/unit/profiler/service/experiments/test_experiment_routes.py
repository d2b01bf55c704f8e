"""Experiments over HTTP, without a network: who may do what, and what is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from profiler.codec.json_values import to_json
from profiler.protocol.hello import OfferedTarget, TargetProfiler
from profiler.protocol.job import JobKind, JobOrder
from profiler.service.access.token_registry import Scope, Token, digest_of, new_secret
from profiler.service.aggregator import Aggregator, open_aggregator
from profiler.service.api.app import make_app
from profiler.service.api.settings import ServiceSettings
from profiler.service.experiments.course import CourseState
from support.simulated_agents import hello
from support.simulated_rounds import agent_plan

SIX = {"b1": "base", "b2": "base", "b3": "base", "f1": "fat", "f2": "fat", "f3": "fat"}
PLAN = {"plan": agent_plan(SIX), "name": "/home/me/devnet.toml"}
Ask = Callable[..., httpx.Response]


@pytest.fixture
def aggregator(tmp_path: Path) -> Aggregator:
    made = open_aggregator(tmp_path / "store", create=True)
    for name in SIX:
        made.agents.greet(name, hello([OfferedTarget("node")]), made.clock_ns())
    return made


@pytest.fixture
def ask(aggregator: Aggregator) -> Ask:
    secrets = {}
    for scope in Scope:
        secrets[scope] = new_secret()
        assert aggregator.tokens.add(Token(f"{scope}-token", scope, 1), digest_of(secrets[scope]))
    transport = httpx.ASGITransport(make_app(aggregator, ServiceSettings()))

    def asked(method: str, path: str, scope: Scope = Scope.OPERATOR, **body: Any) -> httpx.Response:
        async def request() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url="http://aggregator") as client:
                headers = {"Authorization": f"Bearer {secrets[scope]}"}
                return await client.request(method, f"/api/v1/experiments{path}", headers=headers, **body)

        return asyncio.run(request())

    return asked


def test_submitted_listed_and_cancelled(ask: Ask, aggregator: Aggregator) -> None:
    begun = ask("POST", "", json=PLAN)
    assert begun.status_code == 201
    session = begun.json()["session"]
    expected = {"name": "x", "state": "running", "round": 1, "rounds": 2, "attempt": 1, "doing": "waits for its hosts"}
    assert expected.items() <= begun.json().items()
    (listed,) = ask("GET", "", Scope.READER).json()["experiments"]
    assert listed == ask("GET", f"/{session}", Scope.READER).json() == begun.json()
    assert ask("POST", f"/{session}/cancel").json()["doing"] == "is being cancelled"
    (stored,) = aggregator.experiments.experiments()
    assert (stored.is_cancelled, stored.plan_name) == (True, "devnet.toml")


def test_who_may_not(ask: Ask) -> None:
    assert ask("POST", "", Scope.READER, json=PLAN).status_code == 403
    assert ask("POST", "", Scope.AGENT, json=PLAN).status_code == 403
    session = ask("POST", "", json=PLAN).json()["session"]
    assert ask("POST", f"/{session}/cancel", Scope.READER).status_code == 403
    assert ask("GET", f"/{session}", Scope.AGENT).status_code == 403


def test_problems(ask: Ask, aggregator: Aggregator) -> None:
    wrong = ask("POST", "", json={**PLAN, "plan": PLAN["plan"].replace("runs = 2", "run = 2")})
    assert (wrong.status_code, wrong.headers["content-type"]) == (409, "application/problem+json")
    assert wrong.json()["detail"] == "devnet.toml:5: experiment.run: unknown key; did you mean runs?"
    assert ask("POST", "", json={"name": "x"}).status_code == 422
    for path in ("/none", "/none/result", "/..%2F..%2Fetc/result"):
        assert ask("GET", path, Scope.READER).status_code == 404
    assert ask("POST", "/none/cancel").status_code == 404
    assert aggregator.store.sessions() == ()


def test_a_process_is_measured_by_one_experiment_at_a_time(ask: Ask, aggregator: Aggregator) -> None:
    """A crossover would swap the nodes of the other experiment, which goes on to call them what they were."""
    for name in ("g1", "g2", "g3"):
        aggregator.agents.greet(name, hello([OfferedTarget("node")]), aggregator.clock_ns())
    first = ask("POST", "", json=PLAN).json()["session"]
    overlapping = {"f3": "base", "b3": "base", "b2": "base", "g1": "fat", "g2": "fat", "g3": "fat"}
    refused = ask("POST", "", json={**PLAN, "plan": agent_plan(overlapping)})
    assert refused.status_code == 409
    assert refused.json()["detail"] == f"experiment {first} measures node of agent f3: wait for its end, or cancel it"
    assert len(aggregator.store.sessions()) == 1
    for name in ("h1", "h2", "h3"):
        aggregator.agents.greet(name, hello([OfferedTarget("node")]), aggregator.clock_ns())
    others = {"h1": "base", "h2": "base", "h3": "base", "g1": "fat", "g2": "fat", "g3": "fat"}
    assert ask("POST", "", json={**PLAN, "plan": agent_plan(others)}).status_code == 201


def test_python_processes_take_part_without_a_profile_only(ask: Ask, aggregator: Aggregator) -> None:
    said = hello([OfferedTarget("node", profiler=TargetProfiler.PYSPY)])
    aggregator.agents.greet("f3", said, aggregator.clock_ns())
    refused = ask("POST", "", json={**PLAN, "plan": agent_plan(SIX, profile="separate")})
    assert refused.status_code == 409
    assert "agent f3: target 'node' is recorded by py-spy, which begins when it has found" in refused.json()["detail"]
    assert aggregator.store.sessions() == ()
    assert ask("POST", "", json={**PLAN, "plan": agent_plan(SIX, profile="none")}).status_code == 201


def test_nobody_swaps_a_process_that_an_experiment_measures(ask: Ask, aggregator: Aggregator) -> None:
    aggregator.agents.greet("b1", hello([OfferedTarget("node", ("base", "fat"))]), aggregator.clock_ns())
    swap = {"agent": "b1", "order": to_json(JobOrder("", JobKind.SWAP, "node", "fat", "", "", 0))}
    session = ask("POST", "", json=PLAN).json()["session"]
    refused = ask("POST", "/../jobs", json=swap)
    assert (refused.status_code, refused.json()["title"]) == (409, "An experiment measures it")
    assert session in refused.json()["detail"]
    (open_one,) = aggregator.experiments.experiments()
    aggregator.experiments.keep(session, replace(open_one.course, state=CourseState.CANCELLED))
    assert ask("POST", "/../jobs", json=swap).status_code == 201


def test_nothing_to_show_yet(ask: Ask) -> None:
    session = ask("POST", "", json=PLAN).json()["session"]
    answer = ask("GET", f"/{session}/result", Scope.READER)
    assert answer.status_code == 409
    assert f"session {session}: no finished run of base" in answer.json()["detail"]
