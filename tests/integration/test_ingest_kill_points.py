"""An aggregator killed before every call by which an upload changes its disk, and every power cut then: what an agent was
answered is there, and the capture becomes one run, the debug file one file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard

from profiler.codec.container import decode, encode
from profiler.model.dso import Dso, DsoKind
from profiler.service.aggregator import open_aggregator
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.upload_records import UploadPhase
from support import aggregator_files
from support.elf_programs import compile_program, load_image
from support.forked_lives import Life, forked_lives
from support.held_calls import Call, CannotHold
from support.ingest_life import CAPTURE, PACKED_SUFFIX
from support.kill_points import is_boundary, quick_directory
from support.sample_captures import run_info, two_stack_capture
from support.uploading import AGENT, debug_offer_of, offer_of, open_bench, upload

# More than there are, so that the loop ends where the life does.
MOST_CALLS = 300
SHA256 = offer_of(CAPTURE).sha256


@pytest.fixture
def place() -> Iterator[Path]:
    with quick_directory() as directory:
        yield directory


def every_death(program: str, before: Path) -> Iterator[tuple[Path, Life]]:
    """What each leaves of ``before``: by a kill, and by a power cut."""
    try:
        with forked_lives(f"support.ingest_life:{program}", is_boundary) as lives:
            shutil.copytree(before, before.with_name("rehearsal"))
            lives.rehearse(before.with_name("rehearsal"))
            for number in range(1, MOST_CALLS):
                directory, cut = before.with_name(f"life-{number}"), before.with_name(f"cut-{number}")
                shutil.copytree(before, directory)
                life = lives.killed(directory, number, cut)
                for left in (directory, cut):
                    yield left, life
                    shutil.rmtree(left)
                if life.died_at is None:
                    return
        raise AssertionError(f"a life of more than {MOST_CALLS} steps")
    except CannotHold as error:
        pytest.skip(str(error))


def syncs_of_files(died_at: list[Call]) -> int:
    """Each death is there twice."""
    return sum(call.name == "fsync" for call in died_at) // 2


def test_a_capture_that_was_answered_for_is_there_whatever_call_was_the_last(place: Path) -> None:
    open_bench(place / "before")
    died_at = []
    for left, life in every_death("take_capture", place / "before"):
        check_answers(left, life)
        check_taken_up(left)
        died_at += [life.died_at] if life.died_at is not None else []
    assert life.said[-2:] == ("accepted", "accepted")
    # Its name and both its chunks while it is received; then itself, the names of two directories, and its name.
    assert syncs_of_files(died_at) == 7


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
        if received:
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


def test_a_debug_file_that_was_answered_for_is_there_whatever_call_was_the_last(place: Path, tmp_path: Path) -> None:
    program = compile_program(tmp_path, "empty.c", "int main(void) { return 0; }\n", ["-Wl,--build-id=sha1"])
    build_id = load_image(program).build_id.hex()
    packed = zstandard.ZstdCompressor().compress(program.read_bytes())
    kept = Path("debug", ".build-id", build_id[:2], f"{build_id[2:]}.debug")
    assert upload(open_bench(place / "before").ingest, capture_with(build_id)).refusal == ""
    (place / "before" / f"{build_id}{PACKED_SUFFIX}").write_bytes(packed)
    died_at = []
    for left, life in every_death("take_debug_file", place / "before"):
        if "accepted" in life.said:
            assert (left / kept).read_bytes() == program.read_bytes()
        assert upload(open_aggregator(left, create=False).ingest, packed, debug_offer_of(packed, build_id)).refusal == ""
        assert (left / kept).read_bytes() == program.read_bytes()
        died_at += [life.died_at] if life.died_at is not None else []
    assert life.said[-2:] == ("accepted", "accepted")
    # Its name and both its chunks while it is received; then the names of three directories, itself, and its name.
    assert syncs_of_files(died_at) == 8


def capture_with(build_id: str) -> bytes:
    """In which a file of this build ID lacks names."""
    capture, dso = two_stack_capture(run_info("s", "x")), Dso("/opt/a", bytes.fromhex(build_id), DsoKind.FILE)
    frames = replace(capture.frames, symbol=np.full(3, -1, np.int32))
    return encode(replace(capture, dsos=(dso, *capture.dsos[1:]), frames=frames))
