"""The last step of an upload: its content is checked and filed, once.

Killed at any moment, the step is done again by the next commit: a capture is found by its origin, a debug file is no better
than itself.  The record of the upload changes last, and the file that was received goes after that.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from dataclasses import replace

from profiler.codec.container import decode
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.protocol.job import JobReport, JobState
from profiler.protocol.upload import CommitResult, UploadKind
from profiler.service.ingest.capture_checks import build_ids_of, captures_expected, checked_capture
from profiler.service.ingest.debug_files import check_elf, unpack
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.partial_files import PartialFile
from profiler.service.ingest.reception import file_name, record_of
from profiler.service.ingest.upload_error import NotAcceptable, UploadError, UploadProblem
from profiler.service.ingest.upload_records import UploadPhase, UploadRecord
from profiler.service.jobs.unjudged import UNJUDGED
from profiler.store.scratch import store_errors

_READ_BYTES = 1 << 20
# Runs are repeated, and a target can be several processes; more than this is no job's work.
_MOST_CAPTURES_PER_EXPECTED, _MOST_CAPTURES_BESIDE = 8, 16


def commit_upload(ingest: Ingest, agent: str, sha256: str) -> CommitResult:
    """The content is accepted, or refused for good; the same answer however often it is asked for.

    ``UploadError`` UNKNOWN, CONFLICT (not whole, or not the bytes that were offered), BUSY; ``StoreFullError``, ``StoreError``:
    neither accepted nor refused.
    """
    record = record_of(ingest, agent, sha256)
    if record.phase is not UploadPhase.RECEIVING:
        return CommitResult(sha256, record.refusal)
    with ingest.files.held(file_name(agent, sha256)) as file:
        record = record_of(ingest, agent, sha256)
        if record.phase is UploadPhase.RECEIVING:
            refusal = _checked_bytes(ingest, record, file) or _filed(ingest, record, file)
            ingest.records.finish(agent, sha256, refusal, ingest.clock_ns())
        ingest.files.remove(file_name(agent, sha256))
    return CommitResult(sha256, record_of(ingest, agent, sha256).refusal)


def _checked_bytes(ingest: Ingest, record: UploadRecord, file: PartialFile) -> str:
    """Why it is refused, or "" when they are those that were offered."""
    offer = record.offer
    if record.received_bytes < offer.size_bytes or file.size_bytes < offer.size_bytes:
        held = min(record.received_bytes, file.size_bytes)
        raise UploadError(UploadProblem.CONFLICT, f"{held} of {offer.size_bytes} bytes are here")
    with store_errors(file.path):
        os.ftruncate(file.descriptor, offer.size_bytes)
    if _sha256(file) == offer.sha256:
        return ""
    if record.wrong_contents + 1 >= ingest.limits.wrong_contents:
        return f"what was received has another SHA-256, {ingest.limits.wrong_contents} times over"
    ingest.records.begin_again(record.agent, offer.sha256, ingest.clock_ns())
    raise UploadError(UploadProblem.CONFLICT, "what was received has another SHA-256, and was dropped: send it again")


def _filed(ingest: Ingest, record: UploadRecord, file: PartialFile) -> str:
    """Why the content is refused, or "" when it is in its place."""
    try:
        if record.offer.kind is UploadKind.CAPTURE:
            _file_capture(ingest, record, file)
        else:
            _file_debug_file(ingest, record, file)
    except NotAcceptable as error:
        return str(error)
    except FormatError as error:
        return str(error)
    return ""


def _file_capture(ingest: Ingest, record: UploadRecord, file: PartialFile) -> None:
    offer, stored = record.offer, ingest.jobs.job(record.offer.job)
    if stored is None or stored.agent != record.agent:
        raise NotAcceptable("its job is not there any more")
    order = stored.order
    session = next((session for session in ingest.store.sessions() if session.name == order.session), None)
    if session is None:
        raise NotAcceptable(f"its session {order.session} is not there any more")
    most = _MOST_CAPTURES_PER_EXPECTED * captures_expected(order) + _MOST_CAPTURES_BESIDE
    if ingest.records.accepted_of_job(offer.job) >= most:
        raise NotAcceptable(f"{most} captures of its job are here already, more than it can have made")
    with store_errors(file.path):
        # Not closed by hand: columns of the capture may lie in it.
        data = mmap.mmap(file.descriptor, offer.size_bytes, prot=mmap.PROT_READ)
    capture = checked_capture(decode(data, f"capture {offer.sha256[:12]}", ingest.limits.capture), order)
    if session.start.has_rounds and not capture.info.outcome.failure:
        capture = _not_counting(capture, stored.report)
    key = ingest.store.add(capture, origin=offer.sha256)
    if key.session != order.session:
        raise NotAcceptable("the same capture was accepted from another job")
    ingest.captured.add(record.agent, order.session, build_ids_of(capture))


def _not_counting(capture: Capture, report: JobReport) -> Capture:
    """Of an experiment's round, whose judgement says whether it counts.  Of a job that was given up since it never does."""
    is_given_up = report.state.is_final and report.state is not JobState.DONE
    failure = f"its job is {report.state}{f': {report.detail}' if report.detail else ''}" if is_given_up else UNJUDGED
    return replace(capture, info=replace(capture.info, outcome=replace(capture.info.outcome, failure=failure)))


def _file_debug_file(ingest: Ingest, record: UploadRecord, file: PartialFile) -> None:
    offer, limits = record.offer, ingest.limits
    with ingest.store.working_directory() as directory, store_errors(directory):
        target = directory / "debug-file"
        with open(os.dup(file.descriptor), "rb") as source:
            source.seek(0)
            unpack(source, target, offer.size_bytes, limits)
        rank = check_elf(target, offer.build_id, limits)
        ingest.debug_tree.place(target, offer.build_id, rank)


def _sha256(file: PartialFile) -> str:
    digest, offset = hashlib.sha256(), 0
    while chunk := file.read(offset, _READ_BYTES):
        digest.update(chunk)
        offset += len(chunk)
    return digest.hexdigest()
