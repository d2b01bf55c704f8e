"""Chunks: where they go, what is durable, what is held against an agent, and what lies in the directory."""

from __future__ import annotations

import errno
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.errors import StoreError, StoreFullError
from profiler.protocol.upload import LARGEST_CHUNK_BYTES, UploadKind, UploadOffer
from profiler.service.aggregator import open_aggregator
from profiler.service.ingest.commitment import commit_upload
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.reception import offer_upload, receive_chunk, upload_state
from profiler.service.ingest.upload_error import UploadError, UploadProblem
from support.uploading import AGENT, OTHER_AGENT, OTHER_JOB, Bench, capture_bytes, debug_offer_of, offer_of, open_bench, send

DATA = capture_bytes(repeat=50)
OFFER = offer_of(DATA)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return open_bench(tmp_path / "store")


def problem_of(ingest: Ingest, offset: int, data: bytes, sha256: str = OFFER.sha256, agent: str = AGENT) -> UploadProblem:
    with pytest.raises(UploadError) as raised:
        receive_chunk(ingest, agent, sha256, offset, data)
    return raised.value.problem


def partial(bench: Bench) -> Path:
    return bench.ingest.store.directory / "uploads" / f"{OFFER.sha256}.{AGENT}"


def test_chunks_are_appended(bench: Bench) -> None:
    assert offer_upload(bench.ingest, AGENT, OFFER).received_bytes == 0
    assert receive_chunk(bench.ingest, AGENT, OFFER.sha256, 0, DATA[:100]).received_bytes == 100
    assert receive_chunk(bench.ingest, AGENT, OFFER.sha256, 100, DATA[100:150]).received_bytes == 150
    assert offer_upload(bench.ingest, AGENT, OFFER).received_bytes == 150
    assert upload_state(bench.ingest, AGENT, OFFER.sha256).received_bytes == 150
    assert partial(bench).read_bytes() == DATA[:150]
    assert partial(bench).stat().st_mode & 0o777 == 0o600


def test_a_chunk_whose_acknowledgement_was_lost(bench: Bench) -> None:
    send(bench.ingest, DATA[:200], OFFER)
    assert receive_chunk(bench.ingest, AGENT, OFFER.sha256, 50, DATA[50:200]).received_bytes == 200
    assert receive_chunk(bench.ingest, AGENT, OFFER.sha256, 200, b"").received_bytes == 200
    assert partial(bench).read_bytes() == DATA[:200]


def test_chunks_that_do_not_fit(bench: Bench) -> None:
    send(bench.ingest, DATA[:200], OFFER)
    ingest, size = bench.ingest, len(DATA)
    assert problem_of(ingest, 100, DATA[100:300]) is UploadProblem.CONFLICT  # overlaps
    assert problem_of(ingest, 100, b"other") is UploadProblem.CONFLICT
    assert problem_of(ingest, 201, DATA[201:300]) is UploadProblem.CONFLICT  # leaves a gap
    assert problem_of(ingest, 200, DATA[200:] + b"x") is UploadProblem.NOT_ACCEPTED  # beyond the end
    assert problem_of(ingest, size, b"x") is UploadProblem.NOT_ACCEPTED
    assert problem_of(ingest, 1 << 62, b"x") is UploadProblem.NOT_ACCEPTED
    assert problem_of(ingest, -1, b"x") is UploadProblem.NOT_ACCEPTED
    assert problem_of(ingest, 0, bytes(LARGEST_CHUNK_BYTES + 1)) is UploadProblem.TOO_LARGE
    assert partial(bench).read_bytes() == DATA[:200]


@pytest.mark.parametrize("sha256", ["", "x", "../../etc/passwd", "A" * 64, "0" * 64, OFFER.sha256.upper(), f"{OFFER.sha256}\n"])
def test_uploads_that_were_not_offered(bench: Bench, sha256: str) -> None:
    offer_upload(bench.ingest, AGENT, OFFER)
    assert problem_of(bench.ingest, 0, b"x", sha256) is UploadProblem.UNKNOWN
    for ask in (upload_state, commit_upload):
        with pytest.raises(UploadError, match="was not offered"):
            ask(bench.ingest, AGENT, sha256)


def test_uploads_of_others_are_not_to_be_seen(bench: Bench) -> None:
    send(bench.ingest, DATA, OFFER)
    assert problem_of(bench.ingest, 0, DATA, agent=OTHER_AGENT) is UploadProblem.UNKNOWN
    with pytest.raises(UploadError, match="was not offered"):
        commit_upload(bench.ingest, OTHER_AGENT, OFFER.sha256)
    assert offer_upload(bench.ingest, OTHER_AGENT, replace(OFFER, job=OTHER_JOB)).received_bytes == 0


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"sha256": "../../../etc/cron.d/x"}, UploadProblem.NOT_ACCEPTED),
        ({"sha256": OFFER.sha256.upper()}, UploadProblem.NOT_ACCEPTED),
        ({"size_bytes": 0}, UploadProblem.NOT_ACCEPTED),
        ({"size_bytes": -5}, UploadProblem.NOT_ACCEPTED),
        ({"size_bytes": 1 << 40}, UploadProblem.TOO_LARGE),
        ({"build_id": "abcd"}, UploadProblem.NOT_ACCEPTED),
        ({"kind": UploadKind.DEBUG_FILE}, UploadProblem.NOT_ACCEPTED),
        ({"kind": UploadKind.DEBUG_FILE, "job": "", "build_id": "../../x"}, UploadProblem.NOT_ACCEPTED),
        ({"kind": UploadKind.DEBUG_FILE, "job": "", "build_id": "ab" * 20}, UploadProblem.NOT_ACCEPTED),  # in none of its own
    ],
)
def test_offers_that_are_refused(bench: Bench, change: dict[str, object], problem: UploadProblem) -> None:
    with pytest.raises(UploadError) as raised:
        offer_upload(bench.ingest, AGENT, replace(OFFER, **change))  # type: ignore[arg-type]
    assert raised.value.problem is problem
    assert bench.ingest.records.unfinished().uploads == 0


@pytest.mark.parametrize("agent", ["", "..", "../x", "a/b", "a\0b", "x" * 200])
def test_names_of_agents_that_would_lead_elsewhere(bench: Bench, agent: str) -> None:
    with pytest.raises(UploadError, match="an agent cannot be called"):
        offer_upload(bench.ingest, agent, OFFER)


def test_the_same_content_under_another_offer(bench: Bench) -> None:
    offer_upload(bench.ingest, AGENT, OFFER)
    with pytest.raises(UploadError, match="as something else before"):
        offer_upload(bench.ingest, AGENT, replace(OFFER, size_bytes=OFFER.size_bytes + 1))


def test_a_commit_of_a_part(bench: Bench) -> None:
    send(bench.ingest, DATA[:-1], OFFER)
    with pytest.raises(UploadError, match=f"{len(DATA) - 1} of {len(DATA)} bytes are here") as raised:
        commit_upload(bench.ingest, AGENT, OFFER.sha256)
    assert raised.value.problem is UploadProblem.CONFLICT


def test_bytes_that_are_not_those_offered_are_dropped_and_in_the_end_refused(bench: Bench) -> None:
    wrong = bytes(len(DATA))
    for _ in range(2):
        send(bench.ingest, wrong, OFFER)
        with pytest.raises(UploadError, match="another SHA-256, and was dropped") as raised:
            commit_upload(bench.ingest, AGENT, OFFER.sha256)
        assert raised.value.problem is UploadProblem.CONFLICT
        assert offer_upload(bench.ingest, AGENT, OFFER).received_bytes == 0
    send(bench.ingest, wrong, OFFER)
    assert "another SHA-256, 3 times over" in commit_upload(bench.ingest, AGENT, OFFER.sha256).refusal
    assert bench.ingest.store.runs() == ()


def test_the_right_bytes_after_wrong_ones(bench: Bench) -> None:
    send(bench.ingest, bytes(len(DATA)), OFFER)
    with pytest.raises(UploadError, match="dropped"):
        commit_upload(bench.ingest, AGENT, OFFER.sha256)
    send(bench.ingest, DATA, OFFER)
    assert commit_upload(bench.ingest, AGENT, OFFER.sha256).refusal == ""


def test_what_a_crash_wrote_but_did_not_acknowledge_is_overwritten(bench: Bench) -> None:
    send(bench.ingest, DATA[:100], OFFER)
    with partial(bench).open("ab") as stream:
        stream.write(b"garbage of a power cut" * 100)
    again = open_aggregator(bench.ingest.store.directory, create=False).ingest
    assert offer_upload(again, AGENT, OFFER).received_bytes == 100
    send(again, DATA, OFFER)
    assert commit_upload(again, AGENT, OFFER.sha256).refusal == ""


def test_a_partial_file_that_was_lost_is_sent_again(bench: Bench) -> None:
    send(bench.ingest, DATA[:100], OFFER)
    partial(bench).unlink()
    assert problem_of(bench.ingest, 100, DATA[100:]) is UploadProblem.CONFLICT
    assert offer_upload(bench.ingest, AGENT, OFFER).received_bytes == 0
    send(bench.ingest, DATA, OFFER)
    partial(bench).unlink()
    with pytest.raises(UploadError, match=f"0 of {len(DATA)} bytes are here"):
        commit_upload(bench.ingest, AGENT, OFFER.sha256)


@pytest.mark.parametrize("target", ["victim", "nowhere"])
def test_a_link_in_the_place_of_a_file_is_not_followed(bench: Bench, tmp_path: Path, target: str) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    offer_upload(bench.ingest, AGENT, OFFER)
    bench.ingest.files.names()
    partial(bench).symlink_to(tmp_path / target)
    with pytest.raises(StoreError, match="Too many levels of symbolic links"):
        receive_chunk(bench.ingest, AGENT, OFFER.sha256, 0, DATA[:10])
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert not (tmp_path / "nowhere").exists()


def test_neither_is_a_second_name_of_another_file_nor_a_pipe(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    offer_upload(bench.ingest, AGENT, OFFER)
    bench.ingest.files.names()
    os.link(tmp_path / "victim", partial(bench))
    with pytest.raises(StoreError, match="no file of an upload"):
        receive_chunk(bench.ingest, AGENT, OFFER.sha256, 0, DATA[:10])
    partial(bench).unlink()
    os.mkfifo(partial(bench))
    with pytest.raises(StoreError, match="no file of an upload"):
        receive_chunk(bench.ingest, AGENT, OFFER.sha256, 0, DATA[:10])
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_a_link_in_the_place_of_the_directory(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (bench.ingest.store.directory / "uploads").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="Not a directory"):
        offer_upload(bench.ingest, AGENT, OFFER)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_one_at_a_time_works_on_an_upload(bench: Bench) -> None:
    send(bench.ingest, DATA[:10], OFFER)
    with bench.ingest.files.held(partial(bench).name):
        assert problem_of(bench.ingest, 10, DATA[10:20]) is UploadProblem.BUSY
        with pytest.raises(UploadError, match="being worked on"):
            commit_upload(bench.ingest, AGENT, OFFER.sha256)
    assert receive_chunk(bench.ingest, AGENT, OFFER.sha256, 10, DATA[10:20]).received_bytes == 20


def offer_numbered(number: int, size: int) -> UploadOffer:
    return replace(OFFER, sha256=hashlib.sha256(str(number).encode()).hexdigest(), size_bytes=size)


def test_unfinished_uploads_are_limited(bench: Bench) -> None:
    limits = replace(bench.ingest.limits, agent_uploads=3, agent_bytes=1000, total_bytes=1500, free_bytes=0)
    ingest = replace(bench.ingest, limits=limits)
    for number in range(2):
        offer_upload(ingest, AGENT, offer_numbered(number, 400))
    with pytest.raises(UploadError, match="2 uploads of 800 bytes of this agent are unfinished") as raised:
        offer_upload(ingest, AGENT, offer_numbered(2, 201))
    assert raised.value.problem is UploadProblem.QUOTA
    offer_upload(ingest, AGENT, offer_numbered(3, 1))
    with pytest.raises(UploadError, match="3 uploads of 801 bytes"):
        offer_upload(ingest, AGENT, offer_numbered(4, 1))
    with pytest.raises(StoreFullError, match="801 bytes of unfinished uploads"):
        offer_upload(ingest, OTHER_AGENT, replace(offer_numbered(5, 700), job=OTHER_JOB))
    assert offer_upload(ingest, AGENT, offer_numbered(0, 400)).received_bytes == 0


def test_a_disk_that_fills_up_leaves_what_was_acknowledged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    send(bench.ingest, DATA[:100], OFFER)
    write = os.pwrite

    def full(descriptor: int, data: bytes, offset: int) -> int:
        if offset >= 130:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:30], offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StoreFullError, match="No space left on device"):
            receive_chunk(bench.ingest, AGENT, OFFER.sha256, 100, DATA[100:200])
    assert partial(bench).read_bytes() == DATA[:100]
    send(bench.ingest, DATA, OFFER)
    assert commit_upload(bench.ingest, AGENT, OFFER.sha256).refusal == ""


def test_no_room_for_the_capture_itself(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    send(bench.ingest, DATA, OFFER)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreFullError):
            commit_upload(bench.ingest, AGENT, OFFER.sha256)
    assert offer_upload(bench.ingest, AGENT, OFFER).received_bytes == len(DATA)
    assert commit_upload(bench.ingest, AGENT, OFFER.sha256).refusal == ""
    assert len(bench.ingest.store.runs()) == 1


def test_a_disk_with_little_room_takes_no_offers(bench: Bench) -> None:
    ingest = replace(bench.ingest, limits=replace(bench.ingest.limits, free_bytes=1 << 60))
    with pytest.raises(StoreFullError, match="bytes are free on this disk"):
        offer_upload(ingest, AGENT, OFFER)
    with pytest.raises(UploadError, match="in no capture of this agent"):
        offer_upload(ingest, AGENT, debug_offer_of(DATA, "ab" * 20))
