"""What an aggregator may lose: old sessions, uploads that nobody goes on with, debug files that no capture needs."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.reception import file_name
from profiler.service.ingest.upload_records import UploadPhase, UploadRecord
from profiler.store.debug_tree import kept_build_ids
from profiler.store.prune import RetentionRule, StoreLeftovers, find_leftovers, remove_leftovers


@dataclass(frozen=True, slots=True)
class IngestLeftovers:
    """``uploads``: expired.  ``files``: partial files of no upload.  ``debug_files``: build IDs, of files that only captures of
    agents needed that are gone.  ``sessions``: names of those that are gone, of which something is still remembered."""

    uploads: tuple[UploadRecord, ...] = ()
    files: tuple[str, ...] = ()
    debug_files: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leftovers:
    """``ingest``: nothing of a store that never had agents."""

    store: StoreLeftovers
    ingest: IngestLeftovers = IngestLeftovers()


def find_all(ingest: Ingest, rule: RetentionRule) -> Leftovers:
    """What ``remove_all`` would remove now.  ``StoreError``."""
    now_ns, limits = ingest.clock_ns(), ingest.limits
    of_store = find_leftovers(ingest.store, rule, now_ns / 1e9)
    staying = {session.name for session in ingest.store.sessions()} - set(of_store.sessions)
    expired = ingest.records.expired(now_ns - limits.unfinished_ns, now_ns - limits.finished_ns)
    receiving = ingest.records.receiving()
    gone = ingest.captured.sessions() - staying
    useless = ingest.captured.of_sessions(gone) - _needed(ingest, staying)
    of_ingest = IngestLeftovers(
        uploads=expired,
        files=tuple(name for name in ingest.files.names() if name not in {file_name(*key) for key in receiving}),
        debug_files=tuple(build_id for build_id in kept_build_ids(ingest.store.directory) if build_id in useless),
        sessions=tuple(sorted(gone)),
    )
    return Leftovers(of_store, of_ingest)


def remove_all(ingest: Ingest, rule: RetentionRule) -> Leftovers:
    """What went.  It may be killed at any moment and done again.  ``StoreError``."""
    found = find_all(ingest, rule)
    removed = StoreLeftovers(remove_leftovers(ingest.store, found.store), found.store.strays)
    for record in found.ingest.uploads:
        ingest.records.remove(record)
        if record.phase is UploadPhase.RECEIVING:
            ingest.files.remove(file_name(record.agent, record.offer.sha256))
    for name in found.ingest.files:
        ingest.files.remove(name)
    there = {session.name for session in ingest.store.sessions()}
    needed = _needed(ingest, there)
    useless = tuple(build_id for build_id in found.ingest.debug_files if build_id not in needed)
    # Agents may be asked again from then on; so long as the file is there, nobody is.
    ingest.records.forget_debug_files(useless)
    for build_id in useless:
        ingest.debug_tree.remove(build_id)
    # Last: what they needed tells which files may go, and files that somebody else put there never do.
    ingest.captured.forget_sessions(session for session in found.ingest.sessions if session not in there)
    return Leftovers(removed, IngestLeftovers(found.ingest.uploads, found.ingest.files, useless, found.ingest.sessions))


def _needed(ingest: Ingest, sessions: set[str]) -> frozenset[str]:
    """Build IDs of files in agents' captures, and of the programs of runs that were recorded here or imported."""
    programs = {run.summary.build_id for run in ingest.store.runs() if run.key.session in sessions}
    return ingest.captured.of_sessions(sessions) | programs
