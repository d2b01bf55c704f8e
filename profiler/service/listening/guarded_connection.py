"""HTTP connections with deadlines, of which there are so many and no more.

uvicorn ends a connection that is idle between two requests.  It knows no deadline for the first request, for a head that
trickles, for what is left of a body after the answer, nor for a client that does not read; it does not count connections whose
TLS handshake is under way; and when there are as many as it allows, it refuses the new ones.  Here the idle ones go instead.

    state                                deadline
    TLS handshake                        ``head_s``
    no request, or one half sent         ``head_s`` after connecting or after the last answer
    a body comes                         ``BodyLimit``'s; after the answer ``head_s`` again
    the client does not read             ``stalled_s`` after the buffer was full

Deadlines abort: closing would wait until the client has read what is still buffered.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from profiler.service.api.problems import MEDIA_TYPE, Problem, problem_answer
from profiler.service.api.settings import Limits


def guarded_connections(limits: Limits, context: ssl.SSLContext | None) -> type[asyncio.Protocol]:
    """The protocol class, to be given to uvicorn as ``http``.  With ``context`` it does TLS by itself: uvicorn is to be given
    no certificate."""

    class Plain(_GuardedConnection):
        guard = limits

    return Plain if context is None else _secured_connections(Plain, context)


def _secured_connections(plain: type[_GuardedConnection], context: ssl.SSLContext) -> type[asyncio.Protocol]:
    class Secured(_TlsHandshake):
        guard = plain.guard
        http = plain
        tls = context

    return Secured


class _GuardedConnection(H11Protocol):
    guard: Limits
    idle_since: float = 0.0
    _head_timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None
    _early_data: bytes = b""
    _is_open: bool = False
    _is_lost: bool = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if self._is_lost or transport.is_closing():
            return
        self._is_open = True
        super().connection_made(transport)
        _make_room(self, self.guard.connections)
        self._await_head()
        if self._early_data:
            self.data_received(self._early_data)

    def data_received(self, data: bytes) -> None:
        if not self._is_open:  # after TLS, data may come before the connection is handed over
            self._early_data += data
            return
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
        self._is_lost = True
        _cancel(self._head_timer)
        _cancel(self._stall_timer)
        if self._is_open:
            super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """No request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        _cancel(self._head_timer)
        self.idle_since = self.loop.time()
        self._head_timer = self.loop.call_later(self.guard.head_s, self.transport.abort)


class _TlsHandshake(asyncio.Protocol):
    """A connection until TLS is established; counted among the server's connections, as one that is idle."""

    guard: Limits
    http: type[_GuardedConnection]
    tls: ssl.SSLContext
    is_idle = True

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None
    ) -> None:
        self.loop = _loop or asyncio.get_running_loop()
        self.connections: set[Any] = server_state.connections
        self._secured = self.http(config, server_state, app_state, self.loop)
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self.idle_since = self.loop.time()
        self.connections.add(self)
        _make_room(self, self.guard.connections)
        self._task = self.loop.create_task(self._shake_hands())

    def shutdown(self) -> None:
        """Called by uvicorn's server when it ends."""
        self.transport.abort()

    async def _shake_hands(self) -> None:
        try:
            transport = await self.loop.start_tls(
                self.transport, self._secured, self.tls, server_side=True, ssl_handshake_timeout=self.guard.head_s
            )
        except OSError:  # of ssl too: the client does not speak TLS, does not trust us, or is gone
            self.transport.abort()
            return
        finally:
            self.connections.discard(self)
        if transport is not None:
            self._secured.connection_made(transport)


def _make_room(newest: _GuardedConnection | _TlsHandshake, most: int) -> None:
    """Where there are more than ``most``, the one that has been idle longest goes; where none is idle, the newest."""
    connections: set[Any] = newest.connections
    if len(connections) <= most:
        return
    idle = [each for each in connections if each is not newest and each.is_idle]
    leaving = min(idle, key=lambda each: float(each.idle_since), default=newest)
    connections.discard(leaving)
    leaving.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
