"""Sessions and runs: added, listed, loaded, removed; crashes between the steps; what is not a store."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import FormatError, StoreError, StoreFullError, UsageError
from profiler.model.run import RunKey, RunMode
from profiler.store.catalog import Catalog
from profiler.store.records import SessionStart, SessionState, summarize
from profiler.store.scratch import STRAY_AGE_S, process_namespace
from profiler.store.store import Store, open_store
from support.sample_captures import plain_capture, run_info, same, two_stack_capture

START = SessionStart("2026-03-01T10:00:00+00:00", "host-a", ("bench", "--slots", "32"), 77, has_rounds=True)

VERSION_1 = """
    CREATE TABLE sessions (name TEXT NOT NULL PRIMARY KEY, started_at TEXT NOT NULL, hostname TEXT NOT NULL,
        command TEXT NOT NULL, seed INTEGER NOT NULL, has_rounds INTEGER NOT NULL, state TEXT NOT NULL,
        finished_at TEXT NOT NULL, finished_rounds INTEGER NOT NULL) STRICT;
    CREATE TABLE runs (session TEXT NOT NULL REFERENCES sessions (name), number INTEGER NOT NULL, variant TEXT NOT NULL,
        mode TEXT NOT NULL, round INTEGER NOT NULL, position INTEGER NOT NULL, started_at TEXT NOT NULL,
        hostname TEXT NOT NULL, command TEXT NOT NULL, program TEXT NOT NULL, build_id TEXT NOT NULL, event TEXT NOT NULL,
        frequency_hz INTEGER NOT NULL, period INTEGER NOT NULL, call_graph TEXT NOT NULL, wall_ns INTEGER NOT NULL,
        user_ns INTEGER NOT NULL, system_ns INTEGER NOT NULL, failure TEXT NOT NULL, samples INTEGER NOT NULL,
        lost_samples INTEGER NOT NULL, blob TEXT NOT NULL UNIQUE, size_bytes INTEGER NOT NULL,
        PRIMARY KEY (session, number)) STRICT;
    CREATE INDEX runs_by_variant ON runs (variant, session);
    PRAGMA application_id = 0x534C4F54;
    PRAGMA user_version = 1;
    INSERT INTO sessions VALUES ('s', '2026-03-01T10:00:00+00:00', 'h', '["x"]', 1, 0, 'finished', '', 0);
    INSERT INTO runs VALUES ('s', 3, 'a', 'plain', 0, 0, '', 'h', '["x"]', '', '', '', 0, 0, 'none', 1, 2, 3, '', 0, 0,
        's/0003-a-plain.capture', 7);
"""


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
    connection.execute("PRAGMA user_version = 3")
    connection.close()
    for operation in (lambda: open_store(store.directory, create=False), store.sessions, store.runs):
        with pytest.raises(StoreError, match=r"catalog version 3, but this slotscope knows up to 2"):
            operation()


def test_catalog_of_version_1_is_brought_up_to_date(tmp_path: Path) -> None:
    """The tables as they were written before runs had an origin."""
    with sqlite3.connect(tmp_path / "catalog.sqlite") as connection:
        connection.executescript(VERSION_1)
    connection.close()
    (old,) = open_store(tmp_path, create=False).runs()
    assert (old.key, old.summary.variant, old.blob, old.origin) == (RunKey("s", 3), "a", "s/0003-a-plain.capture", "")
    store = open_store(tmp_path, create=False)
    added = store.add(plain_capture(run_info("s", "a", 1)), origin="0" * 64)
    assert added == store.add(plain_capture(run_info("s", "a", 2)), origin="0" * 64) == RunKey("s", 4)
    with sqlite3.connect(tmp_path / "catalog.sqlite") as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    connection.close()


def test_catalog_of_version_1_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite3.connect(tmp_path / "catalog.sqlite") as connection:
        connection.executescript(VERSION_1)
    connection.close()
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda address, **options: connect(address.replace("=rw", "=ro"), **options))
    with pytest.raises(StoreError, match="of an older version is brought up to date when it is opened where it can be"):
        open_store(tmp_path, create=False)


def test_the_same_upload_is_one_run(store: Store) -> None:
    session = store.begin_session(START)
    first, other = (two_stack_capture(run_info(session, "a", number)) for number in range(2))
    key = store.add(first, origin="a" * 64)
    assert store.add(other, origin="b" * 64) == RunKey(session, 1)
    assert store.add(first, origin="a" * 64) == key == RunKey(session, 0)
    assert [run.origin for run in store.runs()] == ["a" * 64, "b" * 64]
    assert len(list((store.directory / "captures" / session).iterdir())) == 2
    assert [store.add(first), store.add(first)] == [RunKey(session, 2), RunKey(session, 3)]


def test_the_same_upload_by_two_who_do_not_see_each_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both found no run of it, both have written the capture: the catalog decides."""
    session = store.begin_session(START)
    capture = two_stack_capture(run_info(session, "a"))
    monkeypatch.setattr(type(store.catalog), "run_of", lambda *_: None)
    with store.working_directory() as working:
        (working / "raw").write_bytes(b"PERFILE2")
        assert store.add(capture, origin="a" * 64) == store.add(capture, working / "raw", origin="a" * 64)
    assert [path.name for path in (store.directory / "captures" / session).iterdir()] == ["0000-a-profiled.capture"]


def test_what_a_crash_leaves_is_found_when_it_is_old(store: Store) -> None:
    session = store.begin_session(START)
    store.add(two_stack_capture(run_info(session, "a")))
    store.put_document(session, "experiment.json", b"{}")
    captures = store.directory / "captures"
    strays = [f"{session}/0007-a-plain.capture", f"{session}/0007-a-plain.perf.data", "20250101-000000-dead/experiment.json"]
    for key in strays:
        (captures / key).parent.mkdir(exist_ok=True)
        (captures / key).write_bytes(b"x")
    for path in captures.glob("*/*"):
        os.utime(path, (1000, 1000))
    assert store.strays(999) == ()
    assert sorted(store.strays(1001)) == sorted(strays)
    store.remove_strays(store.strays(1001))
    assert sorted(path.name for path in captures.glob("*/*")) == ["0000-a-profiled.capture", "experiment.json"]
    assert len(store.runs()) == 1


def test_a_session_being_recorded_is_not_removed_with_the_ended_ones(store: Store) -> None:
    session = store.begin_session(START)
    store.add(plain_capture(run_info(session, "a")))
    assert not store.remove_ended_session(session)
    assert not store.remove_ended_session("20250101-000000-dead")
    assert len(store.runs()) == 1
    store.finish_session(session)
    assert store.remove_ended_session(session)
    assert (store.sessions(), store.runs(), list((store.directory / "captures").iterdir())) == ((), (), [])


def test_full_disk_is_an_error_of_its_own(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    session = store.begin_session(START)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreFullError, match="No space left"):
            store.add(plain_capture(run_info(session, "a")))
    connect = sqlite3.connect

    def small(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(StoreFullError, match="database or disk is full"):
        store.add(plain_capture(run_info(session, "a"), failure="x" * 100_000))


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


class _UnreadCatalog:
    """A catalog whose rows nobody may read."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        assert name not in ("runs", "sessions"), "all runs are read to add one"
        return getattr(self._catalog, name)


def test_runs_that_are_there_are_not_read_to_add_another(store: Store) -> None:
    """Sessions of weeks have tens of thousands."""
    session = store.begin_session(START)
    adding = replace(store, catalog=_UnreadCatalog(store.catalog))
    keys = [adding.add(plain_capture(run_info(session, "base", position=place))) for place in range(3)]
    assert keys == [RunKey(session, number) for number in range(3)]


def test_files_are_numbered_as_their_runs_after_some_were_removed(store: Store) -> None:
    session = store.begin_session(START)
    for place in range(3):
        store.add(plain_capture(run_info(session, "base", position=place)))
    store.remove(store.runs(session)[:2])
    store.add(plain_capture(run_info(session, "base", position=3)))
    assert [(run.key.number, run.blob) for run in store.runs(session)] == [
        (2, f"{session}/0002-base-profiled.capture"),
        (3, f"{session}/0003-base-profiled.capture"),
    ]
