"""`slotscope serve`, and what a power cut would leave of its store at the moment at which each answer goes to the socket: all
that the answer says."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from collectors.agent.connection.server_connection import ServerAddress, ServerConnection
from profiler.codec.container import decode
from profiler.codec.json_values import to_json
from profiler.protocol.job import JobReport, JobState
from profiler.service.access.token_registry import Scope
from profiler.service.aggregator import open_aggregator
from profiler.service.api.answers import JobSubmission
from profiler.service.ingest.upload_records import UploadPhase
from support import aggregator_files
from support.aggregators import attach_order, hello
from support.held_calls import SENDS, Call, CannotHold, Verdict, held_calls
from support.kill_points import quick_directory
from support.power_cuts import DurableTree
from support.served_aggregator import token_of
from support.uploading import AGENT, JOB, capture_bytes, offer_of, open_bench

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = capture_bytes(repeat=400)
HALF = len(CAPTURE) // 2


@dataclass(slots=True)
class Answers:
    """``cuts``: of every answer that says yes, the store as a power cut would have left it when the first byte was sent."""

    tree: DurableTree
    place: Path
    cuts: list[Path] = field(default_factory=list)

    def judge(self, call: Call) -> Verdict:
        self.tree.saw(call)
        if call.name in SENDS and call.sent.startswith(b"HTTP/1.1 2"):
            self.cuts.append(self.tree.cut(self.place / f"answer-{len(self.cuts)}"))
        return Verdict.GO_ON


def test_what_an_answer_says_survives_a_power_cut_at_that_moment() -> None:
    with quick_directory() as place:
        store = place / "store"
        open_bench(store)
        agent, operator = token_of(store, AGENT, Scope.AGENT), token_of(store, "alice", Scope.OPERATOR)
        answers = Answers(DurableTree(store), place)
        command = [sys.executable, "-m", "profiler.cli.main", "--store", str(store), "serve", "--port", "0"]
        try:
            with held_calls(command, answers.judge, {**os.environ, "PYTHONPATH": str(ROOT)}) as process:
                assert process.stdout is not None
                url = process.stdout.readline().split()[-1]
                ordered = ask(url, agent, operator)
        except CannotHold as error:
            pytest.skip(str(error))
        answers.tree.close()
        check(answers.cuts, ordered)


def ask(url: str, agent: str, operator: str) -> str:
    """One answer after the other; the ID of the job that was ordered."""
    connection, offer = ServerConnection(ServerAddress(url, agent)), offer_of(CAPTURE)
    connection.hello(hello())
    headers = {"Authorization": f"Bearer {operator}"}
    submission = to_json(JobSubmission(AGENT, attach_order()))
    ordered = httpx.post(f"{url}/api/v1/jobs", json=submission, headers=headers, trust_env=False)
    assert ordered.status_code == 201, ordered.text
    assert connection.offer(offer).received_bytes == 0
    assert connection.send(offer.sha256, 0, CAPTURE[:HALF]).received_bytes == HALF
    assert connection.send(offer.sha256, HALF, CAPTURE[HALF:]).received_bytes == len(CAPTURE)
    assert connection.commit(offer.sha256).refusal == ""
    assert connection.offer(offer).is_committed
    connection.report(JOB, JobReport(JobState.DONE, captures=(offer.sha256,)))
    connection.close()
    return str(ordered.json()["order"]["id"])


def check(cuts: list[Path], ordered: str) -> None:
    sha256 = offer_of(CAPTURE).sha256
    after_hello, after_order, after_offer, after_half, after_all, after_commit, after_offer_again, after_report = cuts
    assert [known.name for known in open_aggregator(after_hello, create=False).agents.agents()] == [AGENT]
    assert ordered in aggregator_files.jobs(after_order)
    for cut, received in ((after_offer, 0), (after_half, HALF), (after_all, len(CAPTURE))):
        record = open_aggregator(cut, create=False).ingest.records.find(AGENT, sha256)
        assert record is not None
        assert (record.phase, record.received_bytes) == (UploadPhase.RECEIVING, received)
        assert received == 0 or (cut / "uploads" / f"{sha256}.{AGENT}").read_bytes() == CAPTURE[:received]
    for cut in (after_commit, after_offer_again, after_report):
        assert [run.origin for run in aggregator_files.runs(cut)] == [sha256]
        (file,) = (cut / "captures").glob("*/*.capture")
        assert len(decode(file.read_bytes(), "filed").samples) == 1200
    assert aggregator_files.jobs(after_report)[JOB].captures == (sha256,)
