"""So many requests per second and no more, of one address and of one token."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from profiler.service.access.authentication import caller_in
from profiler.service.api.problems import Problem, problem_answer
from profiler.service.api.settings import RateLimit

_MOST_BUCKETS = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class TokenBuckets:
    """A bucket per key; of more keys than are kept, those not seen longest are forgotten, which fills their buckets."""

    def __init__(self, rate: RateLimit, now_s: Callable[[], float] = time.monotonic, most: int = _MOST_BUCKETS) -> None:
        self._rate = rate
        self._now_s = now_s
        self._most = most
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def wait_s(self, key: str) -> float:
        """Takes one request out of the bucket: 0.  When there is none: after how many seconds there will be."""
        now = self._now_s()
        bucket = self._buckets.pop(key, None) or _Bucket(self._rate.burst, now)
        bucket.tokens = min(self._rate.burst, bucket.tokens + (now - bucket.filled_at) * self._rate.per_s)
        bucket.filled_at = now
        self._buckets[key] = bucket
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        if bucket.tokens < 1:
            return (1 - bucket.tokens) / self._rate.per_s
        bucket.tokens -= 1
        return 0.0

    def __len__(self) -> int:
        return len(self._buckets)


class RequestRate:
    """Answers what is too much with 429; ``key_of`` says whose request it is, "" = not limited."""

    def __init__(self, app: ASGIApp, rate: RateLimit, key_of: Callable[[Scope], str]) -> None:
        self._app = app
        self._buckets = TokenBuckets(rate)
        self._key_of = key_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = self._key_of(scope) if scope["type"] == "http" else ""
        wait_s = self._buckets.wait_s(key) if key else 0.0
        if wait_s > 0:
            problem = Problem(429, "Too many requests", "slow down", {"Retry-After": str(math.ceil(wait_s))})
            await problem_answer(problem)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def token_key(scope: Scope) -> str:
    caller = caller_in(scope)
    return caller.name if caller else ""


def address_key(scope: Scope) -> str:
    """The address; of IPv6 the network of 64 bits, as one host has all of its addresses."""
    client = scope.get("client")
    if client is None:
        return ""
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        return str(client[0])
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((int(address), 64), strict=False))
