"""An aggregator's part in an upload, without HTTP: offered, received in chunks, committed, and committed again.

Both programs say what an agent would be answered.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from profiler.protocol.upload import UploadOffer
from profiler.service.aggregator import open_aggregator
from profiler.service.ingest.commitment import commit_upload
from profiler.service.ingest.reception import offer_upload, receive_chunk
from support.uploading import AGENT, capture_bytes, debug_offer_of, offer_of

CAPTURE = capture_bytes(position=2, repeat=400)
# Of a debug file, by its build ID, compressed.
PACKED_SUFFIX = ".packed"


def take_capture(directory: Path, say: Callable[[str], None]) -> None:
    _take(directory, CAPTURE, offer_of(CAPTURE), say)


def take_debug_file(directory: Path, say: Callable[[str], None]) -> None:
    """The one that lies beside the store."""
    (packed,) = directory.glob(f"*{PACKED_SUFFIX}")
    _take(directory, packed.read_bytes(), debug_offer_of(packed.read_bytes(), packed.name.removesuffix(PACKED_SUFFIX)), say)


def _take(directory: Path, data: bytes, offer: UploadOffer, say: Callable[[str], None]) -> None:
    ingest = open_aggregator(directory, create=False).ingest
    received = offer_upload(ingest, AGENT, offer).received_bytes
    say("offered")
    while received < len(data):
        chunk = data[received : received + len(data) // 2 + 1]
        received = receive_chunk(ingest, AGENT, offer.sha256, received, chunk).received_bytes
        say(f"received {received}")
    for _ in range(2):
        result = commit_upload(ingest, AGENT, offer.sha256)
        say(f"refused: {result.refusal}" if result.refusal else "accepted")
