"""Who is told what becomes of a session while it is under way: a person at a terminal, or an agent that reports."""

from __future__ import annotations

from typing import Protocol

from profiler.model.attach_summary import AttachSummary, KeptWindow


class AttachObserver(Protocol):
    """``window_kept`` is called by the thread that reads windows, beside the others; none may raise or take long."""

    def told(self, line: str) -> None:
        """One line for people, about anything."""
        ...

    def attached(self, session: str) -> None:
        """What records the first window is attached, and waits for the moment to begin."""
        ...

    def begun(self, begun_ns: int) -> None:
        """The first window begins at ``begun_ns`` (CLOCK_MONOTONIC); called when it has begun."""
        ...

    def window_kept(self, window: KeptWindow) -> None:
        """The window is durable in the store, under ``window.key``."""
        ...

    def ended(self, summary: AttachSummary) -> None:
        """All windows are kept.  Not called for a session that ends with an error."""
        ...
