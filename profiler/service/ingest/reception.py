"""The receiving half of an upload: offered, asked after, sent in chunks.

What is acknowledged is durable.  Every step may be repeated, and a crash of either side at any moment leaves a state from which
the next offer goes on.
"""

from __future__ import annotations

import re

from profiler.errors import StoreFullError
from profiler.protocol.job import JobKind
from profiler.protocol.upload import LARGEST_CHUNK_BYTES, UploadKind, UploadOffer, UploadState
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.partial_files import PartialFile
from profiler.service.ingest.upload_error import UploadError, UploadProblem
from profiler.service.ingest.upload_records import UploadPhase, UploadRecord

_SHA256 = re.compile(r"[0-9a-f]{64}")
_BUILD_ID = re.compile(r"([0-9a-f]{2}){2,64}")
_AGENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def offer_upload(ingest: Ingest, agent: str, offer: UploadOffer) -> UploadState:
    """Where to go on.  One that was accepted or refused before is whole.

    ``UploadError`` NOT_ACCEPTED, TOO_LARGE, CONFLICT (offered otherwise before), QUOTA; ``StoreFullError``; ``StoreError``.
    """
    _check_offer(ingest, agent, offer)
    record = ingest.records.find(agent, offer.sha256)
    if record is None:
        _check_room(ingest, agent, offer)
        record = ingest.records.add(agent, offer, ingest.clock_ns())
    if record.offer != offer:
        raise UploadError(UploadProblem.NOT_ACCEPTED, "the same content was offered as something else before")
    return _state(record)


def upload_state(ingest: Ingest, agent: str, sha256: str) -> UploadState:
    """``UploadError`` UNKNOWN."""
    return _state(record_of(ingest, agent, sha256))


def receive_chunk(ingest: Ingest, agent: str, sha256: str, offset: int, data: bytes) -> UploadState:
    """Adds ``data`` behind what is there.  Bytes that are there already and equal are taken as the repetition that they are.

    ``UploadError`` UNKNOWN, CONFLICT, NOT_ACCEPTED (beyond the end), TOO_LARGE, BUSY; ``StoreFullError``; ``StoreError``.
    """
    if len(data) > LARGEST_CHUNK_BYTES:
        raise UploadError(UploadProblem.TOO_LARGE, f"a chunk holds at most {LARGEST_CHUNK_BYTES} bytes")
    record_of(ingest, agent, sha256)
    with ingest.files.held(file_name(agent, sha256)) as file:
        record = record_of(ingest, agent, sha256)
        if record.phase is not UploadPhase.RECEIVING:
            return _state(record)
        end = offset + len(data)
        if offset < 0 or end > record.offer.size_bytes:
            raise UploadError(
                UploadProblem.NOT_ACCEPTED, f"bytes {offset} to {end} of an upload of {record.offer.size_bytes} bytes"
            )
        held = _held_bytes(ingest, record, file)
        if end <= held and file.read(offset, len(data)) == data:
            return _state(record)
        if offset != held:
            raise UploadError(
                UploadProblem.CONFLICT, f"{held} bytes are here, and the next chunk begins there, not at {offset}"
            )
        _check_disk(ingest, len(data))
        file.append(offset, data)
        ingest.records.received(agent, sha256, end, ingest.clock_ns())
    return upload_state(ingest, agent, sha256)


def record_of(ingest: Ingest, agent: str, sha256: str) -> UploadRecord:
    """``UploadError`` UNKNOWN; uploads of other agents are as unknown as any."""
    record = ingest.records.find(agent, sha256) if _SHA256.fullmatch(sha256) else None
    if record is None:
        raise UploadError(UploadProblem.UNKNOWN, "it was not offered, or not gone on with for too long: offer it again")
    return record


def file_name(agent: str, sha256: str) -> str:
    """Of the partial file; both parts were checked when it was offered."""
    return f"{sha256}.{agent}"


def _held_bytes(ingest: Ingest, record: UploadRecord, file: PartialFile) -> int:
    """What is acknowledged; nothing when the file was lost, which the agent learns as a conflict."""
    if file.size_bytes >= record.received_bytes:
        return record.received_bytes
    ingest.records.received(record.agent, record.offer.sha256, 0, ingest.clock_ns())
    return 0


def _state(record: UploadRecord) -> UploadState:
    is_finished = record.phase is not UploadPhase.RECEIVING
    received = record.offer.size_bytes if is_finished else record.received_bytes
    return UploadState(record.offer.sha256, received, record.phase is UploadPhase.ACCEPTED)


def _check_offer(ingest: Ingest, agent: str, offer: UploadOffer) -> None:
    if not _AGENT.fullmatch(agent):
        raise UploadError(UploadProblem.NOT_ACCEPTED, f"an agent cannot be called {agent[:80]!r}")
    if not _SHA256.fullmatch(offer.sha256):
        raise UploadError(UploadProblem.NOT_ACCEPTED, "sha256 is not 64 lower-case hexadecimal digits")
    is_capture = offer.kind is UploadKind.CAPTURE
    largest = ingest.limits.capture_bytes if is_capture else ingest.limits.debug_file_bytes
    if offer.size_bytes < 1:
        raise UploadError(UploadProblem.NOT_ACCEPTED, f"an upload of {offer.size_bytes} bytes")
    if offer.size_bytes > largest:
        raise UploadError(UploadProblem.TOO_LARGE, f"{offer.size_bytes} bytes, but at most {largest} are taken of this kind")
    if is_capture:
        _check_job(ingest, agent, offer)
    elif offer.job or not _BUILD_ID.fullmatch(offer.build_id):
        raise UploadError(
            UploadProblem.NOT_ACCEPTED, "a debug file has a build ID in lower-case hexadecimal digits, and no job"
        )
    elif offer.build_id not in ingest.captured.of_agent(agent):
        raise UploadError(UploadProblem.NOT_ACCEPTED, f"build ID {offer.build_id} is in no capture of this agent")


def _check_job(ingest: Ingest, agent: str, offer: UploadOffer) -> None:
    """Whether there is a job of another agent is not said."""
    stored = ingest.jobs.job(offer.job) if offer.job else None
    if stored is None or stored.agent != agent:
        raise UploadError(UploadProblem.NOT_ACCEPTED, f"this agent has no job {offer.job[:80]!r}")
    if stored.order.kind is JobKind.SWAP or offer.build_id:
        raise UploadError(UploadProblem.NOT_ACCEPTED, "a capture comes from a job that records, and has no build ID")


def _check_room(ingest: Ingest, agent: str, offer: UploadOffer) -> None:
    limits, own, total = ingest.limits, ingest.records.unfinished(agent), ingest.records.unfinished()
    if own.uploads >= limits.agent_uploads or own.size_bytes + offer.size_bytes > limits.agent_bytes:
        detail = f"{own.uploads} uploads of {own.size_bytes} bytes of this agent are unfinished; finish them first"
        raise UploadError(UploadProblem.QUOTA, detail)
    if total.size_bytes + offer.size_bytes > limits.total_bytes:
        raise StoreFullError(
            f"{ingest.files.directory}: {total.size_bytes} bytes of unfinished uploads; more are not taken now"
        )
    _check_disk(ingest, offer.size_bytes)


def _check_disk(ingest: Ingest, size_bytes: int) -> None:
    free = ingest.files.free_bytes()
    if free < size_bytes + ingest.limits.free_bytes:
        raise StoreFullError(f"{ingest.files.directory}: {free} bytes are free on this disk, too few for what agents send")
