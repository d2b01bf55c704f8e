"""Blobs in a directory: all or nothing, never overwritten, never outside."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from profiler.errors import StoreError
from profiler.store.blobs import DirectoryBlobs
from profiler.store.scratch import Scratch


@pytest.fixture
def blobs(tmp_path: Path) -> DirectoryBlobs:
    return DirectoryBlobs(tmp_path / "captures", Scratch(tmp_path / "tmp"))


def no_links(*_: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("has_links", [True, False])
def test_key_is_taken_once(blobs: DirectoryBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    assert blobs.put("s/one", b"first")
    assert not blobs.put("s/one", b"second")
    assert blobs.get("s/one") == (tmp_path / "captures" / "s" / "one").read_bytes() == b"first"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_file_is_moved_in(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    source = tmp_path / "perf.data"
    source.write_bytes(b"raw")
    assert blobs.put_file("s/one", source)
    assert blobs.get("s/one") == b"raw"
    assert not source.exists()


def test_full_disk_leaves_nothing(blobs: DirectoryBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"captures/s/one: No space left on device"):
        blobs.put("s/one", b"x")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("key", ["", "/etc/passwd", "../x", "s/../../x", "s//x", "s/.x", "s/x\n", "s/x\0"])
def test_keys_that_lead_elsewhere(blobs: DirectoryBlobs, key: str) -> None:
    for operation in (blobs.get, blobs.remove, blobs.remove_session, blobs.where, lambda k: blobs.put(k, b"")):
        with pytest.raises(StoreError, match="not the name of a capture"):
            operation(key)


def test_removing_what_is_not_there_is_silent(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    blobs.remove("s/one")
    blobs.remove_session("s")
    blobs.put("s/one", b"x")
    blobs.remove_session("s")
    assert not (tmp_path / "captures" / "s").exists()
