"""Uploads over HTTP.

An agent offers what it has, sends it in chunks from where the answer says, and commits.  What it does with an error: 413 and
422 never will be accepted; 404 and 409 begin again with the offer; 429, 503 and 507 are tried again later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Annotated, TypeAlias, TypeVar

import anyio
from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response

from profiler.errors import StoreFullError
from profiler.protocol.addresses import UPLOAD, UPLOAD_COMMIT, UPLOADS, WANTED
from profiler.protocol.upload import LARGEST_CHUNK_BYTES, CommitResult, UploadOffer, UploadState, WantedFiles
from profiler.service.access.authorization import AgentName
from profiler.service.aggregator import Aggregator
from profiler.service.api.json_bodies import answer, read_as
from profiler.service.api.problems import Problem
from profiler.service.ingest.commitment import commit_upload
from profiler.service.ingest.reception import offer_upload, receive_chunk, upload_state
from profiler.service.ingest.upload_error import UploadError, UploadProblem
from profiler.service.ingest.wanted import wanted_files

Answer = TypeVar("Answer")
OfferBody: TypeAlias = Annotated[UploadOffer, read_as(UploadOffer)]
Offset: TypeAlias = Annotated[int, Query(ge=0, description="where in the upload the chunk begins")]

_STATUS = {
    UploadProblem.NOT_ACCEPTED: 422,
    UploadProblem.TOO_LARGE: 413,
    UploadProblem.UNKNOWN: 404,
    UploadProblem.CONFLICT: 409,
    UploadProblem.QUOTA: 429,
    UploadProblem.BUSY: 503,
}
_LATER = {"Retry-After": "5"}
_LATER_STATUS = frozenset({429, 503, 507})
# Bodies in memory, threads that write, and captures that are decoded at the same time.
_CHUNKS_PER_AGENT, _WRITERS, _DECODERS = 2, 8, 2
_CHUNK_S = 120.0
_OCTETS = {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}


def upload_routes(aggregator: Aggregator) -> APIRouter:
    router, ingest = APIRouter(tags=["uploads"]), aggregator.ingest
    writers, decoders, chunks = _Workers(_WRITERS), _Workers(_DECODERS), _ChunkBodies()

    @router.post(UPLOADS, response_model=UploadState)
    async def offer(agent: AgentName, body: OfferBody) -> Response:
        return answer(await writers.do(lambda: offer_upload(ingest, agent, body)))

    @router.get(UPLOAD, response_model=UploadState)
    async def state(agent: AgentName, sha256: str) -> Response:
        return answer(await writers.do(lambda: upload_state(ingest, agent, sha256)))

    @router.put(UPLOAD, response_model=UploadState, openapi_extra={"requestBody": _OCTETS})
    async def chunk(agent: AgentName, sha256: str, offset: Offset, request: Request) -> Response:
        data = await chunks.read(agent, request)
        return answer(await writers.do(lambda: receive_chunk(ingest, agent, sha256, offset, data)))

    @router.post(UPLOAD_COMMIT, response_model=CommitResult)
    async def commit(agent: AgentName, sha256: str) -> Response:
        return answer(await decoders.do(lambda: commit_upload(ingest, agent, sha256)))

    @router.get(WANTED, response_model=WantedFiles)
    async def wanted(agent: AgentName) -> Response:
        return answer(await writers.do(lambda: wanted_files(ingest, agent)))

    return router


class _Workers:
    """So many threads at most; who comes when all are taken waits its turn."""

    def __init__(self, threads: int) -> None:
        self._limiter = anyio.CapacityLimiter(threads)

    async def do(self, work: Callable[[], Answer]) -> Answer:
        """What ``work`` returns; what it raises as a problem."""
        try:
            return await to_thread.run_sync(work, limiter=self._limiter)
        except UploadError as error:
            status = _STATUS[error.problem]
            raise Problem(status, error.problem, error.detail, _LATER if status in _LATER_STATUS else None) from None
        except StoreFullError:
            detail = "the aggregator has no room for it now; what was acknowledged is kept, try again later"
            raise Problem(507, "No room", detail, {"Retry-After": "60"}) from None


class _ChunkBodies:
    """Reads the bodies of chunks: a few at once of each agent, none longer than a chunk, none for ever."""

    def __init__(self) -> None:
        self._reading: Counter[str] = Counter()

    async def read(self, agent: str, request: Request) -> bytes:
        if self._reading[agent] >= _CHUNKS_PER_AGENT:
            raise Problem(429, "Too many chunks at once", f"at most {_CHUNKS_PER_AGENT} of one agent", _LATER)
        self._reading[agent] += 1
        try:
            with anyio.fail_after(_CHUNK_S):
                return await _body(request)
        except TimeoutError:
            raise Problem(408, "Too slow", f"a chunk takes at most {_CHUNK_S:.0f} s; send smaller ones") from None
        finally:
            self._reading[agent] -= 1
            if not self._reading[agent]:
                del self._reading[agent]


async def _body(request: Request) -> bytes:
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > LARGEST_CHUNK_BYTES:
            raise Problem(413, "Too large", f"a chunk holds at most {LARGEST_CHUNK_BYTES} bytes")
    return bytes(data)
