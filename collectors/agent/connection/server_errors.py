"""What can go wrong between an agent and its aggregator, by what the agent does about it."""

from __future__ import annotations


class ServerTrouble(Exception):
    """Tried again later.  The message is one line.  ``retry_after_s``: as the server asked, 0 = it did not."""

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TokenRefused(ServerTrouble):
    """The server does not know the token: somebody has to do something."""


class RequestRefused(ServerTrouble):
    """The server will not have this request.  ``is_final``: asking again is of no use."""

    def __init__(self, message: str, status: int, is_final: bool, retry_after_s: float = 0.0) -> None:
        super().__init__(message, retry_after_s)
        self.status = status
        self.is_final = is_final
