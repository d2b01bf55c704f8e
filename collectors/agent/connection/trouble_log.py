"""What goes wrong between agent and server, told once for all threads that notice it."""

from __future__ import annotations

import threading
import time

from collectors.agent.agent_log import AgentLog

AGAIN_S = 600.0


class TroubleLog:
    def __init__(self, log: AgentLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._told = ""
        self._told_s = 0.0

    def trouble(self, text: str) -> None:
        """Logged when it is another trouble than the last, or that was long ago."""
        now = time.monotonic()
        with self._lock:
            if text == self._told and now < self._told_s + AGAIN_S:
                return
            self._told, self._told_s = text, now
        self._log(f"{text}; trying again")

    def is_well(self) -> None:
        """The server takes jobs' reports, gives jobs and knows the token."""
        with self._lock:
            if not self._told:
                return
            self._told = ""
        self._log("the server answers again")
