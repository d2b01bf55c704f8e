"""HTTP connections with deadlines.

uvicorn ends a connection that is idle between two requests.  It knows no deadline for the first request, for a head that
trickles, for what is left of a body after the answer, nor for a client that does not read; and when there are as many
connections as it allows, it refuses the new ones.  Here the idle ones go instead.

    state                                deadline
    no request, or one half sent         ``head_s`` after connecting or after the last answer
    a body comes                         ``BodyLimit``'s; after the answer ``head_s`` again
    the client does not read             ``stalled_s`` after the buffer was full
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from profiler.service.api.problems import MEDIA_TYPE, Problem, problem_answer
from profiler.service.api.settings import Limits


def guarded_connections(limits: Limits) -> type[H11Protocol]:
    """The protocol class, to be given to uvicorn as ``http``."""

    class GuardedConnection(_GuardedConnection):
        guard = limits

    return GuardedConnection


class _GuardedConnection(H11Protocol):
    """Deadlines abort: closing would wait until the client has read what is still buffered."""

    guard: Limits
    _idle_since: float = 0.0
    _head_timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.guard.connections:
            self._make_room()
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.is_idle:
            _cancel(self._head_timer)

    def on_response_complete(self) -> None:
        self._await_head()
        super().on_response_complete()  # may begin with a request that was sent ahead
        if not self.is_idle:
            _cancel(self._head_timer)

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP is answered like every other error, unless it comes behind an answer."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        body = bytes(problem_answer(Problem(400, "Malformed request", msg)).body)
        headers = [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(body))), ("Connection", "close")]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer = self.loop.call_later(self.guard.stalled_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._stall_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._head_timer)
        _cancel(self._stall_timer)
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """No request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        _cancel(self._head_timer)
        self._idle_since = self.loop.time()
        self._head_timer = self.loop.call_later(self.guard.head_s, self.transport.abort)

    def _make_room(self) -> None:
        others = (each for each in self.connections if isinstance(each, _GuardedConnection) and each is not self)
        idle = [each for each in others if each.is_idle]
        oldest = min(idle, key=lambda each: each._idle_since, default=self)
        self.connections.discard(oldest)
        oldest.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
