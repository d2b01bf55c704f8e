"""The store: captures as blobs, and a catalog of them.

    <directory>/catalog.sqlite
    <directory>/captures/<session>/<nnnn>-<arm>-<mode>.capture         (and .perf.data beside it when kept)
    <directory>/captures/<session>/experiment.json                     what the session was meant to be, of an experiment
    <directory>/tmp/                                                   files being written

A capture is whole and durable before its catalog row exists: a crash between the two leaves a file that nobody counts, and
that ``remove_strays`` removes a day later.
"""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from profiler.codec.container import decode, encode
from profiler.errors import FormatError, StoreError
from profiler.model.capture import Capture
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import RunKey
from profiler.store.blobs import Blobs, DirectoryBlobs
from profiler.store.catalog import Catalog
from profiler.store.durable_directory import make_directory
from profiler.store.presence import CATALOG_NAME, is_store
from profiler.store.records import (
    SessionStart,
    SessionState,
    StoredRun,
    StoredSession,
    check_variant_name,
    summarize,
)
from profiler.store.scratch import Scratch
from profiler.store.sqlite_catalog import SqliteCatalog

_DAMAGED = "its file is damaged"
CAPTURE_SUFFIX, RAW_SUFFIX = ".capture", ".perf.data"


@dataclass(frozen=True, slots=True)
class Store:
    """Use ``open_store``.  Methods raise ``StoreError``; several processes may use one store at the same time."""

    directory: Path
    catalog: Catalog
    blobs: Blobs
    scratch: Scratch

    def begin_session(self, start: SessionStart) -> str:
        """The new session's name, ``YYYYMMDD-HHMMSS-xxxx`` from its start time and four random hexadecimal digits."""
        stamp = datetime.fromisoformat(start.started_at).astimezone(UTC).strftime("%Y%m%d-%H%M%S")
        for _ in range(20):
            name = f"{stamp}-{secrets.token_hex(2)}"
            if self.catalog.add_session(StoredSession(name, start, SessionState.RECORDING)):
                return name
        raise StoreError(f"{self.directory}: no free session name for {stamp}")

    def finish_round(self, session: str, round_number: int) -> None:
        """Every run of the round is in the store; runs of later rounds count as cut short until their turn."""
        self.catalog.finish_round(session, round_number)

    def finish_session(self, session: str, state: SessionState = SessionState.FINISHED) -> None:
        self.catalog.finish_session(session, state, datetime.now(UTC).isoformat(timespec="seconds"))

    def add(self, capture: Capture, raw_recording: Path | None = None, origin: str = "") -> RunKey:
        """Adds a run to the session that the capture names; ``raw_recording`` (in a ``working_directory``) is moved in.

        The session must have begun.  What came from elsewhere has an ``origin`` (SHA-256 of it): when there is a run of it
        already, nothing is added and that run's key comes back, whatever was killed in between and however many do it at once.
        """
        identity = capture.info.identity
        check_variant_name(identity.arm)
        known = self.catalog.run_of(origin) if origin else None
        if known is not None:
            return known.key
        data = encode(capture)
        blob, number = "", self.catalog.next_number(identity.session)
        while True:
            blob = f"{identity.session}/{number:04d}-{identity.arm}-{identity.mode}{CAPTURE_SUFFIX}"
            if self.blobs.put(blob, data):
                break
            number += 1
        if raw_recording is not None:
            self.blobs.put_file(raw_key(blob), raw_recording)
        stored = self.catalog.add_run(identity.session, summarize(capture), blob, len(data), origin)
        if stored.blob != blob:  # another one who adds the same was first
            self._remove_blobs(blob)
        return stored.key

    def mark(self, run: StoredRun, failure: str) -> None:
        """The run stays, and counts as failed for this reason from now on; "" = it counts."""
        if run.summary.failure == failure:
            return
        try:
            capture = self.load(run)
        except FormatError:  # nobody reads it any more
            self.catalog.replace_run(run.key, replace(run.summary, failure=failure or _DAMAGED), run.blob, run.size_bytes)
            return
        outcome = replace(capture.info.outcome, failure=failure)
        capture = replace(capture, info=replace(capture.info, outcome=outcome))
        mark = "left-out" if failure else "counted"
        data, blob = encode(capture), f"{run.blob.removesuffix(CAPTURE_SUFFIX)}-{mark}{CAPTURE_SUFFIX}"
        if not self.blobs.put(blob, data):  # killed before the next line, another time
            data = self.blobs.get(blob)
        self.catalog.replace_run(run.key, summarize(capture), blob, len(data))
        self._remove_blobs(run.blob)

    def resume_session(self, session: str) -> None:
        """The session is being recorded again."""
        self.catalog.finish_session(session, SessionState.RECORDING, "")

    def put_document(self, session: str, name: str, data: bytes) -> None:
        """Keeps a file beside the session's captures; ``StoreError`` when it has one of that name."""
        if not self.blobs.put(f"{session}/{name}", data):
            raise StoreError(f"{self.blobs.where(f'{session}/{name}')}: is there already")

    def document(self, session: str, name: str) -> bytes | None:
        """None when the session has no such file."""
        key = f"{session}/{name}"
        return self.blobs.get(key) if self.blobs.has(key) else None

    def sessions(self) -> tuple[StoredSession, ...]:
        """Oldest first."""
        return self.catalog.sessions()

    def runs(self, session: str = "", variant: str = "") -> tuple[StoredRun, ...]:
        """By session and run number; failed runs and runs of unfinished rounds included."""
        return self.catalog.runs(session, variant)

    def load(self, run: StoredRun) -> Capture:
        """``StoreError`` when the file is gone, ``FormatError`` when it is damaged or newer."""
        return decode(self.blobs.get(run.blob), self.blobs.where(run.blob))

    def remove(self, runs: tuple[StoredRun, ...]) -> None:
        """Removes runs; a session that has none left goes too, with every file it still has."""
        self.catalog.remove_runs(tuple(run.key for run in runs))
        for run in runs:
            self._remove_blobs(run.blob)
        for session in sorted({run.key.session for run in runs}):
            if not self.catalog.runs(session):
                self.remove_session(session)

    def remove_session(self, session: str) -> None:
        self.catalog.remove_session(session)
        self.blobs.remove_session(session)

    def remove_empty_session(self, session: str) -> bool:
        """False, and nothing happens, when there is a run in it, or a file: one that was just filed has no run yet."""
        filed = (entry.key.partition("/")[0] for entry in self.blobs.entries())
        if self.catalog.runs(session) or session in filed:
            return False
        self.catalog.remove_session(session)
        return True

    def remove_ended_session(self, session: str) -> bool:
        """False, and nothing happens, when it is being recorded or gone."""
        if not self.catalog.remove_ended_session(session):
            return False
        self.blobs.remove_session(session)
        return True

    def strays(self, before_s: float) -> tuple[str, ...]:
        """Keys of captures, and of the raw recordings beside them, that no run counts and that were written before this time
        (s since 1970); and of every file of sessions that the catalog does not know."""
        found = [entry.key for entry in self.blobs.entries() if entry.changed_s < before_s]
        runs, sessions = self.catalog.runs(), {session.name for session in self.catalog.sessions()}
        counted = {run.blob for run in runs} | {raw_key(run.blob) for run in runs}
        return tuple(key for key in found if key not in counted and (_is_of_run(key) or key.partition("/")[0] not in sessions))

    def remove_strays(self, keys: tuple[str, ...]) -> None:
        for key in keys:
            self.blobs.remove(key)

    def _remove_blobs(self, blob: str) -> None:
        self.blobs.remove(blob)
        self.blobs.remove(raw_key(blob))

    def working_directory(self) -> AbstractContextManager[Path]:
        """A fresh directory on the store's file system, removed at the end."""
        return self.scratch.working_directory()


def raw_key(blob: str) -> str:
    """Key of the raw recording kept beside a capture."""
    return blob.removesuffix(CAPTURE_SUFFIX) + RAW_SUFFIX


def _is_of_run(key: str) -> bool:
    return key.endswith((CAPTURE_SUFFIX, RAW_SUFFIX))


def open_store(directory: Path, create: bool) -> Store:
    """The store in ``directory``; ``create`` makes what is missing.

    ``StoreError``: no store there (without ``create``), not writable, another program's or a damaged or newer catalog.
    """
    if not create and not is_store(directory):
        makes = "`slotscope record` or `experiment run` makes one, --store DIR names another"
        raise StoreError(f"{directory}: no store there; {makes}")
    try:
        make_directory(directory)
    except OSError as error:
        raise StoreError(f"{directory}: {error.strerror}; --store DIR names another place") from None
    catalog = SqliteCatalog(directory / CATALOG_NAME, create)
    scratch = Scratch(directory / "tmp")
    scratch.clean()
    return Store(directory, catalog, DirectoryBlobs(directory / "captures", scratch), scratch)
