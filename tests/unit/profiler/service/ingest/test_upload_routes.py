"""Uploads over HTTP: what is answered, to whom, with which status."""

from __future__ import annotations

import asyncio
import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from profiler.codec.json_values import from_json, to_json
from profiler.protocol.addresses import UPLOAD, UPLOAD_COMMIT, UPLOADS, WANTED
from profiler.protocol.upload import LARGEST_CHUNK_BYTES, CommitResult, UploadState, WantedFiles
from profiler.service.access.token_registry import Scope
from profiler.service.aggregator import Aggregator, open_aggregator
from support.aggregators import AskedApp, add_token, asked
from support.uploading import AGENT, OTHER_AGENT, capture_bytes, offer_of, open_bench

DATA = capture_bytes(repeat=20)
OFFER = offer_of(DATA)
PLACE = UPLOAD.format(sha256=OFFER.sha256)
COMMIT = UPLOAD_COMMIT.format(sha256=OFFER.sha256)


@pytest.fixture
def aggregator(tmp_path: Path) -> Aggregator:
    open_bench(tmp_path / "store")
    return open_aggregator(tmp_path / "store", create=False)


@pytest.fixture
def agent(aggregator: Aggregator) -> AskedApp:
    return asked(aggregator).with_token(add_token(aggregator, AGENT, Scope.AGENT))


def put(app: AskedApp, offset: object, data: bytes, place: str = PLACE) -> httpx.Response:
    return app.send("PUT", f"{place}?offset={offset}", content=data)


def state_in(answer: httpx.Response) -> UploadState:
    assert answer.status_code == 200, answer.text
    return from_json(UploadState, answer.json())


def problem_in(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    return answer.status_code, body["title"]


def test_the_whole_way(aggregator: Aggregator, agent: AskedApp) -> None:
    assert state_in(agent.post(UPLOADS, to_json(OFFER))) == UploadState(OFFER.sha256, 0)
    assert state_in(put(agent, 0, DATA[:100])).received_bytes == 100
    assert state_in(agent.get(PLACE)).received_bytes == 100
    assert state_in(put(agent, 100, DATA[100:])).received_bytes == len(DATA)
    for _ in range(2):
        assert from_json(CommitResult, agent.post(COMMIT).json()) == CommitResult(OFFER.sha256)
    assert state_in(agent.post(UPLOADS, to_json(OFFER))) == UploadState(OFFER.sha256, len(DATA), is_committed=True)
    assert from_json(WantedFiles, agent.get(WANTED).json()).build_ids == ("0102",)
    assert [run.origin for run in aggregator.store.runs()] == [OFFER.sha256]


def test_errors(aggregator: Aggregator, agent: AskedApp) -> None:
    assert problem_in(put(agent, 0, DATA)) == (409, "No such upload")
    agent.post(UPLOADS, to_json(OFFER))
    assert problem_in(put(agent, 7, DATA[7:])) == (409, "Other than held here")
    assert problem_in(agent.post(COMMIT)) == (409, "Other than held here")
    assert problem_in(put(agent, 0, DATA + b"x")) == (422, "Not accepted")
    assert problem_in(put(agent, 0, bytes(LARGEST_CHUNK_BYTES + 1)))[0] == 413
    assert problem_in(put(agent, -1, b"")) == (422, "Invalid request")
    assert problem_in(put(agent, "x", b"")) == (422, "Invalid request")
    assert problem_in(agent.send("PUT", PLACE, content=b"x")) == (422, "Invalid request")
    assert problem_in(agent.post(UPLOADS, to_json(replace(OFFER, job="another")))) == (422, "Not accepted")
    assert problem_in(agent.post(UPLOADS, to_json(replace(OFFER, size_bytes=1 << 50)))) == (413, "Too large")
    assert problem_in(agent.post(UPLOADS, {"sha256": OFFER.sha256}))[0] == 422
    for name in ("..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "x" * 5000, "%00", "%ff"):
        assert problem_in(put(agent, 0, b"x", UPLOAD.format(sha256=name)))[0] in (404, 405, 409), name
    assert aggregator.store.runs() == ()


def test_other_agents_and_other_scopes(aggregator: Aggregator, agent: AskedApp) -> None:
    agent.post(UPLOADS, to_json(OFFER))
    put(agent, 0, DATA)
    other = asked(aggregator).with_token(add_token(aggregator, OTHER_AGENT, Scope.AGENT))
    assert problem_in(other.get(PLACE)) == (409, "No such upload")
    assert problem_in(other.post(COMMIT)) == (409, "No such upload")
    assert problem_in(other.post(UPLOADS, to_json(OFFER))) == (422, "Not accepted")
    for scope in (Scope.READER, Scope.OPERATOR):
        nosy = asked(aggregator).with_token(add_token(aggregator, f"a-{scope}", scope))
        assert problem_in(nosy.post(COMMIT))[0] == 403
    assert problem_in(asked(aggregator).post(COMMIT))[0] == 401
    assert aggregator.store.runs() == ()


def test_a_full_disk_is_said_so_and_heals(aggregator: Aggregator, agent: AskedApp, monkeypatch: pytest.MonkeyPatch) -> None:
    agent.post(UPLOADS, to_json(OFFER))
    put(agent, 0, DATA[:50])

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        answer = put(agent, 50, DATA[50:])
    assert problem_in(answer) == (507, "No room")
    assert int(answer.headers["retry-after"]) > 0
    assert state_in(agent.get(PLACE)).received_bytes == 50
    put(agent, 50, DATA[50:])
    assert agent.post(COMMIT).json() == {"sha256": OFFER.sha256, "refusal": ""}


def test_a_refusal_is_an_answer_and_stays(agent: AskedApp) -> None:
    data = b"no capture"
    offer = offer_of(data)
    agent.post(UPLOADS, to_json(offer))
    put(agent, 0, data, UPLOAD.format(sha256=offer.sha256))
    answers = [agent.post(UPLOAD_COMMIT.format(sha256=offer.sha256)) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert "not a slotscope capture" in answers[0].json()["refusal"]
    assert state_in(agent.post(UPLOADS, to_json(offer))) == UploadState(offer.sha256, len(data))


def test_many_commits_at_once_make_one_run(aggregator: Aggregator, agent: AskedApp) -> None:
    agent.post(UPLOADS, to_json(OFFER))
    put(agent, 0, DATA)

    async def commit_often() -> list[int]:
        transport = httpx.ASGITransport(agent.app)
        async with httpx.AsyncClient(transport=transport, base_url="https://aggregator", headers=agent.headers) as client:
            answers = await asyncio.gather(*(client.post(COMMIT) for _ in range(12)))
            return [answer.status_code for answer in answers]

    statuses = asyncio.run(commit_often())
    assert set(statuses) <= {200, 503}
    assert 200 in statuses
    assert agent.post(COMMIT).status_code == 200
    assert len(aggregator.store.runs()) == 1
    assert aggregator.ingest.files.names() == ()


def test_few_chunks_of_one_agent_are_in_memory_at_once(agent: AskedApp) -> None:
    agent.post(UPLOADS, to_json(OFFER))

    async def send_slowly() -> list[int]:
        may_go_on = asyncio.Event()

        async def slow_body() -> Any:
            yield DATA[:10]
            await may_go_on.wait()

        transport = httpx.ASGITransport(agent.app)
        async with httpx.AsyncClient(transport=transport, base_url="https://aggregator", headers=agent.headers) as client:
            slow = [asyncio.create_task(client.put(f"{PLACE}?offset=0", content=slow_body())) for _ in range(2)]
            statuses: list[int] = []
            while 429 not in statuses and len(statuses) < 1000:
                statuses.append((await client.put(f"{PLACE}?offset=0", content=b"")).status_code)
            may_go_on.set()
            return [statuses[-1], *[answer.status_code for answer in await asyncio.gather(*slow)]]

    statuses = asyncio.run(send_slowly())
    assert statuses[0] == 429
    assert set(statuses[1:]) <= {200, 503}
    assert state_in(put(agent, 10, b"")).received_bytes == 10
