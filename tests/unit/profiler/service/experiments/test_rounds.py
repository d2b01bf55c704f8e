"""Experiments over simulated agents: what counts, what is made again, and how each ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from profiler.protocol.clock import ClockOffset
from profiler.protocol.hello import PROTOCOL_VERSION
from profiler.protocol.job import JobKind
from profiler.service.experiments.course import CourseState
from profiler.service.experiments.experiment_progress import experiment_progress
from profiler.store.records import SessionState
from support.simulated_agents import SECOND, Deed, hello
from support.simulated_rounds import SESSION, SimulatedExperiment, agent_plan, carry_out, simulated

SIX = {"b1": "base", "b2": "base", "b3": "base", "f1": "fat", "f2": "fat", "f3": "fat"}


def deeds(**planned: Deed) -> dict[tuple[str, int], Deed]:
    """``f1_0=Deed.LATE``: the first job of f1."""
    return {(name.rpartition("_")[0], int(name.rpartition("_")[2])): deed for name, deed in planned.items()}


def carried_out(text: str, planned: dict[tuple[str, int], Deed]) -> SimulatedExperiment:
    return carry_out(text, lambda node, number: planned.get((node, number), Deed.DONE))


def failures(experiment: SimulatedExperiment) -> list[tuple[str, int, str]]:
    """(node, round, reason) of every window that does not count."""
    return sorted((each.node, each.round, each.failure) for each in experiment.shelf.windows.values() if each.failure)


def test_all_nodes_of_a_round_begin_at_one_instant() -> None:
    experiment = carried_out(agent_plan(SIX, profile="separate"), {})
    assert experiment.course.state is CourseState.FINISHED
    orders = [job.order for job in experiment.hosts.jobs.stored.values()]
    assert len(orders) == 6 * 2 * 2, "six nodes, two rounds, plain and profiled"
    assert len({(order.start_at_ns, order.round, order.is_profiled) for order in orders}) == 4
    assert len(experiment.counted()) == 24
    assert all(job.order.start_at_ns - job.ordered_ns == 15 * SECOND for job in experiment.hosts.jobs.stored.values())
    assert (experiment.shelf.rounds, experiment.shelf.state) == ([0, 1], SessionState.FINISHED)


REASONS = {
    Deed.LATE: "began 80 ms too late, at most 51 ms are allowed",
    Deed.EARLY: "began 80 ms too early, at most 51 ms are allowed",
    Deed.REFUSED: "refused: may not",
    Deed.FAILED: "failed: broke",
    Deed.LOST_BEFORE: "the job was not taken in time",
    Deed.LOST_WHILE: "lost: silent",
    Deed.LOST_AFTER: "lost: silent",
    Deed.NO_CAPTURE: "it made no capture",
    Deed.BAD_CAPTURE: "target restarted",
    Deed.NEVER_ARRIVES: "its capture did not arrive in time",
}


@pytest.mark.parametrize("deed", REASONS)
def test_round_is_made_again_for_one_node(deed: Deed) -> None:
    """The clock of an agent is known to 1 ms, so 51 ms are allowed.  Five good windows of the first attempt are marked."""
    experiment = carried_out(agent_plan(SIX), {("f1", 0): deed})
    assert (experiment.course.state, experiment.course.retries_left) == (CourseState.FINISHED, 1)
    assert len(experiment.counted()) == 12
    failed = failures(experiment)
    own = [reason for node, _, reason in failed if node == "f1"]
    assert REASONS[deed] in own
    assert sum(f"made again with its round, because of f1: {REASONS[deed]}" == reason for _, _, reason in failed) == 5


def test_node_that_fails_twice_is_left_behind_and_comes_back() -> None:
    experiment = carried_out(agent_plan(SIX, runs=4), deeds(f1_0=Deed.FAILED, f1_1=Deed.FAILED, f1_2=Deed.FAILED))
    assert (experiment.course.state, experiment.course.retries_left) == (CourseState.FINISHED, 1)
    assert [number for node, _, number, _ in experiment.counted() if node == "f1"] == [2, 3]
    assert [number for node, _, number, _ in experiment.counted() if node == "f2"] == [0, 1, 2, 3]
    assert [(number, reason) for node, number, reason in failures(experiment) if node == "f1"] == [
        (0, "failed: broke"),
        (0, "failed: broke"),
        (1, "failed: broke"),
    ]


def test_excluded_node_is_listed_and_never_waited_for() -> None:
    text = agent_plan(SIX | {"f4": "fat"}, excluded="f4")
    experiment = carried_out(text, {("f4", number): Deed.LOST_WHILE for number in range(9)} | deeds(f4_1=Deed.DONE))
    assert (experiment.course.state, experiment.course.retries_left) == (CourseState.FINISHED, 2)
    assert {reason for node, _, reason in failures(experiment) if node == "f4"} == {"excluded by the plan"}
    assert len(experiment.counted()) == 12


def test_arm_without_its_partner_does_not_count() -> None:
    """Without retries: in the second of three rounds no window of fat counts, so none of base does."""
    planned = {(node, 1): Deed.FAILED for node in ("f1", "f2", "f3")}
    experiment = carried_out(agent_plan(SIX, runs=3, more="retries = 0"), planned)
    assert experiment.course.state is CourseState.FINISHED
    assert {number for _, _, number, _ in experiment.counted()} == {0, 2}
    reasons = {reason for node, number, reason in failures(experiment) if node.startswith("b") and number == 1}
    assert reasons == {"no window of another variant counts beside it"}


def test_experiment_ends_when_a_variant_has_nobody_left() -> None:
    planned = {(node, number): Deed.FAILED for node in ("f1", "f2", "f3") for number in range(1, 9)}
    experiment = carried_out(agent_plan(SIX, runs=5), planned)
    assert experiment.course.state is CourseState.FAILED
    assert experiment.course.detail == "no node of fat is left (f1: failed: broke; f2: failed: broke; f3: failed: broke)"
    assert experiment.shelf.state is SessionState.INTERRUPTED
    assert {number for _, _, number, _ in experiment.counted()} == {0}, "what was measured is kept"


def test_host_that_is_silent_is_waited_for() -> None:
    experiment = simulated(agent_plan(SIX), lambda node, number: Deed.DONE)
    hosts, coordinator = experiment.hosts, experiment.coordinator()
    hosts._away_until_ns["b2"] = hosts.now_ns + 200 * SECOND
    hosts.pass_time(100)
    coordinator.tick()
    assert not hosts.jobs.stored, "nothing is ordered while a host is away"
    hosts.pass_time(110)
    coordinator.tick()
    assert len(hosts.jobs.stored) == 6
    assert experiment.course.retries_left == 2


def test_host_whose_clock_nobody_knows_is_not_believed_to_have_begun_in_time() -> None:
    """An exchange that took 10 s leaves 5 s of doubt: its window may have been another one than that of the other hosts."""
    experiment = simulated(agent_plan(SIX), lambda node, number: Deed.DONE)
    hosts, coordinator = experiment.hosts, experiment.coordinator()
    hosts.add("b2", replace(hello(host="b2"), clock=ClockOffset(0, 5 * SECOND)))
    coordinator.tick()
    assert not hosts.jobs.stored
    hosts.pass_time(310)
    for _ in range(40):
        coordinator.tick()
        hosts.pass_time(5)
    assert experiment.counted()
    assert "b2" not in {node for node, _, _, _ in experiment.counted()}
    assert {reason for node, _, reason in failures(experiment) if node == "b2"} == {
        "its agent's clock may be wrong by 5000 ms, at most 500 ms are allowed"
    }


def test_host_of_another_version_is_asked_for_nothing_until_it_is_upgraded() -> None:
    """As when the aggregator was upgraded in the middle of an experiment: an older agent would not know all it is asked."""
    experiment = simulated(agent_plan(SIX), lambda node, number: Deed.DONE)
    hosts, coordinator = experiment.hosts, experiment.coordinator()
    hosts.agents.greet("b2", replace(hello(host="b2"), protocol=PROTOCOL_VERSION - 1), hosts.now_ns)
    for _ in range(3):
        coordinator.tick()
        hosts.pass_time(5)
    assert not hosts.jobs.stored
    hosts.agents.greet("b2", hello(host="b2"), hosts.now_ns)
    for _ in range(60):
        coordinator.tick()
        hosts.pass_time(5)
    assert experiment.course.state is CourseState.FINISHED
    assert {node for node, _, _, _ in experiment.counted()} == set(SIX)


@pytest.mark.parametrize("step_s", [800, -800])
def test_a_clock_that_is_set_neither_ends_an_experiment_nor_stops_it_for_so_long(step_s: int) -> None:
    """One host is away, and all others have not been heard by the new clock yet."""
    experiment = simulated(agent_plan(SIX), lambda node, number: Deed.DONE)
    hosts, coordinator = experiment.hosts, experiment.coordinator()
    hosts._away_until_ns["b2"] = 10**18
    hosts.pass_time(100)
    coordinator.tick()
    hosts.now_ns += step_s * SECOND
    coordinator.clock_was_set(step_s * SECOND)
    coordinator.tick()
    for _ in range(120):
        hosts.pass_time(5)
        coordinator.tick()
    assert experiment.course.state in (CourseState.RUNNING, CourseState.FINISHED)
    assert {node for node, _, _, _ in experiment.counted()} == set(SIX) - {"b2"}


def test_crossover_swaps_every_node_before_each_half() -> None:
    text = agent_plan(dict.fromkeys(("n1", "n2", "n3"), ""), design="crossover", runs=2, more='settle = "60 s"')
    experiment = carried_out(text, {})
    assert experiment.course.state is CourseState.FINISHED
    jobs = list(experiment.hosts.jobs.stored.values())
    swaps = [(job.order.instance, job.order.variant) for job in jobs if job.order.kind is JobKind.SWAP]
    assert swaps == [("n1", "base"), ("n2", "fat"), ("n3", "base"), ("n1", "fat"), ("n2", "base"), ("n3", "fat")]
    expected = [(node, variant) for node in ("n1", "n2", "n3") for variant in ("base", "fat") for _ in range(2)]
    assert sorted((node, variant) for node, variant, _, _ in experiment.counted()) == expected
    # Agents look whether the process has really been running for so long.
    assert {(job.order.kind, job.order.settle_s) for job in jobs} == {(JobKind.SWAP, 0.0), (JobKind.ATTACH, 60.0)}
    for half in (0, 1):
        of_half = [job for job in jobs if job.order.round // 2 == half]
        swapped_ns = max(job.reported_ns for job in of_half if job.order.kind is JobKind.SWAP)
        first_ns = min(job.order.start_at_ns for job in of_half if job.order.kind is JobKind.ATTACH)
        assert first_ns >= swapped_ns + 60 * SECOND


def test_node_that_was_not_swapped_stays_out_of_that_half() -> None:
    text = agent_plan(dict.fromkeys(("n1", "n2", "n3", "n4"), ""), design="crossover", runs=2)
    experiment = carried_out(text, deeds(n4_0=Deed.FAILED, n4_1=Deed.FAILED))
    assert experiment.course.state is CourseState.FINISHED
    assert [number for node, _, number, _ in experiment.counted() if node == "n4"] == [2, 3]
    assert [(n, reason) for node, n, reason in failures(experiment) if node == "n4"] == [
        (0, "not swapped: failed: broke"),
        (1, "not swapped: failed: broke"),
    ]


def test_a_swap_that_was_given_up_is_cancelled_before_anything_else_is_asked_of_the_node() -> None:
    """Its agent may come back in the other half, and would then make the node the variant of the half before."""
    text = agent_plan(dict.fromkeys(("n1", "n2", "n3", "n4"), ""), design="crossover", runs=2)
    experiment = carried_out(text, deeds(n4_0=Deed.LOST_BEFORE, n4_1=Deed.LOST_BEFORE, n4_2=Deed.LOST_BEFORE))
    assert experiment.course.state is CourseState.FINISHED
    of_node = [job for job in experiment.hosts.jobs.stored.values() if job.order.instance == "n4"]
    assert len(of_node) > 1
    assert all(job.report.state.is_final for job in of_node)
    for earlier, later in pairwise(of_node):
        assert earlier.reported_ns <= later.ordered_ns, "two jobs of one node are open at a time"


def test_cancelled_while_it_measures() -> None:
    experiment = simulated(agent_plan(SIX), lambda node, number: Deed.DONE)
    coordinator = experiment.coordinator()
    coordinator.tick()
    experiment.hosts.pass_time(5)
    experiment.hosts.pass_time(15)
    experiment.experiments.ask_cancel(SESSION)
    coordinator.tick()
    assert experiment.course.state is CourseState.CANCELLED
    assert {job.report.state for job in experiment.hosts.jobs.stored.values()} == {"cancelled"}
    assert experiment.shelf.state is SessionState.INTERRUPTED
    before = dict(experiment.hosts.jobs.stored)
    experiment.hosts.pass_time(100)
    coordinator.tick()
    assert experiment.hosts.jobs.stored == before, "nothing follows"


def test_progress_says_why_a_round_is_made_again_and_forgets_it_with_the_next_round() -> None:
    experiment = simulated(
        agent_plan(SIX, runs=3), lambda node, number: Deed.FAILED if (node, number) == ("f1", 0) else Deed.DONE
    )
    coordinator, seen = experiment.coordinator(), []
    for _ in range(600):
        coordinator.tick()
        experiment.hosts.pass_time(1)
        progress = experiment_progress(experiment.experiments.stored[SESSION], experiment.hosts.jobs.stored)
        if (progress.round, progress.attempt, progress.again) not in seen:
            seen.append((progress.round, progress.attempt, progress.again))
    assert seen[:3] == [(1, 1, ""), (1, 2, "f1: failed: broke"), (2, 1, "")]


def test_progress_names_what_is_waited_for() -> None:
    experiment = simulated(agent_plan(SIX, runs=3), lambda node, number: Deed.SLOW_CAPTURE)
    coordinator = experiment.coordinator()
    coordinator.tick()
    experiment.hosts.pass_time(1)
    submitted = experiment.experiments.stored[SESSION]
    progress = experiment_progress(submitted, experiment.hosts.jobs.stored)
    assert (progress.round, progress.rounds, progress.attempt, progress.doing) == (1, 3, 1, "measures")
    assert [(node.node, node.variant, node.doing) for node in progress.nodes][:2] == [
        ("b1", "base", "accepted"),
        ("b2", "base", "accepted"),
    ]
    experiment.hosts.pass_time(60)
    coordinator.tick()
    submitted = experiment.experiments.stored[SESSION]
    progress = experiment_progress(submitted, experiment.hosts.jobs.stored)
    assert (progress.doing, progress.nodes[0].doing) == ("waits for captures", "done, its capture may be on its way")
    ended = replace(submitted, course=replace(submitted.course, state=CourseState.FAILED, detail="why"))
    assert (experiment_progress(ended, {}).doing, experiment_progress(ended, {}).detail) == ("", "why")
