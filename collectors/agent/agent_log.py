"""One line per event on standard error; what the token is never stands there, whatever a server writes into its answers."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TextIO

from reports.plain_text import printable

LONGEST_LINE = 600


class AgentLog:
    """Several threads may write."""

    def __init__(self, stream: TextIO, secret: str) -> None:
        self._stream = stream
        self._secret = secret
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        shown = self.without_secret(text)[:LONGEST_LINE]
        now = datetime.now(UTC).isoformat(timespec="seconds").removesuffix("+00:00")
        with self._lock:
            try:
                self._stream.write(f"{now}Z {printable(shown)}\n")
                self._stream.flush()
            except OSError:  # a full disk or a reader that went away must not end the agent
                return

    def without_secret(self, text: str) -> str:
        return text.replace(self._secret, "[token]") if self._secret else text
