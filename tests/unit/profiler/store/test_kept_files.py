"""Files that a store keeps for its captures: once on disk, for as long as a session needs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from profiler.errors import StoreError, StoreFullError
from profiler.store import kept_files
from profiler.store.kept_files import KeptKind, keep_file, remove_unneeded, unneeded_files
from profiler.store.records import SessionStart
from profiler.store.store import Store, open_store
from support.held_calls import Call
from support.power_cuts import DurableTree

BUILD_ID = "c0ffee"
CONTENT = memoryview(b"\x7fELF and more" * 1000)
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def begin(store: Store, second: int = 5) -> str:
    session = store.begin_session(SessionStart(f"2026-01-02T03:04:{second:02}+00:00", "h", ("attach",), 0, True))
    (store.directory / "captures" / session).mkdir(parents=True)
    store.finish_session(session)
    return session


def tree(store: Store) -> dict[str, bytes]:
    directory = store.directory / "debug/.build-id"
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.glob("*/*")}


def test_two_sessions_share_a_file(store: Store) -> None:
    first, second = begin(store), begin(store)
    for session in (first, second, second):
        keep_file(store, session, BUILD_ID, KeptKind.BINARY, CONTENT)
    keep_file(store, first, BUILD_ID, KeptKind.DEBUG, CONTENT)
    assert tree(store) == {"c0/ffee": bytes(CONTENT), "c0/ffee.debug": bytes(CONTENT)}
    assert (store.directory / "debug/.build-id/c0/ffee").stat().st_nlink == 3
    assert unneeded_files(store.directory) == ()
    store.remove_session(first)
    assert unneeded_files(store.directory) == (store.directory / "debug/.build-id/c0/ffee.debug",)
    store.remove_session(second)
    assert len(unneeded_files(store.directory)) == 2


def test_prune_removes_what_no_session_needs(store: Store) -> None:
    first, second = begin(store), begin(store, second=6)
    keep_file(store, first, BUILD_ID, KeptKind.BINARY, CONTENT)
    keep_file(store, second, "decade", KeptKind.BINARY, CONTENT)
    command = [sys.executable, "-m", "profiler.cli.main", "--store", str(store.directory), "prune", "--keep-sessions", "1"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == f"removed {first}\nremoved 1 debug file\n"
    assert tree(store) == {"de/cade": bytes(CONTENT)}


def test_a_file_that_would_fill_the_disk_is_not_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_files, "RESERVE_BYTES", 1 << 62)
    with pytest.raises(StoreFullError, match="would leave less than"):
        keep_file(store, begin(store), BUILD_ID, KeptKind.BINARY, CONTENT)
    assert tree(store) == {}


def test_what_is_kept_survives_a_power_cut(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, fsync = begin(store), os.fsync
    durable = DurableTree(store.directory)

    def seen(descriptor: int) -> None:
        durable.saw(Call(threading.get_native_id(), "fsync", descriptor, "", ()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    keep_file(store, session, BUILD_ID, KeptKind.DEBUG, CONTENT)
    left = durable.cut(tmp_path / "left")
    durable.close()
    assert (left / "debug/.build-id/c0/ffee.debug").read_bytes() == bytes(CONTENT)
    assert (left / "captures" / session / "c0ffee.debug").read_bytes() == bytes(CONTENT)


def test_a_file_that_a_session_needs_again_stays(store: Store) -> None:
    """An agent looks for what nobody needs, uploads for minutes, and removes it then."""
    first, second = begin(store), begin(store, second=6)
    keep_file(store, first, BUILD_ID, KeptKind.BINARY, CONTENT)
    keep_file(store, first, "decade", KeptKind.BINARY, CONTENT)
    store.remove_session(first)
    found = unneeded_files(store.directory)
    keep_file(store, second, BUILD_ID, KeptKind.BINARY, CONTENT)
    assert remove_unneeded(found) == (store.directory / "debug/.build-id/de/cade",)
    assert tree(store) == {"c0/ffee": bytes(CONTENT)}


def test_a_file_of_a_session_that_went_is_an_error(store: Store) -> None:
    session = begin(store)
    shutil.rmtree(store.directory / "captures" / session)
    with pytest.raises(StoreError, match=r"c0ffee\.binary: cannot be made"):
        keep_file(store, session, BUILD_ID, KeptKind.BINARY, CONTENT)
