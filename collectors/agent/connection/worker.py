"""A thread that does one thing again and again, and waits longer between tries while the server does not play along."""

from __future__ import annotations

import threading
from collections.abc import Callable

from collectors.agent.connection.backoff import REFUSED_S, Backoff
from collectors.agent.connection.server_errors import ServerTrouble, TokenRefused
from collectors.agent.connection.trouble_log import TroubleLog
from profiler.errors import StoreError

SPOOL_TROUBLE_S = 5.0


class Worker(threading.Thread):
    """Ends with its process, or with an error of the program's own: then ``is_alive`` is false."""

    def __init__(self, name: str, step: Callable[[], float], troubles: TroubleLog) -> None:
        """``step``: does it once; seconds until it is to be done again.  After ``ServerTrouble``, ``StoreError`` and
        ``OSError`` it is tried again."""
        super().__init__(name=name, daemon=True)
        self._step = step
        self._troubles = troubles
        self._backoff = Backoff()
        self._refusals = Backoff(first_s=10.0, longest_s=REFUSED_S)
        self._woken = threading.Event()

    def wake(self) -> None:
        """There is something to do."""
        self._woken.set()

    def run(self) -> None:
        while True:
            pause_s, is_trouble = self._once()
            if not is_trouble:
                self._woken.wait(pause_s)
            else:  # nothing new makes the server well sooner
                threading.Event().wait(pause_s)
            self._woken.clear()

    def _once(self) -> tuple[float, bool]:
        try:
            pause_s = self._step()
        except TokenRefused as error:
            self._troubles.trouble(str(error))
            return self._refusals.failed(5.0), True
        except ServerTrouble as error:
            self._troubles.trouble(str(error))
            return self._backoff.failed(error.retry_after_s), True
        except (StoreError, OSError) as error:
            self._troubles.trouble(str(error))
            return SPOOL_TROUBLE_S, True
        self._backoff.succeeded()
        self._refusals.succeeded()
        return pause_s, False
