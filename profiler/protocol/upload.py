"""How captures and debug files come to the aggregator: offered, sent in chunks that can be taken up again, committed."""

from __future__ import annotations

from enum import StrEnum

from profiler.model.quick_dataclass import dataclass

# The largest body of one chunk.
LARGEST_CHUNK_BYTES = 4 << 20


class UploadKind(StrEnum):
    """CAPTURE: a capture container.  DEBUG_FILE: an ELF file with symbols or DWARF, compressed with zstd."""

    CAPTURE = "capture"
    DEBUG_FILE = "debug-file"


@dataclass(frozen=True, slots=True)
class UploadOffer:
    """``sha256``: lower-case hex, of the whole content, and the upload's name from then on.  ``job``: the job that made a
    capture, "" for a debug file.  ``build_id``: lower-case hex, of a debug file."""

    sha256: str
    size_bytes: int
    kind: UploadKind
    job: str = ""
    build_id: str = ""


@dataclass(frozen=True, slots=True)
class UploadState:
    """``received_bytes``: how much the aggregator holds durably; the next chunk begins there.  ``is_committed``: it was
    accepted before, and nothing is left to do."""

    sha256: str
    received_bytes: int
    is_committed: bool = False


@dataclass(frozen=True, slots=True)
class CommitResult:
    """``refusal``: why the content is not accepted and never will be, "" = it is.  A commit may be repeated."""

    sha256: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class WantedFiles:
    """Build IDs of files in this agent's captures for which the aggregator lacks names."""

    build_ids: tuple[str, ...] = ()
