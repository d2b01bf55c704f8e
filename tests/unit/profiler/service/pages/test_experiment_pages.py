"""The page of an experiment: how far it is while agents run it, and what it found."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.experiment.experiment_session import DOCUMENT, encode_record
from profiler.model.experiment import Design, ExperimentRecord, VariantFacts
from profiler.protocol.job import JobReport, JobState
from profiler.service.access.token_registry import Scope
from profiler.service.aggregator import Aggregator
from profiler.service.experiments.course import NodeTask
from profiler.service.experiments.submission import checked_plan, submit
from profiler.service.jobs.unjudged import UNJUDGED
from profiler.store.records import SessionStart, SessionState
from support.aggregators import aggregator_in, attach_order, hello
from support.asked_pages import heading, local_visitor, logged_in
from support.simulated_rounds import agent_plan
from support.small_captures import small_capture, small_info

NODES = {"b1": "base", "b2": "base", "b3": "base", "f1": "fat", "f2": "fat", "f3": "fat"}


@pytest.fixture
def aggregator(tmp_path: Path) -> Aggregator:
    made = aggregator_in(tmp_path)
    for name in NODES:
        made.agents.greet(name, hello(), made.clock_ns())
    return made


def submitted(aggregator: Aggregator) -> str:
    """A parallel experiment of six nodes, in whose first round one measures and the other has failed; its session."""
    plan = checked_plan(agent_plan(NODES), "plan.toml", aggregator.agents)
    experiment = submit(plan, aggregator.store, aggregator.experiments, aggregator.clock_ns())
    session, tasks = experiment.session, []
    for agent, state in (("b1", JobState.RUNNING), ("f1", JobState.FAILED)):
        job = f"job-{agent}"
        aggregator.jobs.add(agent, attach_order(job, session=session), aggregator.clock_ns())
        aggregator.jobs.report(agent, job, JobReport(state, f"word of {agent}"), aggregator.clock_ns())
        tasks.append(NodeTask(agent, job))
    aggregator.experiments.keep(session, replace(experiment.course, tasks=tuple(tasks)))
    return session


def test_progress_of_a_running_experiment(aggregator: Aggregator) -> None:
    session = submitted(aggregator)
    answered = local_visitor(aggregator).get(f"/experiments/{session}")
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", answered.text))
    assert (answered.status_code, heading(answered)) == (200, "x")
    assert "round 1 of 2: waits for its hosts" in text
    assert re.search(r"b1 b1 base running: word of b1", text)
    assert re.search(r"f1 f1 fat failed: word of f1", text)
    assert " 1 1 running, 1 failed f1: failed, word of f1" in text
    assert "unfinished" not in text
    assert '<span class="state running">' in local_visitor(aggregator).get("/experiments").text
    # Brought up to date by itself, with and without the script; nothing is worked out before somebody asks for it.
    assert "data-live" in answered.text
    assert '<noscript><meta http-equiv="refresh"' in answered.text
    assert f'href="/experiments/{session}?so_far=yes"' in answered.text


def test_what_a_running_experiment_found_so_far_may_be_nothing(aggregator: Aggregator) -> None:
    session = submitted(aggregator)
    answered = local_visitor(aggregator).get(f"/experiments/{session}?so_far=yes")
    assert answered.status_code == 422
    assert f"session {session}: no finished run of base" in answered.text
    assert "data-live" not in answered.text


def test_what_is_shown_of_a_running_experiment_leaves_out_what_is_not_judged(aggregator: Aggregator) -> None:
    """A window that began too late is there long before its round is judged, which waits for the slowest of its captures."""
    session, store = submitted(aggregator), aggregator.store
    costs = {"b1": 100, "b2": 101, "b3": 102, "f1": 70, "f2": 71, "f3": 72}

    def add(node: str, length: int, round_number: int, failure: str) -> None:
        info = small_info(NODES[node], round_number, session=session, failure=failure)
        identity = replace(info.identity, instance=node)
        store.add(small_capture({"main/hash": length}, replace(info, identity=identity)), origin=f"{node} {round_number}")

    for node, length in costs.items():
        add(node, length, 0, "")
    add("b1", 900, 1, UNJUDGED)
    shown = local_visitor(aggregator).get(f"/experiments/{session}/result.json?by=function")
    assert shown.status_code == 200, shown.text
    (candidate,) = shown.json()["conditions"][0]["candidates"]
    expected = {"baseline": [100, 101, 102], "candidate": [70, 71, 72]}
    assert candidate["total"]["values"] == {arm: [value * 1_000_000 for value in values] for arm, values in expected.items()}
    assert UNJUDGED in local_visitor(aggregator).get(f"/experiments/{session}?so_far=yes").text


def test_operators_end_an_experiment(aggregator: Aggregator) -> None:
    session = submitted(aggregator)
    path = f"/experiments/{session}"
    reader, operator = logged_in(aggregator, Scope.READER), logged_in(aggregator, Scope.OPERATOR)
    assert "Cancel this experiment" not in reader.get(path).text
    token = operator.form_token(path)
    assert reader.submit(f"{path}/cancel", {"form_token": reader.form_token(path)}).status_code == 403
    assert operator.submit(f"{path}/cancel", {"form_token": "0" * 64}).status_code == 403
    assert not aggregator.experiments.experiment(session).is_cancelled  # type: ignore[union-attr]
    assert operator.submit(f"{path}/cancel", {"form_token": token}).headers["location"] == path
    assert aggregator.experiments.experiment(session).is_cancelled  # type: ignore[union-attr]
    assert "is being cancelled" in operator.get(path).text
    assert operator.submit("/experiments/none/cancel", {"form_token": token}).status_code == 404


def test_the_result_of_an_experiment_of_this_store(aggregator: Aggregator) -> None:
    """100 ms in every run of base, 70 in those of fat: 30 ms less in each of four rounds, without any spread."""
    store = aggregator.store
    session = store.begin_session(SessionStart("2026-12-01T10:00:00+00:00", "n", ("epoch",), 0, has_rounds=True))
    variants = (VariantFacts("base", note="as <released>"), VariantFacts("fat"))
    record = ExperimentRecord("epochs", Design.INTERLEAVED, 4, 1, "base", ("epoch",), variants)
    store.put_document(session, DOCUMENT, encode_record(record))
    for round_number in range(4):
        for name, length in (("base", 100), ("fat", 70)):
            store.add(small_capture({"main/hash": length}, small_info(name, round_number, session=session)))
        store.finish_round(session, round_number)
    store.finish_session(session, SessionState.FINISHED)
    visitor = local_visitor(aggregator)
    assert f'href="/experiments/{session}"' in visitor.get("/experiments").text
    answered = visitor.get(f"/experiments/{session}?by=function")
    assert (answered.status_code, heading(answered)) == (200, "epochs")
    row = re.search(r"<tr[^>]*><th scope=\"row\"><bdi>hash</bdi></th>(.*?)</tr>", answered.text)
    assert row is not None
    assert re.findall(r">([^<>]+)</td>", row[1])[:3] == ["100.0", "70.0", "-30.0"]
    assert "as &lt;released&gt;" in answered.text
    kept = visitor.get(f"/experiments/{session}/result.md?by=function")
    assert kept.headers["content-disposition"] == f'attachment; filename="epochs-{session}.md"'
    assert kept.text.startswith("## epochs\n")
    assert visitor.get(f"/experiments/{session}/result.speedscope.json").status_code == 404
