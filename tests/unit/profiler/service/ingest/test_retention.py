"""What is removed after its time, and what never is."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import zstandard

from profiler.protocol.upload import UploadState
from profiler.service.ingest.commitment import commit_upload
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.limits import IngestLimits
from profiler.service.ingest.reception import offer_upload
from profiler.service.ingest.retention import Leftovers, find_all, remove_all
from profiler.service.ingest.upload_error import UploadError
from profiler.service.ingest.wanted import wanted_files
from profiler.store import debug_tree
from profiler.store.prune import RetentionRule, StoreLeftovers
from profiler.store.store import open_store
from support.elf_programs import compile_program, load_image
from support.uploading import AGENT, START, Bench, capture_bytes, debug_offer_of, offer_of, open_bench, send, upload

DAY_NS = 86_400 * 10**9
NOTHING = RetentionRule()
DATA = capture_bytes()


@dataclass
class Clock:
    now_ns: int

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def clock() -> Clock:
    return Clock(2_000_000_000 * 10**9)  # sessions end by the real clock, long before


@pytest.fixture
def bench(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("HOME", str(tmp_path))
    made = open_bench(tmp_path / "store")
    return replace(made, ingest=replace(made.ingest, clock_ns=clock))


def test_nothing_is_removed_before_its_time(bench: Bench, clock: Clock) -> None:
    other = capture_bytes(1)
    upload(bench.ingest, DATA)
    send(bench.ingest, other[:10], offer_of(other))
    clock.now_ns += IngestLimits().unfinished_ns
    assert remove_all(bench.ingest, NOTHING) == find_all(bench.ingest, NOTHING) == Leftovers(StoreLeftovers((), ()))
    assert offer_upload(bench.ingest, AGENT, offer_of(other)).received_bytes == 10


def test_an_unfinished_upload_expires(bench: Bench, clock: Clock) -> None:
    send(bench.ingest, DATA[:10], offer_of(DATA))
    clock.now_ns += 7 * DAY_NS + 1
    would = find_all(bench.ingest, NOTHING)
    assert [record.offer for record in would.ingest.uploads] == [offer_of(DATA)]
    assert len(bench.ingest.files.names()) == 1
    assert remove_all(bench.ingest, NOTHING) == would
    assert bench.ingest.files.names() == ()
    with pytest.raises(UploadError, match="was not offered, or not gone on with for too long"):
        commit_upload(bench.ingest, AGENT, offer_of(DATA).sha256)
    assert upload(bench.ingest, DATA).refusal == ""


def test_an_upload_that_goes_on_does_not_expire(bench: Bench, clock: Clock) -> None:
    for size in (10, 20, 30):
        send(bench.ingest, DATA[:size], offer_of(DATA))
        clock.now_ns += 6 * DAY_NS
        assert remove_all(bench.ingest, NOTHING).ingest.uploads == ()
    assert send(bench.ingest, DATA, offer_of(DATA)).received_bytes == len(DATA)


def test_one_run_even_when_the_upload_was_forgotten(bench: Bench, clock: Clock) -> None:
    upload(bench.ingest, DATA)
    clock.now_ns += 90 * DAY_NS + 1
    assert len(remove_all(bench.ingest, NOTHING).ingest.uploads) == 1
    assert offer_upload(bench.ingest, AGENT, offer_of(DATA)) == UploadState(offer_of(DATA).sha256, 0)
    assert upload(bench.ingest, DATA).refusal == ""
    assert len(bench.ingest.store.runs()) == 1


def test_partial_files_of_no_upload_go(bench: Bench) -> None:
    send(bench.ingest, DATA[:10], offer_of(DATA))
    (bench.ingest.files.directory / f"{'0' * 64}.{AGENT}").write_bytes(b"x")
    assert remove_all(bench.ingest, NOTHING).ingest.files == (f"{'0' * 64}.{AGENT}",)
    assert bench.ingest.files.names() == (f"{offer_of(DATA).sha256}.{AGENT}",)


def debug_file(ingest: Ingest, directory: Path) -> str:
    """Sends one; its build ID."""
    program = compile_program(directory, "p.c", "int main(void) { return 0; }", ["-g", "-Wl,--build-id=sha1"])
    build_id = load_image(program).build_id.hex()
    ingest.captured.add(AGENT, ingest.store.sessions()[0].name, [build_id])
    data = zstandard.compress(program.read_bytes())
    assert upload(ingest, data, debug_offer_of(data, build_id)).refusal == ""
    return build_id


def test_debug_files_stay_as_long_as_a_capture_needs_them(bench: Bench, clock: Clock, tmp_path: Path) -> None:
    build_id, store = debug_file(bench.ingest, tmp_path), bench.ingest.store
    upload(bench.ingest, DATA)
    store.finish_session(bench.session)
    second = store.begin_session(START)
    bench.ingest.captured.add(AGENT, second, [build_id])
    assert remove_all(bench.ingest, RetentionRule(older_than_s=0.0)).store.sessions == (bench.session,)
    assert bench.ingest.debug_tree.rank(build_id)
    store.finish_session(second)
    gone = remove_all(bench.ingest, RetentionRule(keep_sessions=0))
    assert (gone.store.sessions, gone.ingest.debug_files) == ((second,), (build_id,))
    assert not list((store.directory / "debug").rglob("*.debug"))


def test_a_removed_debug_file_is_asked_for_again(bench: Bench, tmp_path: Path) -> None:
    build_id, store = debug_file(bench.ingest, tmp_path), bench.ingest.store
    store.finish_session(bench.session)
    remove_all(bench.ingest, RetentionRule(keep_sessions=0))
    bench.ingest.captured.add(AGENT, store.begin_session(START), [build_id])
    assert wanted_files(bench.ingest, AGENT).build_ids == (build_id,)
    assert debug_file(bench.ingest, tmp_path) == build_id


def test_a_session_being_recorded_stays_with_what_it_needs(bench: Bench, clock: Clock, tmp_path: Path) -> None:
    build_id = debug_file(bench.ingest, tmp_path)
    upload(bench.ingest, DATA)
    clock.now_ns += 1000 * DAY_NS
    gone = remove_all(bench.ingest, RetentionRule(older_than_s=1.0, keep_sessions=0))
    assert (gone.store.sessions, gone.ingest.debug_files) == ((), ())
    assert bench.ingest.debug_tree.rank(build_id)
    assert len(open_store(bench.ingest.store.directory, create=False).runs()) == 1


def test_files_of_crashes_go_after_a_day(bench: Bench, clock: Clock) -> None:
    stray = bench.ingest.store.directory / "captures" / bench.session / "0099-x-plain.capture"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"x")
    for age_days, found in ((0.9, 0), (1.1, 1)):
        then_s = clock.now_ns / 1e9 - age_days * 86_400
        os.utime(stray, (then_s, then_s))
        assert len(remove_all(bench.ingest, NOTHING).store.strays) == found
    assert not stray.exists()


def test_debug_files_that_no_agent_sent_stay(bench: Bench, clock: Clock) -> None:
    """Somebody put it there, for runs that were recorded on this machine."""
    path = debug_tree.debug_file(bench.ingest.store.directory, "c0ffee")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"debug")
    upload(bench.ingest, DATA)
    clock.now_ns += 400 * DAY_NS
    removed = remove_all(bench.ingest, RetentionRule(older_than_s=86_400.0))
    assert removed.ingest.debug_files == ()
    assert path.read_bytes() == b"debug"
