"""The spool and uploads from it: nothing goes before the aggregator has it, nothing goes twice, nothing is overwritten."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from collectors.agent.agent_log import AgentLog
from collectors.agent.connection.server_connection import ServerAddress, ServerConnection
from collectors.agent.connection.server_errors import ServerTrouble
from collectors.agent.spool import spool as spool_module
from collectors.agent.spool import spool_tables
from collectors.agent.spool.spool import Spool, open_spool, session_command, used_bytes
from collectors.agent.spool.spool_lock import spool_lock
from collectors.agent.spool.spool_tables import CaptureState, SpooledCapture
from collectors.agent.upload.upload_queue import UploadQueue
from collectors.agent.upload.wanted_debug_files import WantedDebugFiles
from profiler.codec.container import encode
from profiler.codec.json_values import to_json
from profiler.errors import UsageError
from profiler.model.dso import Dso, DsoKind
from profiler.protocol.job import JobReport, JobState
from profiler.protocol.upload import LARGEST_CHUNK_BYTES, UploadKind, UploadState
from profiler.store.records import SessionStart
from support.fake_aggregator import TOKEN, Asked, FakeAggregator, serving
from support.sample_captures import run_info, two_stack_capture

LIMIT = 1 << 30


@pytest.fixture
def fake() -> Iterator[FakeAggregator]:
    with serving(FakeAggregator()) as server:
        yield server


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return open_spool(tmp_path / "spool", LIMIT)


@pytest.fixture
def queue(fake: FakeAggregator, spool: Spool) -> Iterator[UploadQueue]:
    connection = ServerConnection(ServerAddress(fake.url, TOKEN))
    yield UploadQueue(spool, connection, AgentLog(io.StringIO(), TOKEN))
    connection.close()


def begin(spool: Spool, job: str) -> str:
    return spool.store.begin_session(SessionStart("2026-01-02T03:04:05+00:00", "h", session_command(job), 0, True))


def add(spool: Spool, session: str, number: int = 0) -> bytes:
    """The capture's bytes."""
    capture = two_stack_capture(run_info(session, "a", number))
    spool.store.add(capture)
    return encode(capture)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_captures_arrive_in_order_with_their_job_and_leave(fake: FakeAggregator, spool: Spool, queue: UploadQueue) -> None:
    session = begin(spool, "job1")
    sent = [add(spool, session, number) for number in range(3)]
    assert spool.state().waiting == 3
    assert spool.state().waiting_bytes == sum(map(len, sent))
    queue.send_waiting()
    assert fake.commits == [sha(data) for data in sent]
    assert fake.committed() == {sha(data): data for data in sent}
    assert {offer.job for offer in fake.offers.values()} == {"job1"}
    assert list(spool.store.directory.rglob("*.capture")) == []
    assert spool.captures_of("job1") == tuple(sha(data) for data in sent)


def test_a_later_capture_of_the_session_never_takes_the_place_of_one_that_left(
    fake: FakeAggregator, spool: Spool, queue: UploadQueue
) -> None:
    session = begin(spool, "job1")
    sent = []
    for number in range(4):
        sent.append(add(spool, session, number))
        queue.send_waiting()
        spool.clean()
    assert fake.commits == [sha(data) for data in sent]


def test_a_session_goes_when_its_job_is_over_and_told(spool: Spool, queue: UploadQueue) -> None:
    session = begin(spool, "job1")
    add(spool, session)
    spool.tables.put_report("job1", JobReport(JobState.DONE))
    spool.clean()
    assert [known.name for known in spool.store.sessions()] == [session]
    queue.send_waiting()
    spool.tables.delivered("job1")
    spool.clean()
    assert spool.store.sessions() == ()
    assert spool.tables.captures() == ()


def test_large_captures_go_in_chunks_and_from_where_the_server_stands(
    fake: FakeAggregator, spool: Spool, queue: UploadQueue
) -> None:
    blob = random.Random(1).randbytes(2 * LARGEST_CHUNK_BYTES + 5)
    session = begin(spool, "job1")
    directory = spool.store.directory / "captures" / session
    directory.mkdir(parents=True)
    (directory / "0000-a-plain.capture").write_bytes(blob)
    fake.received[sha(blob)] = bytearray(blob[: LARGEST_CHUNK_BYTES + 7])  # an earlier try got so far
    queue.send_waiting()
    puts = [asked for asked in fake.asked if asked.method == "PUT"]
    assert [(asked.path.partition("=")[2], len(asked.body)) for asked in puts] == [
        (str(LARGEST_CHUNK_BYTES + 7), LARGEST_CHUNK_BYTES - 2)
    ]
    assert fake.committed() == {sha(blob): blob}


@pytest.mark.parametrize("step", ["POST /api/v1/agent/uploads", "PUT", "commit", "answer of the commit"])
def test_whatever_step_is_lost_it_arrives_once(fake: FakeAggregator, spool: Spool, queue: UploadQueue, step: str) -> None:
    data = add(spool, begin(spool, "job1"))
    lost: list[str] = []

    def lose(asked: Asked, handler: BaseHTTPRequestHandler) -> bool:
        line = f"{asked.method} {asked.path}"
        if lost or not (line.startswith(step) if step[0] == "P" else line.endswith("/commit")):
            return False
        lost.append(line)
        if step.startswith("answer"):
            fake.commits.append(asked.path.split("/")[-2])
        handler.close_connection = True
        return True

    fake.answer = lose
    with pytest.raises(ServerTrouble):
        queue.send_waiting()
    assert lost
    assert len(spool.waiting()) == 1
    queue.send_waiting()
    assert fake.committed() == {sha(data): data}
    assert len(fake.commits) == 1
    assert spool.waiting() == []


def test_a_refused_capture_is_kept_aside_and_the_next_one_goes(fake: FakeAggregator, spool: Spool, queue: UploadQueue) -> None:
    session = begin(spool, "job1")
    first = add(spool, session, 0)
    fake.refuse = "not what it should be"
    queue.send_waiting()
    fake.refuse = ""
    second = add(spool, session, 1)
    queue.send_waiting()
    assert (spool.directory / "refused" / f"{sha(first)}.capture").read_bytes() == first
    assert fake.committed() == {sha(second): second}


def test_a_capture_that_somebody_removed_does_not_hold_up_the_others(
    fake: FakeAggregator, spool: Spool, queue: UploadQueue
) -> None:
    session = begin(spool, "job1")
    sent = [add(spool, session, number) for number in range(3)]
    spool.path_of(spool.waiting()[1]).unlink()
    assert queue.send_waiting() == 3
    assert fake.commits == [sha(sent[0]), sha(sent[2])]
    assert spool.waiting() == []


def test_what_was_refused_and_not_put_aside_yet_is_when_the_spool_is_cleaned(spool: Spool) -> None:
    """As after a kill between the two."""
    data = add(spool, begin(spool, "job1"))
    spool.tables.set_state(spool.waiting()[0].blob, CaptureState.REFUSED)
    spool.clean()
    assert (spool.directory / "refused" / f"{sha(data)}.capture").read_bytes() == data
    assert list(spool.store.directory.rglob("*.capture")) == []


def test_files_of_sessions_that_went_go_and_those_of_others_stay(spool: Spool) -> None:
    """A power cut can bring back what was removed before it."""
    gone, there = begin(spool, "job1"), begin(spool, "job2")
    add(spool, gone)
    data = add(spool, there)
    spool.store.catalog.remove_session(gone)
    spool.clean()
    assert [path.read_bytes() for path in spool.store.directory.rglob("*.capture")] == [data]


def test_refused_captures_do_not_fill_the_disk(fake: FakeAggregator, tmp_path: Path, queue: UploadQueue) -> None:
    small = open_spool(tmp_path / "small", 100_000)
    few = UploadQueue(small, queue.connection, queue.log)
    session = begin(small, "job1")
    fake.refuse = "no"
    sizes = []
    for number in range(8):
        sizes.append(len(add(small, session, number)))
        few.send_waiting()
    assert sum(sizes) > 10_000
    assert used_bytes(small.directory / "refused") <= 10_000


@pytest.mark.parametrize(("sha_prefix", "received"), [("", -1), ("", 999_999_999), ("00", 0)])
def test_a_state_that_makes_no_sense_is_trouble(
    fake: FakeAggregator, spool: Spool, queue: UploadQueue, sha_prefix: str, received: int
) -> None:
    state = UploadState(sha_prefix + sha(add(spool, begin(spool, "job1"))), received)

    def answer(_: Asked, handler: BaseHTTPRequestHandler) -> bool:
        text = json.dumps(to_json(state)).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)
        return True

    fake.answer = answer
    with pytest.raises(ServerTrouble, match="makes no sense"):
        queue.send_waiting()
    assert len(spool.waiting()) == 1


def test_a_server_that_never_gets_on_does_not_hold_the_agent_forever(
    fake: FakeAggregator, spool: Spool, queue: UploadQueue
) -> None:
    add(spool, begin(spool, "job1"))
    fake.answer = lambda asked, handler: asked.path.endswith("commit") and _conflict(handler)
    with pytest.raises(ServerTrouble, match="again and again"):
        queue.send_waiting()
    assert len([asked for asked in fake.asked if asked.path.endswith("commit")]) == 5
    assert len(spool.waiting()) == 1


def _conflict(handler: BaseHTTPRequestHandler) -> bool:
    handler.send_response(409)
    handler.send_header("Content-Length", "0")
    handler.end_headers()
    return True


def test_a_capture_whose_catalog_row_was_never_written_arrives(fake: FakeAggregator, spool: Spool, queue: UploadQueue) -> None:
    """As after a kill between the two."""
    session = begin(spool, "job1")
    data = encode(two_stack_capture(run_info(session, "a")))
    assert spool.store.blobs.put(f"{session}/0000-a-profiled.capture", data)
    queue.send_waiting()
    assert fake.committed() == {sha(data): data}


def test_a_full_spool_says_so_until_there_is_room(tmp_path: Path) -> None:
    spool = open_spool(tmp_path / "spool", 200_000)
    assert spool.problem() == ""
    (spool.directory / "ballast").write_bytes(bytes(200_000))
    assert "the spool is full" in spool.problem()
    (spool.directory / "ballast").unlink()
    assert spool.problem() == ""


def test_a_disk_without_room_says_so(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    free = os.statvfs(spool.directory).f_bavail * os.statvfs(spool.directory).f_frsize
    monkeypatch.setattr(spool_module, "RESERVE_BYTES", 2 * free + (1 << 40))
    assert "the spool's disk is full" in spool.problem()


def test_a_spool_has_one_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profiler.store.file_lock.PATIENCE_S", 0.1)
    words = f"another agent, process {os.getpid()}"
    with spool_lock(tmp_path), pytest.raises(UsageError, match=words), spool_lock(tmp_path):
        pytest.fail("two agents have it")
    with spool_lock(tmp_path):
        pass


def test_nobody_else_looks_into_a_spool(spool: Spool) -> None:
    assert spool.directory.stat().st_mode & 0o077 == 0


def test_a_final_report_stays(spool: Spool) -> None:
    spool.tables.put_report("a", JobReport(JobState.ACCEPTED))
    spool.tables.put_report("b", JobReport(JobState.ACCEPTED))
    spool.tables.put_report("a", JobReport(JobState.DONE, "done"))
    spool.tables.put_report("a", JobReport(JobState.FAILED, "late"))
    assert [(job.id, job.report.state) for job in spool.tables.jobs()] == [("a", JobState.DONE), ("b", JobState.ACCEPTED)]
    spool.tables.delivered("b")  # not final, so nothing is over
    assert [job.is_delivered for job in spool.tables.jobs()] == [False, False]


def _build_id(path: Path) -> str:
    text = subprocess.run(["readelf", "-n", str(path)], capture_output=True, text=True, check=True).stdout
    return text.partition("Build ID: ")[2].split()[0]


def test_only_files_that_were_mapped_and_are_what_they_were_are_sent(
    fake: FakeAggregator, spool: Spool, queue: UploadQueue, tmp_path: Path
) -> None:
    import zstandard

    source = tmp_path / "a.c"
    builds = {}
    for name, value in (("mapped", 1), ("other", 2), ("replaced", 3)):
        source.write_text(f"int main(void) {{ return {value}; }}")
        subprocess.run(["gcc", "-g", "-Wl,--build-id", "-o", tmp_path / name, source], check=True)
        builds[name] = _build_id(tmp_path / name)
    session = begin(spool, "job1")
    for name in ("mapped", "replaced"):
        capture = two_stack_capture(run_info(session, name))
        dso = Dso(str(tmp_path / name), bytes.fromhex(builds[name]), DsoKind.FILE)
        spool.store.add(replace(capture, dsos=(dso, capture.dsos[1])))
    queue.send_waiting()
    (tmp_path / "replaced").write_bytes((tmp_path / "other").read_bytes())
    fake.wanted = (builds["other"], builds["replaced"], "../../etc/passwd", "", "ab" * 20, builds["mapped"])
    WantedDebugFiles(spool, queue.connection, queue.log).send()
    sent = [offer for offer in fake.offers.values() if offer.kind is UploadKind.DEBUG_FILE]
    assert [offer.build_id for offer in sent] == [builds["mapped"]]
    packed = bytes(fake.received[sent[0].sha256])
    assert zstandard.ZstdDecompressor().decompressobj().decompress(packed) == (tmp_path / "mapped").read_bytes()
    assert list(spool.debug_directory.iterdir()) == []


def test_build_ids_that_are_wanted_no_more_are_forgotten(fake: FakeAggregator, spool: Spool, queue: UploadQueue) -> None:
    """Five builds a day, each of which is wanted that day and not to be found here."""
    wanted = WantedDebugFiles(spool, queue.connection, queue.log)
    for day in range(0, 12 * 5, 5):
        fake.wanted = tuple(f"{number:040x}" for number in range(day, day + 5))
        wanted.send()
        assert {item for part in gc.get_referents(wanted) if isinstance(part, set) for item in part} == set(fake.wanted)


def test_files_that_were_not_seen_for_long_are_forgotten(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every capture has the C library and a program of its own, and two sightings each; the last ten are remembered."""
    monkeypatch.setattr(spool_tables, "MOST_SIGHTINGS", 10)
    for number in range(200):
        objects = [("c0de", "/lib/libc.so.6"), (f"{number:04x}", f"/build/{number}")]
        spool.tables.add_capture(SpooledCapture(f"s/{number}.capture", "job", "0" * 64, 1), objects)
    assert spool.tables.object_path("c0de") == "/lib/libc.so.6"
    found = [number for number in range(200) if spool.tables.object_path(f"{number:04x}")]
    assert found == list(range(195, 200))
