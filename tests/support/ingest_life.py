"""An aggregator's part in an upload, without HTTP: offered, received in chunks, committed, and committed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from profiler.service.aggregator import open_aggregator
from profiler.service.ingest.commitment import commit_upload
from profiler.service.ingest.reception import offer_upload, receive_chunk
from support.uploading import AGENT, capture_bytes, offer_of

CAPTURE = capture_bytes(position=2, repeat=400)
CHUNK_BYTES = len(CAPTURE) // 2 + 1


def live(directory: Path, say: Callable[[str], None]) -> None:
    """Says what an agent would be answered."""
    ingest, offer = open_aggregator(directory, create=False).ingest, offer_of(CAPTURE)
    received = offer_upload(ingest, AGENT, offer).received_bytes
    say("offered")
    while received < len(CAPTURE):
        chunk = CAPTURE[received : received + CHUNK_BYTES]
        received = receive_chunk(ingest, AGENT, offer.sha256, received, chunk).received_bytes
        say(f"received {received}")
    for _ in range(2):
        result = commit_upload(ingest, AGENT, offer.sha256)
        say(f"refused: {result.refusal}" if result.refusal else "accepted")
