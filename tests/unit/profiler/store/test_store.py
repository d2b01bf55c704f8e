"""Sessions and runs: added, listed, loaded, removed; crashes between the steps; what is not a store."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.errors import FormatError, StoreError, UsageError
from profiler.model.run import RunKey, RunMode
from profiler.store.records import SessionStart, SessionState, summarize
from profiler.store.scratch import STRAY_AGE_S, process_namespace
from profiler.store.store import Store, open_store
from support.sample_captures import plain_capture, run_info, same, two_stack_capture

START = SessionStart("2026-03-01T10:00:00+00:00", "host-a", ("bench", "--slots", "32"), 77, has_rounds=True)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def test_session_name_is_its_start_and_four_digits(store: Store) -> None:
    name = store.begin_session(START)
    assert name.startswith("20260301-100000-")
    assert len(name) == 20
    assert int(name[-4:], 16) >= 0
    (session,) = store.sessions()
    assert (session.name, session.start, session.state, session.finished_at) == (name, START, SessionState.RECORDING, "")


def test_what_is_added_comes_back(store: Store) -> None:
    session = store.begin_session(START)
    profiled = two_stack_capture(run_info(session, "base", position=1))
    plain = plain_capture(run_info(session, "base", mode=RunMode.PLAIN), failure="exit code 3")
    assert [store.add(plain), store.add(profiled)] == [RunKey(session, 0), RunKey(session, 1)]
    first, second = open_store(store.directory, create=False).runs(session)
    assert same(store.load(first), plain)
    assert same(store.load(second), profiled)
    assert (first.summary.failure, first.summary.mode, first.summary.samples) == ("exit code 3", RunMode.PLAIN, 0)
    assert (second.summary.event, second.summary.frequency_hz, second.summary.samples) == ("cpu-clock", 1999, 3)
    assert second.summary.build_id == "ab" * 20
    assert second.summary.command == ("/opt/base", "--slots", "32")
    path = store.directory / "captures" / session / "0001-base-profiled.capture"
    assert path.stat().st_size == second.size_bytes


def test_names_that_are_not_utf_8_come_back(store: Store) -> None:
    info = run_info(store.begin_session(START), "base")
    path = os.fsdecode(b"/opt/caf\xe9")
    store.add(plain_capture(replace(info, program=replace(info.program, path=path), command=(path,)), failure=f"{path}: gone"))
    summary = store.runs()[0].summary
    assert (summary.program, summary.command, summary.failure) == (path, (path,), f"{path}: gone")
    assert os.fsencode(store.load(store.runs()[0]).info.program.path) == b"/opt/caf\xe9"
    assert store.runs(variant=path) == ()


def test_rounds_are_whole_once_they_were_finished(store: Store) -> None:
    session = store.begin_session(START)
    for number in range(3):
        store.add(plain_capture(run_info(session, "base", number)))
    assert [run.round_complete for run in store.runs()] == [False, False, False]
    store.finish_round(session, 0)
    store.finish_round(session, 1)
    assert [run.round_complete for run in store.runs()] == [True, True, False]
    store.finish_session(session, SessionState.INTERRUPTED)
    assert [run.round_complete for run in store.runs()] == [True, True, False]
    assert store.sessions()[0].state is SessionState.INTERRUPTED


def test_sessions_without_rounds_have_whole_runs(store: Store) -> None:
    session = store.begin_session(replace(START, has_rounds=False))
    store.add(plain_capture(run_info(session, "base", 5)))
    assert [run.round_complete for run in store.runs()] == [True]


def test_runs_are_found_by_session_and_variant(store: Store) -> None:
    first, second = store.begin_session(START), store.begin_session(replace(START, started_at="2026-03-02T10:00:00+00:00"))
    for session, variant in ((first, "a"), (first, "b"), (second, "a")):
        store.add(plain_capture(run_info(session, variant)))
    assert [run.key for run in store.runs(variant="a")] == [RunKey(first, 0), RunKey(second, 0)]
    assert [run.key for run in store.runs(first)] == [RunKey(first, 0), RunKey(first, 1)]
    assert [run.key for run in store.runs(first, "b")] == [RunKey(first, 1)]
    assert [session.name for session in store.sessions()] == [first, second]


def test_removing_the_last_run_removes_the_session_and_its_files(store: Store) -> None:
    session = store.begin_session(START)
    store.add(plain_capture(run_info(session, "a")))
    store.add(plain_capture(run_info(session, "b")))
    store.remove(store.runs(session, "a"))
    assert [run.summary.variant for run in store.runs()] == ["b"]
    assert len(list((store.directory / "captures" / session).iterdir())) == 1
    store.remove(store.runs(session, "b"))
    assert store.sessions() == ()
    assert not (store.directory / "captures" / session).exists()


def test_raw_recording_is_kept_beside_and_removed_with_its_run(store: Store) -> None:
    session = store.begin_session(START)
    with store.working_directory() as working:
        raw = working / "perf.data"
        raw.write_bytes(b"PERFILE2")
        store.add(two_stack_capture(run_info(session, "a")), raw)
    kept = store.directory / "captures" / session / "0000-a-profiled.perf.data"
    assert kept.read_bytes() == b"PERFILE2"
    store.remove(store.runs())
    assert not kept.exists()


def test_run_of_an_unknown_session_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store.add(plain_capture(run_info("20260301-100000-0000", "a")))
    assert store.runs() == ()


@pytest.mark.parametrize("name", ["", "last", "a/b", "a=b", "../x", "-x", "a b", "x:y", "a\n"])
def test_variant_names_that_no_selector_could_name(store: Store, name: str) -> None:
    session = store.begin_session(START)
    with pytest.raises(UsageError, match="variant name"):
        store.add(plain_capture(run_info(session, name)))


def test_stray_capture_of_a_crash_is_neither_listed_nor_overwritten(store: Store) -> None:
    session = store.begin_session(START)
    stray = store.directory / "captures" / session / "0000-a-profiled.capture"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"whole, but the catalog row never came")
    assert store.runs() == ()
    capture = two_stack_capture(run_info(session, "a"))
    store.add(capture)
    assert stray.read_bytes().startswith(b"whole")
    (run,) = store.runs()
    assert same(store.load(run), capture)


def test_temporary_files_are_removed_by_age(store: Store) -> None:
    old, young = store.directory / "tmp" / "1-aa", store.directory / "tmp" / "2-bb"
    for directory, age_s in ((old, STRAY_AGE_S + 60), (young, STRAY_AGE_S - 60)):
        directory.mkdir(parents=True)
        (directory / "capture").write_bytes(b"half")
        then = directory.stat().st_mtime - age_s
        os.utime(directory / "capture", (then, then))
        os.utime(directory, (then, then))
    open_store(store.directory, create=False)
    assert not old.exists()
    assert (young / "capture").read_bytes() == b"half"


def test_temporary_files_of_ended_processes_are_removed_at_once(store: Store) -> None:
    """A directory's name says whose it is; other hosts' and containers' processes cannot be asked after."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    here, elsewhere = process_namespace(), "0" * 12
    names = [f"{ended.pid}-{here}-aa", f"{os.getpid()}-{here}-bb", f"{ended.pid}-{elsewhere}-cc", f"{ended.pid}-dd"]
    for name in names:
        (store.directory / "tmp" / name).mkdir(parents=True)
    open_store(store.directory, create=False)
    assert sorted(path.name for path in (store.directory / "tmp").iterdir()) == sorted(names[1:])


def test_temporary_directory_is_empty_after_adding(store: Store) -> None:
    store.add(plain_capture(run_info(store.begin_session(START), "a")))
    assert list((store.directory / "tmp").iterdir()) == []


def test_capture_file_that_is_gone_or_damaged(store: Store) -> None:
    store.add(two_stack_capture(run_info(store.begin_session(START), "a")))
    (run,) = store.runs()
    path = store.directory / "captures" / run.blob
    data = bytearray(path.read_bytes())
    data[-40] ^= 4
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"0000-a-profiled\.capture: byte \d+: checksum does not match"):
        store.load(run)
    path.unlink()
    with pytest.raises(StoreError, match=r"0000-a-profiled\.capture: No such file"):
        store.load(run)


def test_no_store_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere: no store there; `slotscope record`"):
        open_store(tmp_path / "nowhere", create=False)
    assert not (tmp_path / "nowhere").exists()


def test_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/store: Not a directory"):
        open_store(tmp_path / "file" / "store", create=True)


@pytest.mark.parametrize(
    "content", [b"this is no database, but long enough to look like a page" * 20, b"SQLite format 3\0" + b"\xff" * 4080]
)
def test_catalog_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "catalog.sqlite").write_bytes(content)
    for create in (False, True):
        with pytest.raises(StoreError, match=r"catalog\.sqlite: not a slotscope catalog, or damaged"):
            open_store(tmp_path, create)
    assert (tmp_path / "catalog.sqlite").read_bytes() == content


def test_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "catalog.sqlite") as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    with pytest.raises(StoreError, match=r"catalog\.sqlite: a database of another program"):
        open_store(tmp_path, create=True)


def test_catalog_of_a_newer_version(store: Store) -> None:
    connection = sqlite3.connect(store.directory / "catalog.sqlite")
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    for operation in (lambda: open_store(store.directory, create=False), store.sessions, store.runs):
        with pytest.raises(StoreError, match=r"catalog version 2, but this slotscope knows up to 1"):
            operation()


def test_damage_in_the_middle_of_a_catalog_is_one_line(store: Store) -> None:
    session = store.begin_session(START)
    for number in range(60):
        store.catalog.add_run(session, summarize(plain_capture(run_info(session, "a", number))), f"{session}/{number}", 1)
    path = store.directory / "catalog.sqlite"
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(value ^ 0xA5 for value in data[4096:])
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"^\S*catalog\.sqlite: [^\n]+$"):
        store.runs()


def test_rows_with_impossible_values_are_damage(store: Store) -> None:
    store.add(plain_capture(run_info(store.begin_session(START), "a")))
    connection = sqlite3.connect(store.directory / "catalog.sqlite")
    connection.execute("UPDATE runs SET mode = 'sideways'")
    connection.commit()
    with pytest.raises(StoreError, match="catalog is damaged"):
        store.runs()
    connection.execute("UPDATE runs SET mode = 'plain', blob = '../../etc/passwd'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="not the name of a capture"):
        store.load(store.runs()[0])


def test_empty_catalog_file_of_a_killed_recorder_is_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").write_bytes(b"")
    assert open_store(tmp_path, create=False).sessions() == ()
