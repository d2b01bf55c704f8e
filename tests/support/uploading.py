"""An aggregator in a directory with one job for an agent, and uploads to it without HTTP."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from pathlib import Path

from profiler.codec.container import encode
from profiler.model.run import RunMode
from profiler.protocol.job import JobKind, JobOrder
from profiler.protocol.upload import CommitResult, UploadKind, UploadOffer, UploadState
from profiler.service.aggregator import open_aggregator
from profiler.service.ingest.commitment import commit_upload
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.reception import offer_upload, receive_chunk
from profiler.store.records import SessionStart
from support.sample_captures import plain_capture, run_info, two_stack_capture

AGENT, OTHER_AGENT = "host1", "host2"
JOB, PLAIN_JOB, SWAP_JOB, OTHER_JOB = "job-1", "job-plain", "job-swap", "job-of-host2"
START = SessionStart("2026-03-01T10:00:00+00:00", "aggregator", ("plan",), 1, has_rounds=True)


@dataclass(frozen=True, slots=True)
class Bench:
    """``session``: that of all jobs, being recorded."""

    ingest: Ingest
    session: str


def open_bench(directory: Path) -> Bench:
    """Everything new."""
    aggregator = open_aggregator(directory, create=True)
    session = aggregator.store.begin_session(START)
    order = JobOrder(
        JOB, JobKind.ATTACH, "node", "fat", session, "node-1", round=3, window_s=10.0, windows=4, frequency_hz=1999
    )
    orders = {
        JOB: (AGENT, order),
        PLAIN_JOB: (AGENT, replace(order, kind=JobKind.RUN, runs=2, is_profiled=False)),
        SWAP_JOB: (AGENT, replace(order, kind=JobKind.SWAP)),
        OTHER_JOB: (OTHER_AGENT, order),
    }
    for job, (agent, each) in orders.items():
        aggregator.jobs.add(agent, replace(each, id=job), time.time_ns())
    return Bench(aggregator.ingest, session)


def capture_bytes(position: int = 0, mode: RunMode = RunMode.PROFILED, repeat: int = 1) -> bytes:
    """As an agent makes it: under a session of its own."""
    info = run_info("20260301-100000-aaaa", "as-the-agent-calls-it", position, mode, position)
    return encode(two_stack_capture(info, repeat) if mode is RunMode.PROFILED else plain_capture(info))


def offer_of(data: bytes, job: str = JOB) -> UploadOffer:
    return UploadOffer(hashlib.sha256(data).hexdigest(), len(data), UploadKind.CAPTURE, job)


def debug_offer_of(data: bytes, build_id: str) -> UploadOffer:
    return UploadOffer(hashlib.sha256(data).hexdigest(), len(data), UploadKind.DEBUG_FILE, build_id=build_id)


def send(ingest: Ingest, data: bytes, offer: UploadOffer, agent: str = AGENT, chunk_bytes: int = 1 << 20) -> UploadState:
    """Offered, and every byte that is not there yet sent."""
    state = offer_upload(ingest, agent, offer)
    while state.received_bytes < len(data):
        start = state.received_bytes
        state = receive_chunk(ingest, agent, offer.sha256, start, data[start : start + chunk_bytes])
    return state


def upload(ingest: Ingest, data: bytes, offer: UploadOffer | None = None, agent: str = AGENT) -> CommitResult:
    """The whole way."""
    offer = offer_of(data) if offer is None else offer
    send(ingest, data, offer, agent)
    return commit_upload(ingest, agent, offer.sha256)
