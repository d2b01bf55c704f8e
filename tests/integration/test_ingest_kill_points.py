"""An aggregator killed before every call by which an upload changes its disk, and every power cut then: what an agent was
answered is there, and the capture becomes one run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profiler.codec.container import decode
from profiler.service.aggregator import open_aggregator
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.upload_records import UploadPhase
from support import aggregator_files
from support.forked_lives import Life, forked_lives
from support.held_calls import CannotHold
from support.ingest_life import CAPTURE
from support.kill_points import is_boundary, quick_directory
from support.uploading import AGENT, offer_of, open_bench, upload

# More than there are, so that the loop ends where the life does.
MOST_CALLS = 300
SHA256 = offer_of(CAPTURE).sha256


def test_what_was_answered_is_there_whatever_call_was_the_last() -> None:
    died_at = []
    try:
        with quick_directory() as place, forked_lives("support.ingest_life:live", is_boundary) as lives:
            open_bench(place / "before")
            shutil.copytree(place / "before", place / "rehearsal")
            lives.rehearse(place / "rehearsal")
            for number in range(1, MOST_CALLS):
                directory = place / f"life-{number}"
                shutil.copytree(place / "before", directory)
                cut = directory.with_name(f"cut-{number}")
                life = lives.killed(directory, number, cut)
                for left in (directory, cut):
                    check_answers(left, life)
                    check_taken_up(left)
                    shutil.rmtree(left)
                if life.died_at is None:
                    break
                died_at.append(life.died_at)
    except CannotHold as error:
        pytest.skip(str(error))
    assert life.said == ("offered", *(life.said[1:3]), "accepted", "accepted")
    # Bytes of two chunks and of the capture's own file, and both its directories.
    synced = [call.path for call in died_at if call.name == "fsync"]
    print(*(f"{call.name} {call.path}" for call in died_at), sep="\n")
    assert len(synced) > 5


def check_answers(left: Path, life: Life) -> None:
    """By what lies in the directory, before anything is done there again."""
    if "accepted" in life.said:
        (run,) = aggregator_files.runs(left)
        assert run.origin == SHA256
        (file,) = (left / "captures").glob("*/*.capture")
        assert len(decode(file.read_bytes(), "filed").samples) == 1200
        return
    received = max((int(said.partition(" ")[2]) for said in life.said if said.startswith("received ")), default=0)
    record = open_aggregator(left, create=False).ingest.records.find(AGENT, SHA256)
    assert record is not None or "offered" not in life.said
    if record is not None and record.phase is UploadPhase.RECEIVING:
        assert record.received_bytes >= received
    if received and not aggregator_files.runs(left):
        assert (left / "uploads" / f"{SHA256}.{AGENT}").read_bytes()[:received] == CAPTURE[:received]


def check_taken_up(left: Path) -> None:
    """The agent, which was not told, offers it again and commits it twice."""
    ingest: Ingest = open_aggregator(left, create=False).ingest
    for _ in range(2):
        assert upload(ingest, CAPTURE).refusal == ""
        assert [run.origin for run in aggregator_files.runs(left)] == [SHA256]
    (run,) = ingest.store.runs()
    assert len(ingest.store.load(run).samples) == 1200
    # One more is the file of a life that ended before it was a run.
    assert len(list((left / "captures").glob("*/*"))) <= 2
    assert list((left / "tmp").iterdir()) == []
