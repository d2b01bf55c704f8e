"""Uploads over HTTP.

An agent offers what it has, sends it in chunks from where the answer says, and commits.  What it does with an error: 413 and
422 never will be accepted; 409 begins again with the offer; 429, 503 and 507 are tried again later.
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
from profiler.protocol.upload import CommitResult, UploadOffer, UploadState, WantedFiles
from profiler.service.access.authorization import AgentName
from profiler.service.aggregator import Aggregator
from profiler.service.api.json_bodies import answer, read_as
from profiler.service.api.problems import Problem, described
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
    UploadProblem.UNKNOWN: 409,
    UploadProblem.CONFLICT: 409,
    UploadProblem.QUOTA: 429,
    UploadProblem.BUSY: 503,
}
_LATER = {"Retry-After": "5"}
_LATER_STATUS = frozenset({429, 503, 507})
# Bodies in memory, threads that write, and captures that are decoded at the same time.
_CHUNKS_PER_AGENT, _WRITERS, _DECODERS = 2, 8, 2
_NO_ROOM = {507: "No room for it now"}
_OTHER = {409: "The upload stands otherwise: begin again with the offer"}
_OCTETS = {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}


def upload_routes(aggregator: Aggregator) -> APIRouter:
    router, ingest = APIRouter(tags=["uploads"]), aggregator.ingest
    writers, decoders, chunks = _Workers(_WRITERS), _Workers(_DECODERS), _ChunkBodies()

    @router.post(UPLOADS, response_model=UploadState, responses=described(_NO_ROOM))
    async def offer(agent: AgentName, body: OfferBody) -> Response:
        """An upload begins, or is taken up again: the answer says from where."""
        return answer(await writers.do(lambda: offer_upload(ingest, agent, body)))

    @router.get(UPLOAD, response_model=UploadState, responses=described(_OTHER))
    async def state(agent: AgentName, sha256: str) -> Response:
        """How much of an upload is here."""
        return answer(await writers.do(lambda: upload_state(ingest, agent, sha256)))

    @router.put(
        UPLOAD,
        response_model=UploadState,
        responses=described(_OTHER | _NO_ROOM),
        openapi_extra={"requestBody": _OCTETS},
    )
    async def chunk(agent: AgentName, sha256: str, offset: Offset, request: Request) -> Response:
        """Bytes of an upload, behind those that are here.  What the answer counts is durable."""
        data = await chunks.read(agent, request)
        return answer(await writers.do(lambda: receive_chunk(ingest, agent, sha256, offset, data)))

    @router.post(UPLOAD_COMMIT, response_model=CommitResult, responses=described(_OTHER | _NO_ROOM))
    async def commit(agent: AgentName, sha256: str) -> Response:
        """The whole content is checked, and accepted or refused for good.  May be repeated."""
        return answer(await decoders.do(lambda: commit_upload(ingest, agent, sha256)))

    @router.get(WANTED, response_model=WantedFiles)
    async def wanted(agent: AgentName) -> Response:
        """Build IDs of files in the agent's captures whose functions have no names here."""
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
    """Reads the bodies of chunks, which lie in memory: a few at once of each agent.  Their size and time are limited around."""

    def __init__(self) -> None:
        self._reading: Counter[str] = Counter()

    async def read(self, agent: str, request: Request) -> bytes:
        if self._reading[agent] >= _CHUNKS_PER_AGENT:
            raise Problem(429, "Too many chunks at once", f"at most {_CHUNKS_PER_AGENT} of one agent", _LATER)
        self._reading[agent] += 1
        try:
            return await request.body()
        finally:
            self._reading[agent] -= 1
            if not self._reading[agent]:
                del self._reading[agent]
