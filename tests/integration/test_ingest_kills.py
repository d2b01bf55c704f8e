"""An aggregator's process killed at random points of chunk, commit and filing: every upload is one run, whatever dies."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from profiler.service.aggregator import open_aggregator
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.retention import find_all, remove_all
from profiler.service.ingest.upload_records import UploadPhase
from profiler.store.prune import RetentionRule
from profiler.store.scratch import STRAY_AGE_S
from profiler.store.store import open_store
from support.uploading import AGENT, JOB, capture_bytes, offer_of, open_bench, send, upload

QUICK, FULL = 4, 200
CAPTURES = 6
TESTS = Path(__file__).resolve().parent.parent
# Uploads everything in small chunks and commits it, as the process of an aggregator does it for an agent; kills itself before
# the given line, counted from 1 over all lines that it runs of ingest and store, 0 = never; says how many there were.
TAKING_IN = """
import os, signal, sys
from pathlib import Path
from profiler.service.aggregator import open_aggregator
from profiler.service.ingest.commitment import commit_upload
from support.uploading import AGENT, capture_bytes, offer_of, send
ingest = open_aggregator(Path(sys.argv[1]), create=False).ingest
contents = [capture_bytes(position, repeat=400) for position in range(int(sys.argv[2]))]
last, lines = int(sys.argv[3]), 0
def trace(frame, event, _):
    global lines
    if "/profiler/service/ingest/" not in frame.f_code.co_filename and "/profiler/store/" not in frame.f_code.co_filename:
        return None
    if event == "line":
        lines += 1
        if lines == last:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace
print("begins", flush=True)
sys.settrace(trace)
for data in contents:
    send(ingest, data, offer_of(data), chunk_bytes=2000)
    assert commit_upload(ingest, AGENT, offer_of(data).sha256).refusal == ""
sys.settrace(None)
print(lines, flush=True)
"""
TRIALS = [pytest.param(trial, marks=[pytest.mark.full] if trial >= QUICK else []) for trial in range(FULL)]


@dataclass(frozen=True, slots=True)
class Whole:
    """What the process does when nobody kills it: lines of ingest and store, and seconds."""

    lines: int
    seconds: float


def start(store: Path, last_line: int = 0) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])}
    command = [sys.executable, "-c", TAKING_IN, str(store), str(CAPTURES), str(last_line)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    return process


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    store = tmp_path_factory.mktemp("whole")
    open_bench(store)
    process, begun = start(store), time.monotonic()
    lines, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert len(open_store(store, create=False).runs()) == CAPTURES
    return Whole(int(lines), time.monotonic() - begun)


def kill_one(store: Path, generator: random.Random, whole: Whole) -> None:
    """Before a random line, or at a random moment, which may lie inside a system call."""
    if generator.random() < 0.5:
        with start(store, generator.randrange(1, whole.lines)) as process:
            process.wait(timeout=60)  # or to the end, where earlier ones have done a part of it
    else:
        with start(store) as process:
            time.sleep(generator.uniform(0.0, whole.seconds))
            process.send_signal(signal.SIGKILL)


def check_acknowledged(ingest: Ingest, contents: list[bytes]) -> None:
    """What an agent was told is there, is there."""
    for data in contents:
        record = ingest.records.find(AGENT, offer_of(data).sha256)
        if record is not None and record.phase is UploadPhase.RECEIVING and record.received_bytes:
            held = (ingest.files.directory / f"{offer_of(data).sha256}.{AGENT}").read_bytes()
            assert held[: record.received_bytes] == data[: record.received_bytes]


@pytest.mark.parametrize("trial", TRIALS)
def test_killed_aggregators_lose_and_double_nothing(tmp_path: Path, whole: Whole, trial: int) -> None:
    generator = random.Random(trial)
    open_bench(tmp_path)
    for _ in range(generator.randrange(1, 4)):
        kill_one(tmp_path, generator, whole)
    ingest = open_aggregator(tmp_path, create=False).ingest
    contents = [capture_bytes(position, repeat=400) for position in range(CAPTURES)]
    check_acknowledged(ingest, contents)
    for data in contents:
        assert upload(ingest, data).refusal == ""
    runs = open_store(tmp_path, create=False).runs()
    assert sorted(run.origin for run in runs) == sorted(offer_of(data).sha256 for data in contents)
    assert sorted(run.summary.position for run in runs) == [3 * 4 + position for position in range(CAPTURES)]
    assert [len(ingest.store.load(run).samples) for run in runs] == [1200] * CAPTURES
    assert list((tmp_path / "tmp").iterdir()) == []
    left = find_all(ingest, RetentionRule())
    assert set(ingest.files.names()) == set(left.ingest.files)
    assert len(left.ingest.files) <= 3  # one for every kill between the record's end and the file's
    remove_all(ingest, RetentionRule())
    assert ingest.files.names() == ()
    check_strays(ingest)


def check_strays(ingest: Ingest) -> None:
    """What a kill between blob and row left is found, and goes; the runs stay."""
    store = ingest.store
    there = {path.relative_to(store.directory / "captures").as_posix() for path in store.directory.glob("captures/*/*")}
    counted = {run.blob for run in store.runs()}
    later_s = time.time() + STRAY_AGE_S
    assert set(store.strays(later_s)) == there - counted
    assert len(there - counted) <= 3  # one for every kill
    store.remove_strays(store.strays(later_s))
    assert all(store.blobs.has(blob) for blob in counted)


def test_several_processes_take_in_the_same(tmp_path: Path) -> None:
    """Two commits at once, in processes of their own, of uploads that are whole."""
    session = open_bench(tmp_path).session
    ingest = open_aggregator(tmp_path, create=False).ingest
    for position in range(CAPTURES):
        data = capture_bytes(position, repeat=400)
        send(ingest, data, offer_of(data))
    committing = """
import sys, time
from pathlib import Path
from profiler.service.aggregator import open_aggregator
from profiler.service.ingest.commitment import commit_upload
from profiler.service.ingest.upload_error import UploadError, UploadProblem
from support.uploading import AGENT, capture_bytes, offer_of
ingest = open_aggregator(Path(sys.argv[1]), create=False).ingest
left = [offer_of(capture_bytes(position, repeat=400)).sha256 for position in range(int(sys.argv[2]))]
deadline = time.monotonic() + 60
while left and time.monotonic() < deadline:
    try:
        assert commit_upload(ingest, AGENT, left[0]).refusal == ""
        del left[0]
    except UploadError as error:
        assert error.problem is UploadProblem.BUSY
        time.sleep(0.01)
assert not left
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])}
    command = [sys.executable, "-c", committing, str(tmp_path), str(CAPTURES)]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        _, said = process.communicate(timeout=90)
        assert (process.returncode, said) == (0, "")
    assert [run.key.session for run in open_store(tmp_path, create=False).runs()] == [session] * CAPTURES
    assert ingest.records.accepted_of_job(JOB) == CAPTURES
    assert ingest.files.names() == ()
