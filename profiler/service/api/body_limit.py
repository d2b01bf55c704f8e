"""Bodies of requests: no larger than is sensible, and not slower."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from profiler.protocol.addresses import UPLOADS
from profiler.protocol.upload import LARGEST_CHUNK_BYTES
from profiler.service.api.problems import Problem, problem_answer
from profiler.service.api.settings import Limits


class BodyLimit:
    """A length that is announced is refused at once; what comes is counted all the same."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._largest(scope["path"])
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced) > most:
            await problem_answer(_too_large(most))(scope, receive, send)
            return
        await self._app(scope, _LimitedBody(receive, most, self._limits).receive, send)

    def _largest(self, path: str) -> int:
        return LARGEST_CHUNK_BYTES if path.startswith(f"{UPLOADS}/") else self._limits.json_bytes


class _LimitedBody:
    """The body of one request while it comes in.  ``Problem`` 413 and 408 are raised in the route that reads it."""

    def __init__(self, receive: Receive, most: int, limits: Limits) -> None:
        self._receive = receive
        self._most = most
        self._limits = limits
        self._received = 0
        self._is_whole = False
        self._begun = asyncio.get_running_loop().time()

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()  # tells when the client goes away
        deadline = self._begun + self._limits.body_s + self._received / self._limits.body_bytes_per_s
        try:
            async with asyncio.timeout_at(deadline):
                message = await self._receive()
        except TimeoutError:
            raise Problem(408, "Too slow", "the request's body did not come in time") from None
        self._received += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._received > self._most:
            raise _too_large(self._most)
        return message


def _too_large(most: int) -> Problem:
    return Problem(413, "Body too large", f"at most {most} bytes are taken here")
