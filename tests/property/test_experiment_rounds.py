"""Whatever agents do, and wherever the aggregator is killed: every round counts once or not at all, never half."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiler.service.experiments.course import CourseState
from support.simulated_agents import GOOD_DEEDS, Deed
from support.simulated_rounds import SimulatedExperiment, agent_plan, carry_out

PARALLEL = {"b1": "base", "b2": "base", "b3": "base", "f1": "fat", "f2": "fat", "f3": "fat"}
DESIGNS = {
    "parallel": agent_plan(PARALLEL, profile="none", runs=3),
    "separate": agent_plan(PARALLEL, profile="separate", runs=2, more="retries = 1", excluded=""),
    "crossover": agent_plan(
        dict.fromkeys(("n1", "n2", "n3", "n4"), ""), design="crossover", runs=2, more='settle = "20 s"', excluded="n4"
    ),
}
NODES = [*PARALLEL, "n1", "n2", "n3", "n4"]
# By node, or "b" and "f" for all nodes of an arm; the number of the node's job; what becomes of it.
DEEDS = st.lists(st.tuples(st.sampled_from([*NODES, "b", "f"]), st.integers(0, 5), st.sampled_from(Deed)), max_size=8)


def check(experiment: SimulatedExperiment) -> None:
    plan, course = experiment.plan, experiment.course
    counted = experiment.counted()
    assert max(Counter(counted).values(), default=1) == 1, "a window counts twice"
    excluded = {target.node for target in plan.targets if target.is_excluded}
    assert not excluded & {node for node, *_ in counted}
    by_moment: dict[tuple[int, str], set[str]] = {}
    for _, variant, number, mode in counted:
        by_moment.setdefault((number, mode), set()).add(variant)
    for moment, variants in by_moment.items():
        assert "base" in variants, (moment, "nothing to hold it against")
        assert len(variants) > 1, (moment, "nothing that is held against it")
    for window in experiment.shelf.windows.values():
        job = experiment.hosts.deeds.get(window.origin.removeprefix("capture of "))
        if job not in (None, *GOOD_DEEDS):
            assert window.failure, f"{job} counts"
    assert set(experiment.experiments.counts) >= {w.origin for w in experiment.shelf.windows.values() if not w.failure}
    if course.state is CourseState.FINISHED:
        rounds = plan.runs * (2 if plan.design == "crossover" else 1)
        assert sorted(set(experiment.shelf.rounds)) == list(range(rounds)), "a round is missing"
        modes = 2 if plan.profile == "separate" else 1
        nodes = {target.node for target in plan.targets}
        told = {(each.node, each.round, each.mode) for each in experiment.shelf.windows.values()}
        assert len(told) == rounds * modes * len(nodes), "nothing is told of a window"
    assert 0 <= course.retries_left <= plan.retries
    assert not experiment.hosts.jobs.jobs(only_open=True), "a job goes on after the end"


@pytest.mark.parametrize("design", DESIGNS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(deeds=DEEDS, kills=st.lists(st.integers(0, 60), max_size=4), down_s=st.sampled_from([0.0, 12.0, 200.0]))
def test_every_round_counts_exactly_once(
    design: str, deeds: list[tuple[str, int, Deed]], kills: list[int], down_s: float
) -> None:
    planned = {(node, number): deed for node, number, deed in deeds}

    def deed_of(node: str, number: int) -> Deed:
        return planned.get((node, number)) or planned.get((node[0], number), Deed.DONE)

    check(carry_out(DESIGNS[design], deed_of, kills, down_s))


@pytest.mark.parametrize("design", DESIGNS)
@settings(max_examples=20, deadline=None)
@given(kills=st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_kills_alone_cost_no_window(design: str, kills: list[int]) -> None:
    experiment = carry_out(DESIGNS[design], lambda node, number: Deed.DONE, kills)
    check(experiment)
    plan = experiment.plan
    rounds = plan.runs * (2 if plan.design == "crossover" else 1) * (2 if plan.profile == "separate" else 1)
    nodes = {target.node for target in plan.targets if not target.is_excluded}
    assert len(experiment.counted()) == rounds * len(nodes)
    assert experiment.course.retries_left == plan.retries
    assert experiment.kills >= 1
