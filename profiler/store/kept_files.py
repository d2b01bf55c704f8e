"""Binaries and debug files that a store keeps for its captures, because they may be gone when somebody asks for names.

They lie in the tree that is searched for debug files, and once more, as hard links, with the captures of each session that
needs them: what has no other link belongs to no session any more.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from profiler.errors import StoreError, StoreFullError
from profiler.store.debug_tree import DEBUG_SUFFIX, debug_directory
from profiler.store.durable_directory import make_directory, sync_directory
from profiler.store.scratch import store_errors
from profiler.store.store import Store

# Left free on the disk for captures.
RESERVE_BYTES = 256 << 20
_TRIES = 3


class KeptKind(StrEnum):
    """The end of a file's name in the tree."""

    BINARY = ""
    DEBUG = DEBUG_SUFFIX
    PACKAGE = ".dwp"


def keep_file(store: Store, session: str, build_id: str, kind: KeptKind, data: memoryview) -> None:
    """Durable when it returns; nothing happens where it is there already.  ``build_id``: lower-case hex.  ``StoreError``;
    ``StoreFullError`` also when too little room would be left."""
    target = debug_directory(store.directory) / ".build-id" / build_id[:2] / f"{build_id[2:]}{kind}"
    link = store.directory / "captures" / session / f"{build_id}{kind or '.binary'}"
    with store_errors(target):
        for _ in range(_TRIES):
            if not target.exists():
                _write(store, target, data)
            try:
                os.link(target, link)
            except FileExistsError:
                return
            except FileNotFoundError:  # removed as nobody's at this moment
                continue
            sync_directory(link.parent)
            return
    raise StoreError(f"{link}: cannot be made: its directory was removed, or {target} was, {_TRIES} times")


def unneeded_files(directory: Path) -> tuple[Path, ...]:
    """Kept files of the store in ``directory`` that no session needs any more, in order."""
    found = []
    for path in (debug_directory(directory) / ".build-id").glob("*/*"):
        with contextlib.suppress(FileNotFoundError):
            found += [path] if path.stat().st_nlink == 1 else []
    return tuple(sorted(found))


def remove_unneeded(found: Iterable[Path]) -> tuple[Path, ...]:
    """Of ``unneeded_files`` those that went: what a session has come to need since then stays.  ``StoreError``."""
    removed = []
    for path in found:
        with store_errors(path), contextlib.suppress(FileNotFoundError):
            if path.stat().st_nlink == 1:
                path.unlink()
                removed.append(path)
    return tuple(removed)


def _write(store: Store, target: Path, data: memoryview) -> None:
    if shutil.disk_usage(store.directory).free < len(data) + RESERVE_BYTES:
        raise StoreFullError(f"{target}: {len(data) >> 20} MiB would leave less than {RESERVE_BYTES >> 20} free")
    make_directory(target.parent)
    with store.working_directory() as working:
        temporary = working / "file"
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    sync_directory(target.parent)
