"""Plans that name the same process, submitted at one instant: one of them begins, whoever was looked at first."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from profiler.errors import UsageError
from profiler.experiment.plan.experiment_plan import ExperimentPlan
from profiler.protocol.hello import OfferedTarget
from profiler.service.access.token_registry import Scope
from profiler.service.aggregator import Aggregator, open_aggregator
from profiler.service.api.app import make_app
from profiler.service.api.settings import ServiceSettings
from profiler.service.experiments import in_use, submission
from profiler.service.experiments.course import CourseState
from profiler.service.experiments.experiment_board import SubmittedExperiment
from profiler.service.experiments.submission import checked_plan, submit
from support.aggregators import add_token
from support.simulated_agents import hello
from support.simulated_rounds import agent_plan

NODES = tuple(f"n{number}" for number in range(11))
# They have one process in common.
PLANS = tuple(
    agent_plan({name: "base" if place < 3 else "fat" for place, name in enumerate(nodes)}) for nodes in (NODES[:6], NODES[5:])
)
AT_ONCE = 4
TURNS = 10


def slowly_check_free(plan: ExperimentPlan, experiments: Iterable[SubmittedExperiment]) -> None:
    """As on a busy machine: time passes between the look at the others and the addition."""
    in_use.check_free(plan, experiments)
    time.sleep(0.02)


@pytest.fixture
def aggregator(tmp_path: Path) -> Aggregator:
    made = open_aggregator(tmp_path / "store", create=True)
    for name in NODES:
        made.agents.greet(name, hello([OfferedTarget("node")], host=name), made.clock_ns())
    return made


def check_one_began(aggregator: Aggregator) -> str:
    """Its session; it is ended, so that the next turn finds the process free."""
    (begun,) = aggregator.experiments.experiments(only_open=True)
    aggregator.experiments.keep(begun.session, replace(begun.course, state=CourseState.CANCELLED))
    return begun.session


def test_by_requests_to_one_aggregator(aggregator: Aggregator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "check_free", slowly_check_free)
    headers = {"Authorization": f"Bearer {add_token(aggregator, 'me', Scope.OPERATOR)}"}
    transport = httpx.ASGITransport(make_app(aggregator, ServiceSettings()))

    async def submitted_at_once() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=transport, base_url="http://aggregator", headers=headers) as client:
            bodies = [{"plan": PLANS[number % 2], "name": "plan.toml"} for number in range(AT_ONCE)]
            return await asyncio.gather(*(client.post("/api/v1/experiments", json=body) for body in bodies))

    begun = []
    for _ in range(TURNS):
        answers = asyncio.run(submitted_at_once())
        assert sorted(each.status_code for each in answers) == [201] + [409] * (AT_ONCE - 1)
        begun.append(check_one_began(aggregator))
        refusals = {each.json()["detail"] for each in answers if each.status_code == 409}
        assert all(f"experiment {begun[-1]} measures node of agent " in told for told in refusals)
    assert {session.name for session in aggregator.store.sessions()} == set(begun), "those refused left nothing behind"


def submitted_by_another_process(store: Path, number: int, at_ns: int) -> str:
    """The session, or why none began."""
    submission.check_free = slowly_check_free
    aggregator = open_aggregator(store, create=False)
    plan = checked_plan(PLANS[number], "plan.toml", aggregator.agents)
    time.sleep(max(0.0, (at_ns - time.monotonic_ns()) / 1e9))
    try:
        return submit(plan, aggregator.store, aggregator.experiments, aggregator.clock_ns()).session
    except UsageError as error:
        return str(error)


def test_by_two_processes_on_one_store(aggregator: Aggregator) -> None:
    directory = aggregator.store.directory
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for _ in range(TURNS):
            at_ns = time.monotonic_ns() + 100_000_000
            said = list(pool.map(submitted_by_another_process, [directory] * 2, [0, 1], [at_ns] * 2))
            session = check_one_began(aggregator)
            assert sorted(said) == sorted(
                [session, f"experiment {session} measures node of agent n5: wait for its end, or cancel it"]
            )
