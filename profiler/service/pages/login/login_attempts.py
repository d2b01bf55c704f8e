"""How often a token may be guessed at the login page."""

from __future__ import annotations

from collections import OrderedDict, deque

from profiler.model.quick_dataclass import dataclass

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """Failures within ``seconds``: ``of_one`` address, ``of_all``; ``addresses``: so many are remembered."""

    seconds: int = 60
    of_one: int = 5
    of_all: int = 50
    addresses: int = 1_000


class LoginAttempts:
    """Failed attempts of the last minute; only those count, so nobody who has a token is kept waiting by their own use."""

    def __init__(self, limits: AttemptLimits) -> None:
        self._limits = limits
        self._of_all: deque[int] = deque(maxlen=limits.of_all)
        self._of_one: OrderedDict[str, deque[int]] = OrderedDict()

    def wait_s(self, address: str, now_ns: int) -> int:
        """After how many seconds the next attempt is looked at; 0 = now."""
        of_one = self._of_one.get(address)
        return max(self._wait_s(self._of_all, now_ns), self._wait_s(of_one, now_ns) if of_one is not None else 0)

    def failed(self, address: str, now_ns: int) -> None:
        self._of_all.append(now_ns)
        times = self._of_one.setdefault(address, deque(maxlen=self._limits.of_one))
        times.append(now_ns)
        self._of_one.move_to_end(address)
        if len(self._of_one) > self._limits.addresses:
            self._of_one.popitem(last=False)

    def _wait_s(self, times: deque[int], now_ns: int) -> int:
        """The oldest of as many as may be has to be long enough ago."""
        if len(times) < (times.maxlen or 1):
            return 0
        left_ns = times[0] + self._limits.seconds * _SECOND_NS - now_ns
        return max(0, -(-left_ns // _SECOND_NS))
