"""The agent's own place on disk: captures are durable here before anybody else has them, and leave when the aggregator does.

<spool>/lock                held by the agent, and by what it started until that has ended
<spool>/agent.sqlite        jobs and what has become of their captures
<spool>/store/              a store as any other; a session per job
<spool>/debug/              debug files on their way
<spool>/refused/            captures that the aggregator will not have, the oldest go first
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from collectors.agent.spool.spool_tables import CaptureState, SpooledCapture, SpoolTables
from profiler.codec.container import decode
from profiler.errors import FormatError, StoreError
from profiler.model.dso import DsoKind
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.hello import SpoolState
from profiler.store.durable_directory import make_directory, sync_directory
from profiler.store.store import Store, open_store

# Left free on the disk, so that what is being recorded can still be put away.
RESERVE_BYTES = 64 << 20
# Of the spool's own limit, for captures that were refused.
REFUSED_SHARE = 0.1
_COMMAND = ("agent", "job")


def session_command(job: str) -> tuple[str, ...]:
    """The command of the session that a job's captures are in."""
    return (*_COMMAND, job)


@dataclass(frozen=True, slots=True)
class Spool:
    """Use ``open_spool``.  Methods raise ``StoreError``."""

    directory: Path
    store: Store
    tables: SpoolTables
    limit_bytes: int

    @property
    def debug_directory(self) -> Path:
        return self.directory / "debug"

    def problem(self) -> str:
        """Why no job is taken, "" = nothing keeps one from being."""
        used = used_bytes(self.directory)
        if used >= self.limit_bytes:
            return f"the spool is full: {used >> 20} of {self.limit_bytes >> 20} MiB wait for the aggregator"
        try:
            free = shutil.disk_usage(self.directory).free
        except OSError as error:
            return f"{self.directory}: {error.strerror}"
        if free < RESERVE_BYTES:
            kept = f"{RESERVE_BYTES >> 20} are kept for what is being recorded"
            return f"the spool's disk is full: {free >> 20} MiB are free in {self.directory}, and {kept}"
        return ""

    def state(self) -> SpoolState:
        """Also where no note can be taken of files that are new, as on a full disk: the aggregator must learn of that."""
        problem = self.problem()
        try:
            self.look_for_new()
        except StoreError as error:
            problem = problem or str(error)
        waiting = self._known_waiting()
        return SpoolState(len(waiting), sum(capture.size_bytes for capture in waiting), problem)

    def waiting(self) -> list[SpooledCapture]:
        """To be uploaded, in the order in which they were finished; files that are new are taken note of first."""
        self.look_for_new()
        return self._known_waiting()

    def _known_waiting(self) -> list[SpooledCapture]:
        return [capture for capture in self.tables.captures() if capture.state is CaptureState.WAITING]

    def look_for_new(self) -> None:
        """A capture's file is whole as soon as it has its name, whether its catalog row was written or not."""
        known = {capture.blob for capture in self.tables.captures()}
        jobs = {session.name: session.start.command for session in self.store.sessions()}
        captures = self.store.directory / "captures"
        for path in sorted(captures.glob("*/*.capture")):
            blob = str(path.relative_to(captures))
            command = jobs.get(path.parent.name, ())
            if blob not in known and len(command) == 3 and command[:2] == _COMMAND:
                self._add(blob, command[2])

    def _add(self, blob: str, job: str) -> None:
        data = self.store.blobs.get(blob)
        try:
            dsos = decode(data, blob).dsos
        except FormatError:  # the aggregator says so too, and then it is kept aside
            dsos = ()
        objects = [(dso.build_id.hex(), dso.path) for dso in dsos if dso.kind is DsoKind.FILE and dso.build_id]
        self.tables.add_capture(SpooledCapture(blob, job, hashlib.sha256(data).hexdigest(), len(data)), objects)

    def captures_of(self, job: str) -> tuple[str, ...]:
        """SHA-256 of every capture that the job made, uploaded or not."""
        self.look_for_new()
        return tuple(dict.fromkeys(capture.sha256 for capture in self.tables.captures() if capture.job == job))

    def path_of(self, capture: SpooledCapture) -> Path:
        return Path(self.store.blobs.where(capture.blob))

    def committed(self, capture: SpooledCapture) -> None:
        """The aggregator has it; only then it goes."""
        self.tables.set_state(capture.blob, CaptureState.COMMITTED)
        self._remove(capture)

    def refused(self, capture: SpooledCapture) -> None:
        """Kept aside, as far as there is room.  Noted first: one whose file is gone while it waits would hold up all others."""
        self.tables.set_state(capture.blob, CaptureState.REFUSED)
        self._put_aside(capture)

    def clean(self) -> None:
        """Removes what is over and done with: files whose commit was confirmed, and the sessions of delivered jobs.  Finishes
        what a kill or a power cut left of that."""
        captures = self.tables.captures()
        for capture in captures:
            if capture.state is CaptureState.COMMITTED:
                self._remove(capture)
            elif capture.state is CaptureState.REFUSED:
                self._put_aside(capture)
        busy = {capture.job for capture in captures if capture.state is CaptureState.WAITING}
        done = {job.id for job in self.tables.jobs() if job.is_delivered} - busy
        for job in done & {capture.job for capture in captures}:
            self.tables.forget_captures(job)
        for session in self.store.sessions():
            if len(session.start.command) == 3 and session.start.command[2] in done:
                self.store.remove_session(session.name)
        self._remove_forgotten()

    def _remove_forgotten(self) -> None:
        """Files of sessions that went: a power cut can bring them back, as their end is not waited for."""
        there = {entry.key.partition("/")[0] for entry in self.store.blobs.entries()}
        for session in there - {session.name for session in self.store.sessions()}:
            self.store.blobs.remove_session(session)

    def _put_aside(self, capture: SpooledCapture) -> None:
        aside = self.directory / "refused"
        with contextlib.suppress(FileNotFoundError), _errors_named(aside):
            make_directory(aside)
            os.replace(self.path_of(capture), aside / f"{capture.sha256}.capture")
            sync_directory(aside)
            _keep_newest(aside, round(REFUSED_SHARE * self.limit_bytes))

    def _remove(self, capture: SpooledCapture) -> None:
        """Its row in the catalog stays until the session goes: without it a later capture would get the same name."""
        self.store.blobs.remove(capture.blob)


def open_spool(directory: Path, limit_bytes: int) -> Spool:
    """Makes what is missing, readable by nobody else."""
    with _errors_named(directory):
        make_directory(directory, 0o700)
        (directory / "debug").mkdir(exist_ok=True)
        for stray in (directory / "debug").iterdir():
            stray.unlink()
    return Spool(directory, open_store(directory / "store", create=True), SpoolTables(directory), limit_bytes)


def used_bytes(directory: Path) -> int:
    """Of all files below it, each once under however many names; what vanishes meanwhile does not count."""
    total, waiting = 0, [directory]
    linked: set[tuple[int, int]] = set()
    while waiting:
        with contextlib.suppress(FileNotFoundError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    else:
                        found = entry.stat(follow_symlinks=False)
                        total += 0 if (found.st_dev, found.st_ino) in linked else found.st_size
                        if found.st_nlink > 1:
                            linked.add((found.st_dev, found.st_ino))
    return total


def _keep_newest(directory: Path, most_bytes: int) -> None:
    total = 0
    with _errors_named(directory):
        for path in sorted(directory.glob("*.capture"), key=lambda path: path.stat().st_mtime_ns, reverse=True):
            total += path.stat().st_size
            if total > most_bytes:
                path.unlink()


@contextlib.contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}") from None
