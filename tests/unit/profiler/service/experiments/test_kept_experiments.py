"""Experiments in the aggregator's files: kept steps, marks on captures in the store, plans held against what agents offer."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.errors import UsageError
from profiler.experiment.experiment_session import stored_record
from profiler.model.run import HostFacts, RunIdentity, RunMode
from profiler.protocol.hello import OfferedTarget, OfferedWorkload
from profiler.service.aggregator import Aggregator, open_aggregator
from profiler.service.experiments.capture_shelf import MissedWindow, StoreShelf
from profiler.service.experiments.course import Course, CourseState, NodeTask, Stage
from profiler.service.experiments.submission import checked_plan, submit
from profiler.service.jobs.unjudged import UNJUDGED
from support.simulated_agents import hello
from support.simulated_rounds import agent_plan
from support.small_captures import small_capture, small_info

NOW_NS = 1_796_000_000_000_000_000
SIX = {"b1": "base", "b2": "base", "b3": "base", "f1": "fat", "f2": "fat", "f3": "fat"}


@pytest.fixture
def aggregator(tmp_path: Path) -> Aggregator:
    made = open_aggregator(tmp_path / "store", create=True)
    for name in SIX:
        made.agents.greet(name, hello([OfferedTarget("node", variants=("base", "fat"))], host=name), NOW_NS)
    return made


def submitted(aggregator: Aggregator) -> str:
    plan = checked_plan(agent_plan(SIX), "devnet.toml", aggregator.agents)
    return submit(plan, aggregator.store, aggregator.experiments, NOW_NS).session


def test_course_comes_back_from_the_file(aggregator: Aggregator, tmp_path: Path) -> None:
    session = submitted(aggregator)
    tasks = (NodeTask("b1", "job"), NodeTask("f1", problem="lost"))
    course = Course(5, 3, stage=Stage.MEASURING, turn=1, tasks=tasks, away=("f1",), unswapped=(tasks[1],), is_settled=True)
    aggregator.experiments.keep(session, course)
    again = open_aggregator(tmp_path / "store", create=False).experiments
    found = again.experiment(session)
    assert found is not None
    assert (found.course, found.plan_text, found.plan_name) == (course, agent_plan(SIX), "devnet.toml")
    assert [each.session for each in again.experiments(only_open=True)] == [session]
    again.keep(session, replace(course, state=CourseState.FINISHED))
    again.ask_cancel(session)
    assert again.experiments(only_open=True) == ()
    assert [each.is_cancelled for each in again.experiments()] == [False], "it had ended"


def test_captures_count_once(aggregator: Aggregator) -> None:
    session = submitted(aggregator)
    for _ in range(2):
        aggregator.experiments.count(session, ["aa", "bb"])
    assert aggregator.experiments.counted(session) == {"aa", "bb"}
    assert aggregator.experiments.counted("another") == frozenset()


def test_session_is_an_experiment_like_any_other(aggregator: Aggregator) -> None:
    session = submitted(aggregator)
    record = stored_record(aggregator.store, session)
    assert record is not None
    assert (record.name, record.design, record.baseline, record.plan_path) == ("x", "parallel", "base", "devnet.toml")
    assert [variant.name for variant in record.variants] == ["base", "fat"]


def test_capture_that_is_left_out_stays_with_its_reason(aggregator: Aggregator) -> None:
    session = submitted(aggregator)
    store, shelf = aggregator.store, StoreShelf(aggregator.store, lambda capture: "torn" if capture == "cc" else "")
    for origin, variant in (("aa", "base"), ("bb", "fat")):
        store.add(small_capture({"main/work": 7}, small_info(variant, session=session)), origin=origin)
    assert shelf.arrived(session, ["aa", "bb", "cc", "dd"]) == {"aa": "", "bb": "", "cc": "its capture was refused: torn"}
    for _ in range(2):
        assert shelf.leave_out(session, "aa", "made again")
    assert shelf.leave_out(session, "aa", "another reason")
    assert not shelf.leave_out(session, "dd", "was never here")
    # An agent of one experiment reports the capture of another one.
    assert shelf.arrived("20260101-000000-aaaa", ["bb"]) == {}
    assert not shelf.leave_out("20260101-000000-aaaa", "bb", "not its own")
    first, second = store.runs(session)
    assert (first.summary.failure, second.summary.failure) == ("made again", "")
    assert shelf.unmarked(session) == ("bb",)
    kept = store.load(first)
    assert (kept.info.outcome.failure, len(kept.samples), first.origin) == ("made again", 7, "aa")
    files = sorted(path.name for path in (store.directory / "captures" / session).glob("*.capture"))
    assert files == [Path(run.blob).name for run in (first, second)]


def test_capture_counts_from_the_judgement_of_its_round_on(aggregator: Aggregator) -> None:
    session = submitted(aggregator)
    store, shelf = aggregator.store, StoreShelf(aggregator.store, lambda capture: "")
    for origin, failure in (("aa", UNJUDGED), ("bb", UNJUDGED), ("cc", "the process ended")):
        store.add(small_capture({"main/work": 7}, small_info("base", session=session, failure=failure)), origin=origin)
    assert shelf.arrived(session, ["aa", "bb", "cc"]) == {"aa": "", "bb": "", "cc": "the process ended"}
    assert shelf.unmarked(session) == ("aa", "bb")
    before = [run.blob for run in store.runs(session)]
    for _ in range(2):
        shelf.count(session, "aa")
        shelf.count(session, "cc")
        shelf.count("20260101-000000-aaaa", "bb")
        assert shelf.leave_out(session, "bb", "began 80 ms too late")
    found = [(run.summary.failure, store.load(run).info.outcome.failure) for run in store.runs(session)]
    assert found == [("", "")] + [(why, why) for why in ("began 80 ms too late", "the process ended")]
    assert all(len(store.load(run).samples) == 7 for run in store.runs(session))
    # Pages keep answers for as long as the files are the same.
    assert [run.blob == blob for run, blob in zip(store.runs(session), before, strict=True)] == [False, False, True]
    assert not [blob for blob in before[:2] if (store.directory / "captures" / blob).exists()]


def test_damaged_capture_is_left_out_too(aggregator: Aggregator) -> None:
    session = submitted(aggregator)
    store = aggregator.store
    store.add(small_capture({"main/work": 7}, small_info("base", session=session)), origin="aa")
    (store.directory / "captures" / store.runs(session)[0].blob).write_bytes(b"no capture")
    assert StoreShelf(store, lambda capture: "").leave_out(session, "aa", "made again")
    assert [run.summary.failure for run in store.runs(session)] == ["made again"]


def test_missed_window_is_one_run_however_often_it_is_told(aggregator: Aggregator) -> None:
    session = submitted(aggregator)
    shelf = StoreShelf(aggregator.store, lambda capture: "")
    identity = RunIdentity(session, "fat", 1, RunMode.PLAIN, 7, instance="f1")
    for _ in range(2):
        shelf.add_missed(MissedWindow(identity, HostFacts(hostname="h"), "lost", NOW_NS), "key")
    (run,) = aggregator.store.runs(session)
    assert (run.summary.failure, run.summary.round, run.summary.hostname) == ("lost", 1, "h")
    assert run.origin == hashlib.sha256(b"key").hexdigest()


PAGE = '[[metric]]\nname = "m"\nprometheus = "m_seconds"\n'
REFUSED = {
    "unknown agent": (
        agent_plan(SIX).replace('"f3"', '"f33"'),
        r"devnet.toml:\d+: no agent 'f33' has said hello; did you mean f3",
    ),
    "unknown process": (
        agent_plan(SIX).replace('process = "node"', 'process = "nod"', 1),
        r"devnet.toml:\d+: agent b1: the agent offers no target 'nod' \(it offers node\)",
    ),
    "no page": (agent_plan(SIX) + PAGE, r"devnet.toml:\d+: agent b1: its agent.toml names no page of metrics for 'node'"),
    "too fast": (agent_plan(SIX, more="frequency = 9999"), "9999 Hz are more than the 4999 Hz that the agent allows"),
    "too long": (agent_plan(SIX).replace('"30 s"', '"2 h"'), "7200 s are more than the 3600 s that the agent allows"),
    "here": (
        '[experiment]\nname = "x"\ncommand = ["{binary}"]\n[[variant]]\nname = "a"\nbinary = "a"\n'
        '[[variant]]\nname = "b"\nbinary = "b"\n',
        "devnet.toml: its targets are not on agents",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_plan_that_agents_cannot_carry_out(aggregator: Aggregator, case: str) -> None:
    text, message = REFUSED[case]
    with pytest.raises(UsageError, match=message):
        checked_plan(text, "devnet.toml", aggregator.agents)
    assert aggregator.store.sessions() == ()


def test_process_that_cannot_be_swapped(aggregator: Aggregator) -> None:
    aggregator.agents.greet("b1", hello([OfferedTarget("node", variants=("base",))]), NOW_NS)
    text = agent_plan(SIX, design="crossover")
    with pytest.raises(UsageError, match=r"agent b1: target 'node' has no variant 'fat' \(it has base\)"):
        checked_plan(text, "devnet.toml", aggregator.agents)


def test_workload_in_a_variant_that_is_not_there(aggregator: Aggregator) -> None:
    for name in SIX:
        aggregator.agents.greet(name, hello(workloads=[OfferedWorkload("node", ("base",))]), NOW_NS)
    text = agent_plan(SIX).replace("process", "workload").replace('window = "30 s"\n', "")
    with pytest.raises(UsageError, match=r"agent f1: workload 'node' has no variant 'fat' \(it has base\)"):
        checked_plan(text, "devnet.toml", aggregator.agents)
