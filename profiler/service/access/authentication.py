"""Who sent a request: found out once, before anything of its body is read."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from profiler.errors import StoreError
from profiler.protocol.addresses import API
from profiler.service.access.token_registry import Token, TokenRegistry, digest_of, is_secret
from profiler.service.aggregator import Aggregator
from profiler.service.api.problems import Problem, problem_answer, unusable_store

_CALLER = "caller"
_USE_NOTED_AGAIN_AFTER_NS = 60_000_000_000


class Authentication:
    """Puts the caller's ``Token`` into the request's state, None without a valid one.  Below /api nobody gets further without:
    whether a path exists there is nobody else's business."""

    def __init__(self, app: ASGIApp, aggregator: Aggregator) -> None:
        self._app = app
        self._aggregator = aggregator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        secret = _bearer_secret(Headers(scope=scope).get("authorization", ""))
        try:
            caller = await run_in_threadpool(valid_token, self._aggregator, secret) if secret else None
        except StoreError as error:
            await unusable_store(error)(scope, receive, send)
            return
        scope.setdefault("state", {})[_CALLER] = caller
        if caller is None and scope["path"].startswith(f"{API}/"):
            await problem_answer(not_authenticated())(scope, receive, send)
            return
        await self._app(scope, receive, send)


def caller_in(scope: Scope) -> Token | None:
    """Whose valid token came with the request, as ``Authentication`` found."""
    caller: Token | None = scope.get("state", {}).get(_CALLER)
    return caller


def not_authenticated() -> Problem:
    """The same for an absent, a malformed, an unknown and a revoked token."""
    detail = "send a valid token: `Authorization: Bearer slsc_...` (`slotscope token create` makes one)"
    return Problem(401, "Not authenticated", detail, {"WWW-Authenticate": "Bearer"})


def valid_token(aggregator: Aggregator, secret: str) -> Token | None:
    """The token of this secret, unless it was revoked; its use is noted, about once a minute.  ``StoreError``."""
    if not is_secret(secret):
        return None
    digest, now_ns = digest_of(secret), aggregator.clock_ns()
    token = aggregator.tokens.find(digest)
    if token is None or token.revoked_ns:
        return None
    _note_use(aggregator.tokens, token, digest, now_ns)
    return token


def _note_use(tokens: TokenRegistry, token: Token, digest: bytes, now_ns: int) -> None:
    if now_ns - token.used_ns >= _USE_NOTED_AGAIN_AFTER_NS:
        tokens.used(digest, now_ns)


def _bearer_secret(header: str) -> str:
    """ "" when the header is not one of a bearer token."""
    scheme, _, secret = header.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""
